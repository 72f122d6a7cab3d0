// x86-64 since 2013: vectors of 8 floats, 16 registers.
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdlib.h>

#include "kernel.h"

#define LANES 8
#define REGISTERS 16

// Above the switch, because it runs on CPUs without these instructions.
static bool supported() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
// Not popped: gcc compiles templates at the end of the unit, with what is switched on there.
#pragma GCC target("avx2,fma")
#endif

namespace fl {
namespace {
#include "variant.inl"
}  // namespace

const Kernel kernel_avx2 = {"fused-avx2", supported, train, gradient, correct, fused_multiply_add,
                                 exponentials, logarithms};
}  // namespace fl

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
