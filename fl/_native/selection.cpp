#include "selection.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace {

struct Wish {
    double payment;
    int64_t bid, client;
};

// Whether the second of two wishes goes first, of which the first one has the lower index. No branches: none of the
// comparisons can be foreseen.
inline bool overtakes(const Wish &second, const Wish &first) {
    return (second.payment > first.payment) | ((second.payment == first.payment) & (second.bid < first.bid));
}

constexpr Py_ssize_t FEW = 32;

// Puts wishes in their order, given by ascending clients.
void sort(Wish *wishes, Py_ssize_t count, Wish *sorted) {
    if (count > FEW) {
        std::stable_sort(wishes, wishes + count, [](const Wish &a, const Wish &b) {
            return overtakes(a, b);
        });
        std::copy(wishes, wishes + count, sorted);
        return;
    }
    int place[FEW];  // as many as go before it
    for (Py_ssize_t i = 0; i < count; i++) {
        int before = int(i);
        for (Py_ssize_t j = 0; j < i; j++) {
            const int moves = overtakes(wishes[i], wishes[j]);
            before -= moves;
            place[j] += moves;
        }
        place[i] = before;
    }
    for (Py_ssize_t i = 0; i < count; i++) sorted[place[i]] = wishes[i];
}

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
    Wish *wishes = static_cast<Wish *>(malloc(2 * sizeof(Wish) * size_t(each + 1)));
    if (!wishes) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    const char *want = wanted.as<const char>();
    const double *pay = payment.as<const double>();
    const int64_t *bid = bids.as<const int64_t>(), *most = budget.as<const int64_t>();
    int64_t *client = clients.as<int64_t>(), *price = prices.as<int64_t>(), *count = counts.as<int64_t>();
    Wish *const sorted = wishes + each + 1;
    Py_ssize_t chosen = 0;
    for (Py_ssize_t r = 0; r < rows; r++, want += each, pay += each, bid += each) {
        Py_ssize_t number = 0;
        for (Py_ssize_t c = 0; c < each; c++) {
            wishes[number] = {pay[c], bid[c], c};
            number += want[c];
        }
        sort(wishes, number, sorted);
        int64_t left = most[r];
        const Py_ssize_t before = chosen;
        for (const Wish *it = sorted; it != sorted + number; it++) {
            const int64_t rounded = std::llrint(it->payment * double(it->bid));
            const int64_t paid = rounded > it->bid ? rounded : it->bid;  // rounding may not take it below the bid
            const bool fits = paid <= left;
            left -= fits ? paid : 0;
            client[chosen] = it->client;  // written over by the next one, unless it fits
            price[chosen] = paid;
            chosen += fits;
        }
        count[r] = chosen - before;
    }
    Py_END_ALLOW_THREADS
    free(wishes);
    Py_RETURN_NONE;
}

}  // namespace fl
