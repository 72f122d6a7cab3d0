// Exponential and logarithm in basic operations, so that the loss does not depend on anyone's libm.
//
// exponential(): round(x / ln 2) is split off in two parts (Cody and Waite), the rest goes into a polynomial. Within
// 1.5 units in the last place; subnormal results are rounded once more.
// logarithm(): after fdlibm's e_log.c. Within 1 unit in the last place of a double.

FL_INLINE V exponential(V x) {
    const V low = broadcast(-105.0f), high = broadcast(89.0f), shift = broadcast(12582912.0f);  // 1.5 * 2^23
    const V number = larger(x, low);  // not a number becomes low, so that the conversion below is defined
    const V clipped = number > high ? high : number;
    const V rounded = fma(clipped, broadcast(1.44269504f), shift) - shift;
    const V rest = fma(rounded, broadcast(-1.42860677e-6f), fma(rounded, broadcast(-0.693145752f), clipped));
    V sum = broadcast(1.9875691500e-4f);
    sum = fma(sum, rest, broadcast(1.3981999507e-3f));
    sum = fma(sum, rest, broadcast(8.3334519073e-3f));
    sum = fma(sum, rest, broadcast(4.1665795894e-2f));
    sum = fma(sum, rest, broadcast(1.6666665459e-1f));
    sum = fma(sum, rest, broadcast(5.0000001201e-1f));
    sum = fma(sum, rest * rest, rest) + 1.0f;
    const VI power = __builtin_convertvector(rounded, VI), half = power >> 1;  // two steps: 2^power may not be a float
    const V result = sum * V((half + 127) << 23) * V((power - half + 127) << 23);
    return x == x ? result : x;
}

static double logarithm(double x) {
    constexpr double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
    constexpr double C1 = 6.666666666666735130e-01, C2 = 3.999999999940941908e-01, C3 = 2.857142874366239149e-01,
                     C4 = 2.222219843214978396e-01, C5 = 1.818357216161805012e-01, C6 = 1.531383769920937332e-01,
                     C7 = 1.479819860511658591e-01;
    if (!(x > 0)) return x == 0 ? -__builtin_inf() : __builtin_nan("");
    if (x > 1.79769313486231570815e308) return x;
    int64_t bits, scaled = 0;
    if (x < 2.2250738585072014e-308) {
        x *= 18014398509481984.0;  // 2^54
        scaled = 54;
    }
    __builtin_memcpy(&bits, &x, sizeof bits);
    const int64_t above = bits - 0x3fe6a09e00000000;  // x = 2^exponent * mantissa, mantissa from sqrt(1/2) to sqrt(2)
    const int64_t exponent = above >> 52;
    bits -= exponent * (int64_t(1) << 52);
    double mantissa;
    __builtin_memcpy(&mantissa, &bits, sizeof mantissa);
    const double f = mantissa - 1, k = double(exponent - scaled), s = f / (2 + f), z = s * s, w = z * z;
    const double even = w * (C2 + w * (C4 + w * C6)), odd = z * (C1 + w * (C3 + w * (C5 + w * C7)));
    const double square = 0.5 * f * f;
    return k * LN2_HIGH - ((square - (s * (square + (even + odd)) + k * LN2_LOW)) - f);
}
