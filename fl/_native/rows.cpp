// The rows of observations and actions that learners take: see learning/lockstep/vector_env.py.
#include <cstring>

#include "lanes.h"
#include "functions.h"

namespace {

// Of one service: whom it selects, and what it would pay; whether it is proper, too, as decode() says.
FL_INLINE void decode_row_in(const double *action, const char *exists, char acts, int64_t clients, double limit,
                             char *select, double *pay, bool *proper) {
    int64_t without = 0;
    for (int64_t c = 0; c < 2 * clients; c++) without += !(action[c] >= -1.0 && action[c] <= 1.0);
    *proper = *proper && (!without || !acts);
    for (int64_t c = 0; c < clients; c++) select[c] = (action[c] > 0.0) & exists[c] & acts;
    for (int64_t c = 0; c < clients; c++) {
        const double value = 1.0 + (action[clients + c] + 1.0) / 2.0 * (limit - 1.0);
        pay[c] = value > limit ? limit : value;
    }
}
FL_VARIANTS(decode_row,
            (const double *action, const char *exists, char acts, int64_t clients, double limit, char *select,
             double *pay, bool *proper),
            (action, exists, acts, clients, limit, select, pay, proper))

PyObject *misfit() {
    PyErr_SetString(PyExc_ValueError, "the arrays of rows must fit each other");
    return nullptr;
}

}  // namespace

namespace fl {

PyObject *decode(PyObject *, PyObject *args) {
    Buffer actions, asked, there, selected, payment;
    double limit;
    if (!PyArg_ParseTuple(args, "y*y*y*dw*w*", &actions.view, &asked.view, &there.view, &limit, &selected.view,
                          &payment.view))
        return nullptr;
    const Py_ssize_t rows = asked.view.len, all = selected.view.len, clients = rows ? all / rows : 0;
    const Py_ssize_t markets = clients ? there.view.len / clients : 0, services = markets ? rows / markets : 0;
    if (clients * rows != all || actions.count<double>() != 2 * all || payment.count<double>() != all ||
        markets * clients != there.view.len || services * markets != rows)
        return misfit();
    const DefaultArithmetic arithmetic;
    bool proper = true;
    for (Py_ssize_t r = 0; r < rows; r++) {
        decode_row(actions.as<const double>() + 2 * r * clients, there.as<const char>() + r / services * clients,
                   asked.as<const char>()[r], clients, limit, selected.as<char>() + r * clients,
                   payment.as<double>() + r * clients, &proper);
    }
    return PyBool_FromLong(proper);
}

PyObject *observe(PyObject *, PyObject *args) {
    Py_ssize_t markets, services;
    Buffer at, dqi, bids, present, rows;
    if (!PyArg_ParseTuple(args, "nny*y*y*y*w*", &markets, &services, &at.view, &dqi.view, &bids.view, &present.view,
                          &rows.view))
        return nullptr;
    const Py_ssize_t all = at.count<int64_t>(), table = dqi.count<float>(), own = markets * services;
    const Py_ssize_t clients = own > 0 ? all / own : 0, width = own > 0 ? rows.count<float>() / own : 0;
    if (markets < 0 || services < 0 || bids.count<float>() != table || present.view.len != own ||
        clients * own != all || width * own != rows.count<float>() || width < (1 + services) * clients)
        return misfit();
    const int64_t *place = at.as<const int64_t>();
    for (Py_ssize_t i = 0; i < all; i++)
        if (uint64_t(place[i]) >= uint64_t(table)) return misfit();
    const float *quality = dqi.as<const float>(), *bid = bids.as<const float>();
    const char *here = present.as<const char>();
    const size_t bytes = sizeof(float) * size_t(clients);
    for (Py_ssize_t b = 0; b < markets; b++, here += services, place += services * clients) {
        float *first = rows.as<float>() + b * services * width;
        for (Py_ssize_t m = 0; m < services; m++) {
            float *row = first + m * width;
            for (Py_ssize_t c = 0; c < clients; c++) row[c] = quality[place[m * clients + c]];
            for (Py_ssize_t c = 0; c < clients; c++) row[clients + c] = here[m] ? bid[place[m * clients + c]] : 0.0f;
        }
        for (Py_ssize_t m = 0; m < services; m++) {
            float *to = first + m * width + 2 * clients;
            for (Py_ssize_t other = 0; other < services; other++)
                if (other != m) {
                    memcpy(to, first + other * width + clients, bytes);
                    to += clients;
                }
        }
    }
    Py_RETURN_NONE;
}

}  // namespace fl
