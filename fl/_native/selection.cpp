#include "selection.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace {

struct Wish {
    double payment;
    int64_t bid;
    int32_t client;

    bool operator<(const Wish &other) const {
        if (payment != other.payment) return payment > other.payment;
        if (bid != other.bid) return bid < other.bid;
        return client < other.client;
    }
};

}  // namespace

namespace fl {

PyObject *by_payment(PyObject *, PyObject *args) {
    Buffer wanted, payment, bids, budget, clients, prices, counts;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*w*w*", &wanted.view, &payment.view, &bids.view, &budget.view, &clients.view,
                          &prices.view, &counts.view))
        return nullptr;
    const Py_ssize_t rows = budget.count<int64_t>(), all = wanted.view.len;
    const Py_ssize_t each = rows ? all / rows : 0;
    if (each * rows != all || payment.count<double>() != all || bids.count<int64_t>() != all ||
        clients.count<int64_t>() != all || prices.count<int64_t>() != all || counts.count<int64_t>() != rows ||
        each > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "the arrays of a selection must fit each other");
        return nullptr;
    }
    Wish *wishes = static_cast<Wish *>(malloc(sizeof(Wish) * size_t(each) + 1));
    if (!wishes) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    const char *want = wanted.as<const char>();
    const double *pay = payment.as<const double>();
    const int64_t *bid = bids.as<const int64_t>(), *most = budget.as<const int64_t>();
    int64_t *client = clients.as<int64_t>(), *price = prices.as<int64_t>(), *count = counts.as<int64_t>();
    for (Py_ssize_t r = 0; r < rows; r++, want += each, pay += each, bid += each) {
        Wish *end = wishes;
        for (Py_ssize_t c = 0; c < each; c++)
            if (want[c]) *end++ = {pay[c], bid[c], int32_t(c)};
        std::sort(wishes, end);
        int64_t left = most[r];
        count[r] = 0;
        for (const Wish *it = wishes; it != end; it++) {
            const int64_t rounded = int64_t(std::nearbyint(it->payment * double(it->bid)));
            const int64_t paid = rounded > it->bid ? rounded : it->bid;  // rounding may not take it below the bid
            if (paid > left) continue;
            left -= paid;
            *client++ = it->client;
            *price++ = paid;
            count[r]++;
        }
    }
    Py_END_ALLOW_THREADS
    free(wishes);
    Py_RETURN_NONE;
}

}  // namespace fl
