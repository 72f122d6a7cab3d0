// The surrogate's learning curves, eight services at once: operation by operation follow() of fl/surrogate.py.
#include <cstring>
#include <initializer_list>

#include "elementary_lanes.h"
#include "functions.h"

namespace {

enum Parameter {
    START, FLOOR, STEP_0, STEP_SIZE, STEP_CLIENTS, STEP_EMD, FIRST_SIZE, FIRST_CLIENTS, FIRST_EMD, DECAY, SHAPE,
    DRIFT_EMD, DRIFT_LEFT, SPREAD_0, SPREAD_PROGRESS, SPREAD_LEFT, SKEW, LUCK, USED
};

struct Services {
    Py_ssize_t count;
    const double *curves, *u, *luck, *z, *weighted;
    const int64_t *samples, *weights, *squares;
    double *new_u, *accuracy;
};

FL_INLINE Doubles floats_of(Integers x) {
    Doubles result;
    for (int l = 0; l < LANES; l++) result[l] = double(x[l]);
    return result;
}

FL_INLINE void follow_all_in(const Services &all) {
    const Doubles zero = {};
    for (Py_ssize_t i = 0; i < all.count; i += LANES) {
        const size_t lanes = size_t(all.count - i < LANES ? all.count - i : LANES);
        const auto take = [&](const auto *from, auto vector) __attribute__((always_inline)) {
            if (lanes < LANES)
                memcpy(&vector, from + i, 8 * lanes);
            else
                vector = load_lanes<decltype(vector)>(from + i);
            return vector;
        };
        const auto c = [&](Parameter p) __attribute__((always_inline)) { return take(all.curves + p * all.count, Doubles{}); };
        const Integers images = take(all.samples, Integers{}), trains = images > 0, ones = Integers{} + 1;
        if (!any_lane(trains)) continue;
        const Integers weights_ = trains ? take(all.weights, Integers{}) : ones;
        const Integers squares_ = trains ? take(all.squares, Integers{}) : ones;
        const Doubles weighted = trains ? take(all.weighted, Doubles{}) : zero + 1.0;
        const Doubles samples = floats_of(trains ? images : ones), weights = floats_of(weights_);
        const Doubles squares = floats_of(squares_), before = take(all.u, Doubles{});
        const Doubles luck = take(all.luck, Doubles{}), z = take(all.z, Doubles{});

        const Doubles a = logarithm_of(samples / 400.0), b = logarithm_of(floats_of(weights_ * weights_) / squares);
        const Doubles v = weighted / weights, s = v * square_root_of(squares) / weights;
        const Doubles first = c(FIRST_SIZE) * a + c(FIRST_CLIENTS) * b + c(FIRST_EMD) * v + c(LUCK) * luck;
        const Doubles step = c(STEP_0) + c(STEP_SIZE) * a + c(STEP_CLIENTS) * b + c(STEP_EMD) * v;
        const Doubles u = before + exponential_of(step + first / (1.0 + before));
        const Doubles spread = exponential_of(c(SPREAD_0) + c(SPREAD_PROGRESS) * logarithm_of(1.0 + u) + c(SPREAD_LEFT) * s);
        const Doubles skew = c(SKEW);
        const Doubles noise = spread * (z + skew * (z * z - 1.0)) / square_root_of(1.0 + 2.0 * skew * skew);
        const Doubles drift = (c(DRIFT_EMD) * v + c(DRIFT_LEFT) * s) * u / (1.0 + u);
        const Doubles shape = c(SHAPE), power = exponential_of(shape * logarithm_of(u));
        const Doubles change = drift + noise - c(DECAY) / shape * logarithm_of(1.0 + power);
        const Doubles falling = 0.5 * (change - (change < zero ? -change : change));
        const Doubles error = c(FLOOR) + (c(START) - c(FLOOR)) * exponential_of(falling);

        const Doubles new_u = trains ? u : take(all.new_u, Doubles{});
        const Doubles accuracy = trains ? 1.0 - error : take(all.accuracy, Doubles{});
        memcpy(all.new_u + i, &new_u, 8 * lanes);
        memcpy(all.accuracy + i, &accuracy, 8 * lanes);
    }
}
FL_VARIANTS(follow_all, (const Services &all), (all))

}  // namespace

namespace fl {

PyObject *follow(PyObject *, PyObject *args) {
    Buffer curves, u, luck, z, samples, weights, weighted, squares, new_u, accuracy;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*y*w*w*", &curves.view, &u.view, &luck.view, &z.view, &samples.view,
                          &weights.view, &weighted.view, &squares.view, &new_u.view, &accuracy.view))
        return nullptr;
    const Py_ssize_t length = u.view.len;
    for (const Buffer *it : {&luck, &z, &samples, &weights, &weighted, &squares, &new_u, &accuracy})
        if (it->view.len != length || curves.view.len < USED * length) {
            PyErr_SetString(PyExc_ValueError, "the arrays of learning curves must fit each other");
            return nullptr;
        }
    const DefaultArithmetic arithmetic;
    follow_all({u.count<double>(), curves.as<const double>(), u.as<const double>(), luck.as<const double>(),
                z.as<const double>(), weighted.as<const double>(), samples.as<const int64_t>(),
                weights.as<const int64_t>(), squares.as<const int64_t>(), new_u.as<double>(), accuracy.as<double>()});
    Py_RETURN_NONE;
}

}  // namespace fl
