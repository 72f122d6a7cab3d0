// What every CPU of the architecture can run: SSE2 on x86-64, NEON on arm64, plain code elsewhere.
#include <math.h>
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
#include "simd.inl"
#include "dense.inl"
#include "conv.inl"
#include "network.inl"
}  // namespace

const Kernel kernel_portable = {"fused-portable", supported, train, gradient, correct};
}  // namespace fl
