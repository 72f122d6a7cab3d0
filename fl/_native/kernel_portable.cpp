// What every CPU of the architecture can run: SSE2 on x86-64 (slow: fused multiply-adds in software), NEON on arm64,
// plain code elsewhere.
#if defined(__aarch64__)
#include <arm_neon.h>
#endif
#include <stdlib.h>

#include "kernel.h"

#define LANES 4
#if defined(__aarch64__)
#define REGISTERS 32
#else
#define REGISTERS 16
#endif

static bool supported() { return true; }

namespace fl {
namespace {
#include "variant.inl"
}  // namespace

const Kernel kernel_portable = {"fused-portable", supported, train, gradient, correct, fused_multiply_add,
                                 exponentials, logarithms};
}  // namespace fl
