// Functions of numbers and arrays, operation by operation those of fl/arithmetic/elementary.py: the same bits.
#include <cmath>
#include <cstring>

#include "elementary_lanes.h"
#include "functions.h"

namespace {

inline double exponential_of(double x) {
    if (x != x) return x;
    const double limited = x < LEAST ? LEAST : x > MOST ? MOST : x, whole = rint(limited * PER_LN2);
    return ldexp(polynomial(EXP, limited - whole * LN2_HIGH - whole * LN2_LOW), int(whole));
}

inline double logarithm_of(double x) {
    if (!(x > 0.0)) return x == 0.0 ? -HUGE_VAL : double(NAN);
    if (x == HUGE_VAL) return x;
    int exponent;
    double part = frexp(x, &exponent);
    if (part < SQRT_HALF) {
        part += part;
        exponent--;
    }
    const double ratio = (part - 1.0) / (part + 1.0), times = exponent;
    return times * LN2_HIGH + (2.0 * ratio * polynomial(LOG, ratio * ratio) + times * LN2_LOW);
}

template <class F>
FL_INLINE void each_in(const double *x, Py_ssize_t count, double *result, F &&f) {
    Py_ssize_t i = 0;
    for (; i + LANES <= count; i += LANES) store_lanes(result + i, f(load_lanes<Doubles>(x + i)));
    if (i == count) return;
    double rest[LANES] = {};
    memcpy(rest, x + i, sizeof(double) * size_t(count - i));
    store_lanes(rest, f(load_lanes<Doubles>(rest)));
    memcpy(result + i, rest, sizeof(double) * size_t(count - i));
}
FL_INLINE void exponentials_in(const double *x, Py_ssize_t count, double *result) {
    each_in(x, count, result, [](Doubles v) __attribute__((always_inline)) { return exponential_of(v); });
}
FL_INLINE void logarithms_in(const double *x, Py_ssize_t count, double *result) {
    each_in(x, count, result, [](Doubles v) __attribute__((always_inline)) { return logarithm_of(v); });
}
FL_VARIANTS(exponentials, (const double *x, Py_ssize_t count, double *result), (x, count, result))
FL_VARIANTS(logarithms, (const double *x, Py_ssize_t count, double *result), (x, count, result))

constexpr double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9, 1e10,
                           1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20};

// Wichura's coefficients: near the middle (A / B), in the tails (C / D), far out (E / F).
constexpr double A[] = {2.5090809287301226727e3,  3.3430575583588128105e4, 6.7265770927008700853e4,
                        4.5921953931549871457e4,  1.3731693765509461125e4, 1.9715909503065514427e3,
                        1.3314166789178437745e2,  3.3871328727963666080e0};
constexpr double B[] = {5.2264952788528545610e3,  2.8729085735721942674e4, 3.9307895800092710610e4,
                        2.1213794301586595867e4,  5.3941960214247511077e3, 6.8718700749205790830e2,
                        4.2313330701600911252e1,  1.0};
constexpr double C[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
                        1.27045825245236838258e0,  3.64784832476320460504e0,  5.76949722146069140550e0,
                        4.63033784615654529590e0,  1.42343711074968357734e0};
constexpr double D[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
                        1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
                        2.05319162663775882187e0,  1.0};
constexpr double E[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
                        2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
                        5.46378491116411436990e0,  6.65790464350110377720e0};
constexpr double F[] = {2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
                        7.86869131145613259100e-4,  1.48753612908506148525e-2, 1.36929880922735805310e-1,
                        5.99832206555887937690e-1,  1.0};

FL_INLINE Doubles quantile_of(Doubles p) {
    const Doubles zero = {}, middle = p - 0.5, square = 0.180625 - middle * middle;
    const Doubles near_middle = middle * polynomial(A, square) / polynomial(B, square);
    const Integers tails = (middle < zero ? -middle : middle) > zero + 0.425;
    if (!any_lane(tails)) return near_middle;
    const Doubles other = 1.0 - p, part = other < p ? other : p;
    const Doubles away = square_root_of(-logarithm_of(tails ? part : zero + 0.5)), near = away - 1.6, far = away - 5.0;
    const Doubles sign = middle < zero ? zero - 1.0 : zero + 1.0;
    const Doubles one = polynomial(C, near) / polynomial(D, near), two = polynomial(E, far) / polynomial(F, far);
    return tails ? sign * (away <= zero + 5.0 ? one : two) : near_middle;
}
FL_INLINE void quantiles_in(const double *p, Py_ssize_t count, double *result) {
    each_in(p, count, result, [](Doubles v) __attribute__((always_inline)) { return quantile_of(v); });
}
FL_VARIANTS(quantiles, (const double *p, Py_ssize_t count, double *result), (p, count, result))

template <class F>
PyObject *each(PyObject *args, F &&f) {
    Buffer x, result;
    if (!PyArg_ParseTuple(args, "y*w*", &x.view, &result.view)) return nullptr;
    if (x.view.len != result.view.len) {
        PyErr_SetString(PyExc_ValueError, "the result has another length");
        return nullptr;
    }
    const DefaultArithmetic arithmetic;
    f(x.as<const double>(), x.count<double>(), result.as<double>());
    Py_RETURN_NONE;
}

#if defined(__x86_64__)
fl::Width widest() {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return fl::Width::avx512;
    return __builtin_cpu_supports("avx2") ? fl::Width::avx2 : fl::Width::plain;
}
#else
fl::Width widest() { return fl::Width::plain; }
#endif

}  // namespace

namespace fl {

Width width = widest();

PyObject *vectors(PyObject *, PyObject *number) {
    const long wanted = PyLong_AsLong(number);
    if (wanted == -1 && PyErr_Occurred()) return nullptr;
    width = wanted < long(widest()) ? Width(wanted) : widest();
    return PyLong_FromLong(long(width));
}

PyObject *exponential(PyObject *, PyObject *x) {
    const double number = PyFloat_AsDouble(x);
    if (number == -1.0 && PyErr_Occurred()) return nullptr;
    if (number != number) {
        PyErr_SetString(PyExc_ValueError, "cannot convert float NaN to integer");
        return nullptr;
    }
    const DefaultArithmetic arithmetic;
    return PyFloat_FromDouble(exponential_of(number));
}

PyObject *natural_logarithm(PyObject *, PyObject *x) {
    const double number = PyFloat_AsDouble(x);
    if (number == -1.0 && PyErr_Occurred()) return nullptr;
    if (!(number > 0.0) || number == HUGE_VAL) {
        PyErr_Format(PyExc_ValueError, "only positive finite numbers have a logarithm, not %S", x);
        return nullptr;
    }
    const DefaultArithmetic arithmetic;
    return PyFloat_FromDouble(logarithm_of(number));
}

PyObject *exponentials(PyObject *, PyObject *args) { return each(args, ::exponentials); }
PyObject *normal_quantiles(PyObject *, PyObject *args) { return each(args, ::quantiles); }

PyObject *round_by_scaling(PyObject *, PyObject *args) {
    Buffer x, result, certain;
    if (!PyArg_ParseTuple(args, "y*w*w*", &x.view, &result.view, &certain.view)) return nullptr;
    if (x.view.len != result.view.len || x.count<double>() != certain.view.len) {
        PyErr_SetString(PyExc_ValueError, "the results have another length");
        return nullptr;
    }
    const DefaultArithmetic arithmetic;
    bool all = true;
    for (Py_ssize_t i = 0; i < certain.view.len; i++) {
        const double number = x.as<const double>()[i], size = number < 0.0 ? -number : number;
        const bool usual = size >= 1e-9 && size < 1e11;
        // Of ten: the product has 12 digits before the point. The binary exponent tells it, but for one or two.
        uint64_t bits;
        memcpy(&bits, &size, sizeof bits);
        const int most = 13 - (int(bits >> 52) - 1023) * 1233 / 4096;
        int power = !usual || most > 20 ? 20 : most;
        while (usual && power > 1 && size * TENS[power] >= 1e12) power--;
        const double product = usual ? size * TENS[power] : 0.0, whole = (product + SHIFT) - SHIFT;
        const double distance = product > whole ? product - whole : whole - product;
        const bool sure = usual && distance != 0.5 && product >= 1.001e11 && product < 9.99e11;
        certain.as<char>()[i] = sure;
        result.as<double>()[i] = copysign(whole / TENS[power], number);
        all = all && sure;
    }
    return PyBool_FromLong(all);
}

PyObject *natural_logarithms(PyObject *, PyObject *args) { return each(args, ::logarithms); }

}  // namespace fl
