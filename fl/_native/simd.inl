// One vector of LANES floats, written in the compilers' own vector extension: no intrinsics, so the same source makes
// AVX-512, AVX2, SSE2 and NEON code. The including unit defines LANES (floats per vector) and REGISTERS (vector
// registers of the machine, which set how much a kernel may keep in flight). Nothing from the standard library is
// used here or below: its templates would be shared by the linker across units with different instruction sets.




#define FL_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define FL_UNROLL _Pragma("clang loop unroll(full)")
#else
#define FL_UNROLL _Pragma("GCC unroll 64")
#endif

typedef float V __attribute__((vector_size(4 * LANES)));
typedef int32_t VI __attribute__((vector_size(4 * LANES)));  // lane masks (0 or -1) and small integers
typedef float V4 __attribute__((vector_size(16)));

FL_INLINE V load(const float *p) {
    typedef float U __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
    return *reinterpret_cast<const U *>(p);
}
FL_INLINE void store(float *p, V v) {
    typedef float U __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
    *reinterpret_cast<U *>(p) = v;
}
FL_INLINE VI load(const int32_t *p) {
    typedef int32_t U __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
    return *reinterpret_cast<const U *>(p);
}
FL_INLINE void store(int32_t *p, VI v) {
    typedef int32_t U __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
    *reinterpret_cast<U *>(p) = v;
}
FL_INLINE V broadcast(float x) { return x - V{}; }
FL_INLINE VI broadcast(int32_t x) { return x - VI{}; }
FL_INLINE V relu(V x) { return x < V{} ? V{} : x; }  // keeps NaN, as torch does

// Lanes 0, 0', 1, 1', ... of a and b: the lower and the upper half of the 2 * LANES results.
#if LANES == 16
#define FL_LOWER 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define FL_UPPER 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
constexpr int LANE_BITS = 4;
#elif LANES == 8
#define FL_LOWER 0, 8, 1, 9, 2, 10, 3, 11
#define FL_UPPER 4, 12, 5, 13, 6, 14, 7, 15
constexpr int LANE_BITS = 3;
#else
#define FL_LOWER 0, 4, 1, 5
#define FL_UPPER 2, 6, 3, 7
constexpr int LANE_BITS = 2;
#endif
FL_INLINE V interleave_lower(V a, V b) { return __builtin_shufflevector(a, b, FL_LOWER); }
FL_INLINE V interleave_upper(V a, V b) { return __builtin_shufflevector(a, b, FL_UPPER); }

// A riffle of the K * LANES floats in v, done STAGES times. Seen as a K x LANES matrix, log2(K) riffles transpose it,
// and LANE_BITS riffles turn the transposed one back: each moves the top bit of an element's index to the bottom.
template <int K, int STAGES>
FL_INLINE void riffle(V (&v)[K]) {
    FL_UNROLL
    for (int s = 0; s < STAGES; s++) {
        V w[K];
        FL_UNROLL
        for (int j = 0; j < K / 2; j++) {
            w[2 * j] = interleave_lower(v[j], v[j + K / 2]);
            w[2 * j + 1] = interleave_upper(v[j], v[j + K / 2]);
        }
        FL_UNROLL
        for (int j = 0; j < K; j++) v[j] = w[j];
    }
}

// The sums over all lanes of four vectors, as one small vector: cheaper than four separate horizontal sums.
FL_INLINE V4 sums(V a, V b, V c, V d) {
    const V ac = interleave_lower(a, c) + interleave_upper(a, c);
    const V bd = interleave_lower(b, d) + interleave_upper(b, d);
    const V v = interleave_lower(ac, bd) + interleave_upper(ac, bd);  // lanes a b c d a b c d ...
#if LANES == 16
    typedef float V8 __attribute__((vector_size(32)));
    const V8 h = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                 __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    const V h = v;
#endif
#if LANES >= 8
    return __builtin_shufflevector(h, h, 0, 1, 2, 3) + __builtin_shufflevector(h, h, 4, 5, 6, 7);
#else
    return h;
#endif
}
FL_INLINE void store4(float *p, V4 v) {
    typedef float U __attribute__((vector_size(16), aligned(4), may_alias));
    *reinterpret_cast<U *>(p) = v;
}

// Calls f(Count<n>) for a run-time n in 1..MAX, so that a kernel's block size is known to the compiler.
template <int N>
struct Count {
    static constexpr int value = N;
};
template <int MAX, class F>
FL_INLINE void with_count(int n, F &&f) {
    if constexpr (MAX > 1) {
        if (n < MAX) return with_count<MAX - 1>(n, f);
    }
    f(Count<MAX>{});
}

// Walks 0..n in blocks of at most MAX of nearly equal size: 10 by 6 is 5 + 5, not 6 + 4.
template <int MAX, class F>
FL_INLINE void in_blocks(int n, F &&f) {
    for (int i = 0, blocks = (n + MAX - 1) / MAX; i < n; blocks--) {
        const int size = (n - i + blocks - 1) / blocks;
        with_count<MAX>(size, [&](auto count) __attribute__((always_inline)) { f(i, count); });
        i += size;
    }
}
