// One vector of LANES floats, and the arithmetic that every variant shares to the last bit.
//
// Rules that make results independent of the width of a vector, of the compiler and of the processor:
//   - a sum runs along a chain of its own per output element, or over 16 virtual lanes and one fixed tree (sum16);
//   - a multiply-add is either fma(), rounded once, or a multiplication and an addition; the compiler fuses nothing
//     (-ffp-contract=off) and reorders nothing (no -ffast-math);
//   - only IEEE basic operations, comparisons and selections: nothing from libm.
//
// Written in the compilers' vector extension, with intrinsics only where it has no word for an instruction. The
// including unit defines LANES (floats per vector) and REGISTERS (vector registers of the machine, which set how much
// a kernel may keep in flight). Nothing from the standard library is used here or below: its templates would be shared
// by the linker across units with different instruction sets.

#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
#error "floats must be computed as floats: without SSE2, results would differ from those of other machines"
#endif

#define FL_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define FL_UNROLL _Pragma("clang loop unroll(full)")
#else
#define FL_UNROLL _Pragma("GCC unroll 64")
#endif

// Hides from the compiler where a pointer comes from. Else it keeps what it loaded for later, and spills accumulators.
#define FL_FORGET(pointer) asm("" : "+r"(pointer))

constexpr int VIRTUAL_LANES = 16;  // what layouts are padded to, and what sums along lanes are made of

typedef float V __attribute__((vector_size(4 * LANES)));
typedef int32_t VI __attribute__((vector_size(4 * LANES)));  // lane masks (0 or -1) and small integers
typedef float V4 __attribute__((vector_size(16)));

template <class Vector, class Element>
FL_INLINE Vector load_as(const Element *p) {
    typedef Vector U __attribute__((aligned(sizeof(Element)), may_alias));
    return *reinterpret_cast<const U *>(p);
}
template <class Vector, class Element>
FL_INLINE void store_as(Element *p, Vector v) {
    typedef Vector U __attribute__((aligned(sizeof(Element)), may_alias));
    *reinterpret_cast<U *>(p) = v;
}
FL_INLINE V load(const float *p) { return load_as<V>(p); }
FL_INLINE VI load(const int32_t *p) { return load_as<VI>(p); }
FL_INLINE void store(float *p, V v) { store_as(p, v); }
FL_INLINE void store(int32_t *p, VI v) { store_as(p, v); }
FL_INLINE V broadcast(float x) { return x - V{}; }
FL_INLINE VI broadcast(int32_t x) { return x - VI{}; }

// a * b + c, rounded once.
#if LANES == 16
FL_INLINE V fma(V a, V b, V c) { return V(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c))); }
#elif LANES == 8
FL_INLINE V fma(V a, V b, V c) { return V(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c))); }
#elif defined(__aarch64__)
FL_INLINE V fma(V a, V b, V c) { return V(vfmaq_f32(float32x4_t(c), float32x4_t(a), float32x4_t(b))); }
#else
static_assert(LANES == 4, "the two halves below");
typedef float V2 __attribute__((vector_size(8)));

// Without the instruction: the product is exact in double precision. The sum is made exact as sum + error (Knuth), then
// rounded to odd, so that the final rounding to float is the only one that counts. Where something is infinite or not a
// number, the error is not a number, and sum is the result.
FL_INLINE V2 fma_half(V2 a, V2 b, V2 c) {
    typedef double D __attribute__((vector_size(16)));
    typedef int64_t DI __attribute__((vector_size(16)));
    const D product = __builtin_convertvector(a, D) * __builtin_convertvector(b, D);
    const D addend = __builtin_convertvector(c, D), sum = product + addend, rest = sum - product;
    const D error = (product - (sum - rest)) + (addend - rest), zero = {};
    const DI below = error < zero, inexact = below | (error > zero), opposed = inexact & (below ^ (sum < zero));
    return __builtin_convertvector(D((DI(sum) + opposed) | (inexact & 1)), V2);  // opposed is -1: towards zero
}
static __attribute__((noinline)) V fma(V a, V b, V c) {  // a call: a hundred copies of it would take minutes to compile
    const V2 low = fma_half(__builtin_shufflevector(a, a, 0, 1), __builtin_shufflevector(b, b, 0, 1),
                            __builtin_shufflevector(c, c, 0, 1));
    const V2 high = fma_half(__builtin_shufflevector(a, a, 2, 3), __builtin_shufflevector(b, b, 2, 3),
                             __builtin_shufflevector(c, c, 2, 3));
    return __builtin_shufflevector(low, high, 0, 1, 2, 3);
}
#endif

// The same for four lanes, with the first of a.
FL_INLINE V4 fma4(V a, V4 b, V4 c) {
#if LANES > 4
    return V4(_mm_fmadd_ps(__m128(__builtin_shufflevector(a, a, 0, 1, 2, 3)), __m128(b), __m128(c)));
#else
    return fma(a, b, c);
#endif
}

// a > b ? a : b, which is b where they are equal or one is not a number.
FL_INLINE V larger(V a, V b) {
#if LANES == 16
    return V(_mm512_max_ps(__m512(a), __m512(b)));
#elif LANES == 8
    return V(_mm256_max_ps(__m256(a), __m256(b)));
#else
    return a > b ? a : b;
#endif
}

// x, or not a number where a, b, c or d is not a number.
FL_INLINE V unless_nan(V x, V a, V b, V c, V d) {
#if LANES == 16
    const __mmask16 nan = _mm512_cmp_ps_mask(__m512(a), __m512(b), _CMP_UNORD_Q) |
                          _mm512_cmp_ps_mask(__m512(c), __m512(d), _CMP_UNORD_Q);
    return V(_mm512_mask_mov_ps(__m512(x), nan, __m512(broadcast(__builtin_nanf("")))));
#elif LANES == 8
    const __m256 nan = _mm256_or_ps(_mm256_cmp_ps(__m256(a), __m256(b), _CMP_UNORD_Q),
                                    _mm256_cmp_ps(__m256(c), __m256(d), _CMP_UNORD_Q));
    return V(_mm256_or_ps(__m256(x), nan));
#else
    return V(VI(x) | ((a != a) | (b != b) | (c != c) | (d != d)));
#endif
}
FL_INLINE V relu(V x) { return larger(V{}, x); }  // keeps NaN, as torch does

// Lanes P, Q, R, S of every block of four lanes of a and b; 4 to 7 are those of b.
constexpr int lane_of(int lane, int block, int lanes) { return 4 * block + (lane < 4 ? lane : lane - 4 + lanes); }
template <int P, int Q, int R, int S, int ROWS, class W>
FL_INLINE W pick(W a, W b) {
#define FL_BLOCK(n) lane_of(P, n, ROWS), lane_of(Q, n, ROWS), lane_of(R, n, ROWS), lane_of(S, n, ROWS)
    if constexpr (ROWS == 4) return __builtin_shufflevector(a, b, FL_BLOCK(0));
    if constexpr (ROWS == 8) return __builtin_shufflevector(a, b, FL_BLOCK(0), FL_BLOCK(1));
    if constexpr (ROWS == 16)
        return __builtin_shufflevector(a, b, FL_BLOCK(0), FL_BLOCK(1), FL_BLOCK(2), FL_BLOCK(3));
#undef FL_BLOCK
}

// Transposes: ROWS source rows of four floats -> four rows of ROWS floats. ROWS is 4, 8 or 16, at most LANES.
template <int ROWS>
FL_INLINE void turn(const float *from, int64_t from_row, float *to, int64_t to_row) {
    typedef float V8 __attribute__((vector_size(32)));
    typedef float W __attribute__((vector_size(4 * ROWS)));
    W row[4];  // block b of row[r] is source row 4 * b + r: what is left is to transpose within the blocks
    FL_UNROLL
    for (int r = 0; r < 4; r++) {
        const auto part = [&](int block) __attribute__((always_inline)) {
            return load_as<V4>(from + (4 * block + r) * from_row);
        };
        const auto join = [&](int block) __attribute__((always_inline)) -> V8 {
            return __builtin_shufflevector(part(block), part(block + 1), 0, 1, 2, 3, 4, 5, 6, 7);
        };
        if constexpr (ROWS == 4) row[r] = part(0);
        if constexpr (ROWS == 8) row[r] = join(0);
        if constexpr (ROWS == 16)
            row[r] = __builtin_shufflevector(join(0), join(2), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    }
    const W a = pick<0, 4, 1, 5, ROWS>(row[0], row[1]), b = pick<0, 4, 1, 5, ROWS>(row[2], row[3]);
    const W c = pick<2, 6, 3, 7, ROWS>(row[0], row[1]), d = pick<2, 6, 3, 7, ROWS>(row[2], row[3]);
    store_as(to, pick<0, 1, 4, 5, ROWS>(a, b));
    store_as(to + to_row, pick<2, 3, 6, 7, ROWS>(a, b));
    store_as(to + 2 * to_row, pick<0, 1, 4, 5, ROWS>(c, d));
    store_as(to + 3 * to_row, pick<2, 3, 6, 7, ROWS>(c, d));
}

// The sums of four rows of 16 virtual lanes: ((0+4)+(8+12)) and so on, then the four that are left, as (0+1)+(2+3).
FL_INLINE void sum16(const float (*lanes)[VIRTUAL_LANES], float *to) {
    float part[4][4], turned[4][4];
    FL_UNROLL
    for (int r = 0; r < 4; r++)
        store_as(part[r], (load_as<V4>(lanes[r]) + load_as<V4>(lanes[r] + 4)) +
                              (load_as<V4>(lanes[r] + 8) + load_as<V4>(lanes[r] + 12)));
    turn<4>(part[0], 4, turned[0], 4);
    store_as(to, (load_as<V4>(turned[0]) + load_as<V4>(turned[1])) +
                     (load_as<V4>(turned[2]) + load_as<V4>(turned[3])));
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
