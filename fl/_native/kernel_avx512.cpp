// x86-64 servers since 2017: vectors of 16 floats, 32 registers.
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdlib.h>

#include "kernel.h"

#define LANES 16
#define REGISTERS 32

// Above the switch, because it runs on CPUs without these instructions.
static bool supported() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
}

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))), \
                             apply_to = function)
#else
// Not popped: gcc compiles templates at the end of the unit, with what is switched on there.
#pragma GCC target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,prefer-vector-width=512")
#endif

namespace fl {
namespace {
#include "variant.inl"
}  // namespace

const Kernel kernel_avx512 = {"fused-avx512", supported, train, gradient, correct, fused_multiply_add,
                                 exponentials, logarithms};
}  // namespace fl

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
