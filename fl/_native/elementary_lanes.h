// exp, log and the square root of eight numbers, in the operations of fl/arithmetic/elementary.py: the same bits.
#pragma once
#include <cmath>

#include "lanes.h"

namespace {

constexpr double LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 1.90821492927058770002e-10, PER_LN2 = 1.4426950408889634;
constexpr double SQRT_HALF = 0.7071067811865476, LEAST = -746.0, MOST = 710.0;

// 1 / n!, and 1 / n for odd n; the highest power first.
constexpr double EXP[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                          1.0 / 40320,      1.0 / 5040,      1.0 / 720,      1.0 / 120,     1.0 / 24,
                          1.0 / 6,          1.0 / 2,         1.0,            1.0};
constexpr double LOG[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                          1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};

template <int N, class Number>
FL_INLINE Number polynomial(const double (&coefficients)[N], Number x) {
    Number value = coefficients[0] * x + coefficients[1];
    for (int i = 2; i < N; i++) value = value * x + coefficients[i];
    return value;
}

// Added to a number below 2^51, it rounds that to a whole number, which then stands in the lowest bits.
constexpr double SHIFT = 0x1.8p52;

FL_INLINE Integers bits_of(Doubles x) { return reinterpret_cast<Integers>(x); }
FL_INLINE Doubles numbers_of(Integers bits) { return reinterpret_cast<Doubles>(bits); }

// 2^n for whole numbers, -1022 <= n <= 1023.
FL_INLINE Doubles power_of_two(Doubles n) {
    return numbers_of((bits_of(n + SHIFT) - bits_of(Doubles{} + SHIFT) + 1023) << 52);
}

FL_INLINE Doubles exponential_of(Doubles x) {
    const Doubles least = Doubles{} + LEAST, most = Doubles{} + MOST;
    const Doubles below = x < least ? least : x, limited = below > most ? most : below;
    const Doubles whole = (limited * PER_LN2 + SHIFT) - SHIFT, half = (0.5 * whole + SHIFT) - SHIFT;
    // As ldexp(), in two steps, because 2^whole may not be a float; the first one is exact.
    const Doubles part = polynomial(EXP, limited - whole * LN2_HIGH - whole * LN2_LOW) * power_of_two(half);
    return x == x ? part * power_of_two(whole - half) : x;
}

FL_INLINE Doubles logarithm_of(Doubles x) {
    const Doubles zero = {}, one = zero + 1.0, infinite = zero + HUGE_VAL, smallest = zero + 0x1p-1022;
    const Integers proper = (x > zero) & (x < infinite), subnormal = x < smallest;
    const Doubles number = proper ? (subnormal ? x * 0x1p54 : x) : one;
    // As frexp(): part is in [0.5, 1).
    const Integers bits = bits_of(number);
    Doubles part = numbers_of((bits & 0x000fffffffffffff) | 0x3fe0000000000000);
    Doubles times = (numbers_of(Integers(Words(bits) >> 52) | 0x4330000000000000) - 0x1p52) - 1022.0;
    times = subnormal ? times - 54.0 : times;
    const Integers small = part < zero + SQRT_HALF;
    part = small ? part + part : part;
    times = small ? times - 1.0 : times;
    const Doubles ratio = (part - 1.0) / (part + 1.0);
    const Doubles found = times * LN2_HIGH + (2.0 * ratio * polynomial(LOG, ratio * ratio) + times * LN2_LOW);
    const Doubles improper = x == zero ? -infinite : x > zero ? x : zero + double(NAN);
    return proper ? found : improper;
}

FL_INLINE Doubles square_root_of(Doubles x) {
    for (int l = 0; l < LANES; l++) x[l] = std::sqrt(x[l]);
    return x;
}

FL_INLINE bool any_lane(Integers mask) {
    int64_t any = 0;
    for (int l = 0; l < LANES; l++) any |= mask[l];
    return any != 0;
}

}  // namespace
