// exp and log for numbers and arrays, operation by operation those of fl/elementary.py: the same bits.
#include <cmath>

#include "world.h"

namespace {

constexpr double LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 1.90821492927058770002e-10, PER_LN2 = 1.4426950408889634;
constexpr double SQRT_HALF = 0.7071067811865476, LEAST = -746.0, MOST = 710.0;

// 1 / n!, and 1 / n for odd n; the highest power first.
constexpr double EXP[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                          1.0 / 40320,      1.0 / 5040,      1.0 / 720,      1.0 / 120,     1.0 / 24,
                          1.0 / 6,          1.0 / 2,         1.0,            1.0};
constexpr double LOG[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                          1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};

template <int N>
inline double polynomial(const double (&coefficients)[N], double x) {
    double value = coefficients[0] * x + coefficients[1];
    for (int i = 2; i < N; i++) value = value * x + coefficients[i];
    return value;
}

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
PyObject *each(PyObject *args, F &&f) {
    Buffer x, result;
    if (!PyArg_ParseTuple(args, "y*w*", &x.view, &result.view)) return nullptr;
    if (x.view.len != result.view.len) {
        PyErr_SetString(PyExc_ValueError, "the result has another length");
        return nullptr;
    }
    const DefaultArithmetic arithmetic;
    for (Py_ssize_t i = 0; i < x.count<double>(); i++) result.as<double>()[i] = f(x.as<const double>()[i]);
    Py_RETURN_NONE;
}

}  // namespace

namespace fl {

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

PyObject *exponentials(PyObject *, PyObject *args) { return each(args, exponential_of); }
PyObject *natural_logarithms(PyObject *, PyObject *args) { return each(args, logarithm_of); }

}  // namespace fl
