// Eight numbers of 64 bits at once, in the compilers' vector extension: what it compiles to depends on the processor,
// what it computes does not. Operations are those of IEEE 754 and whole numbers, each a step of its own.
#pragma once
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define FL_INLINE static inline __attribute__((always_inline))

constexpr int LANES = 8;
typedef double Doubles __attribute__((vector_size(8 * LANES)));
typedef int64_t Integers __attribute__((vector_size(8 * LANES)));
typedef uint64_t Words __attribute__((vector_size(8 * LANES)));

template <class Vector, class Element>
FL_INLINE Vector load_lanes(const Element *from) {
    typedef Vector Unaligned __attribute__((aligned(sizeof(Element)), may_alias));
    return *reinterpret_cast<const Unaligned *>(from);
}
template <class Vector, class Element>
FL_INLINE void store_lanes(Element *to, Vector v) {
    typedef Vector Unaligned __attribute__((aligned(sizeof(Element)), may_alias));
    *reinterpret_cast<Unaligned *>(to) = v;
}

// What is compiled for one kind of processor: between PUSH and POP no templates, because gcc compiles them at the end
// of the unit, with what is switched on there.
#define FL_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define FL_TARGET_PUSH(name) FL_PRAGMA(clang attribute push(__attribute__((target(name))), apply_to = function))
#define FL_TARGET_POP FL_PRAGMA(clang attribute pop)
#else
#define FL_TARGET_PUSH(name) FL_PRAGMA(GCC push_options) FL_PRAGMA(GCC target(name))
#define FL_TARGET_POP FL_PRAGMA(GCC pop_options)
#endif

namespace fl {

enum class Width { plain, avx2, avx512 };
extern Width width;  // the widest that this processor has; tests choose another one

}  // namespace fl

// FL_VARIANTS(name, (parameters), (arguments)) defines name() as name_in() compiled for each kind of processor, of which
// the best one that runs here is called. name_in() is written once, and gives the same bits in each.
#if defined(__x86_64__)
#define FL_AVX512 "avx512f,avx512dq,prefer-vector-width=512"
#define FL_VARIANTS(name, parameters, arguments)                                                            \
    __attribute__((target(FL_AVX512))) static void name##_avx512 parameters { name##_in arguments; }        \
    __attribute__((target("avx2"))) static void name##_avx2 parameters { name##_in arguments; }             \
    static void name##_plain parameters { name##_in arguments; }                                            \
    static void name parameters {                                                                           \
        if (fl::width == fl::Width::avx512) return name##_avx512 arguments;                                 \
        if (fl::width == fl::Width::avx2) return name##_avx2 arguments;                                     \
        name##_plain arguments;                                                                             \
    }
#else
#define FL_VARIANTS(name, parameters, arguments) \
    static void name parameters { name##_in arguments; }
#endif
