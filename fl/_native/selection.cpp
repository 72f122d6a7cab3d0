#include "functions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "lanes.h"

namespace {

// What services want, and the offers that come of it.
struct Choice {
    Py_ssize_t markets, services, clients;
    const char *wanted;
    const double *payment;
    const int64_t *bid, *budget;
    int64_t *market, *service, *client, *price;
};

constexpr Py_ssize_t FEW = 64;

// What one service wants, each [C + 2 LANES]: clients and payments, the place of each by payment, and that order.
struct Wishes {
    int64_t *clients;
    double *payment;
    int64_t *place, *order;
};

// Orders wishes by payment, the highest first, each by how many are higher. False if some are equal, or there are many.
FL_INLINE bool rank(const Wishes &all, Py_ssize_t count) {
    if (count > FEW) return false;
    for (Py_ssize_t i = 0; i < count; i += 2 * LANES) {
        const Doubles one = load_lanes<Doubles>(all.payment + i), other = load_lanes<Doubles>(all.payment + i + LANES);
        Integers above_one = {}, above_other = {};
        for (Py_ssize_t j = 0; j < count; j++) {
            const Doubles payment = Doubles{} + all.payment[j];
            above_one -= payment > one;
            above_other -= payment > other;
        }
        store_lanes(all.place + i, above_one);
        store_lanes(all.place + i + LANES, above_other);
    }
    int64_t total = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t place = all.place[i];
        asm("" : "+r"(place));  // one by one: a vector that is scattered takes longer
        total += place;
        all.order[place] = all.clients[i];
    }
    return 2 * total == count * (count - 1);  // else some ranks are missing
}

// Puts clients in their order, given by ascending index.
void sort(int64_t *clients, Py_ssize_t count, const double *payment, const int64_t *bid) {
    std::stable_sort(clients, clients + count, [=](int64_t a, int64_t b) {
        return payment[a] > payment[b] || (payment[a] == payment[b] && bid[a] < bid[b]);
    });
}

// Fills in the offers, and returns how many there are.
FL_INLINE void choose_all_in(const Choice &all, const Wishes &wishes, Py_ssize_t *chosen) {
    const char *want = all.wanted;
    const double *pay = all.payment;
    const int64_t *bid = all.bid;
    Py_ssize_t n = 0;
    for (Py_ssize_t r = 0; r < all.markets * all.services; r++, want += all.clients, pay += all.clients, bid += all.clients) {
        Py_ssize_t count = 0;
        for (Py_ssize_t c = 0; c < all.clients; c++) {
            wishes.clients[count] = c;
            wishes.payment[count] = pay[c];
            count += want[c];
        }
        const bool ranked = rank(wishes, count);
        if (!ranked) sort(wishes.clients, count, pay, bid);
        const int64_t *sorted = ranked ? wishes.order : wishes.clients;
        int64_t left = all.budget[r];
        const int64_t market = r / all.services, service = r % all.services;
        for (Py_ssize_t i = 0; i < count; i++) {
            const int64_t c = sorted[i], rounded = std::llrint(pay[c] * double(bid[c]));
            const int64_t price = rounded > bid[c] ? rounded : bid[c];  // rounding may not take it below the bid
            const bool fits = price <= left;
            left -= fits ? price : 0;
            all.market[n] = market;  // written over by the next one, unless it fits
            all.service[n] = service;
            all.client[n] = c;
            all.price[n] = price;
            n += fits;
        }
    }
    *chosen = n;
}
FL_VARIANTS(choose_all, (const Choice &all, const Wishes &wishes, Py_ssize_t *chosen), (all, wishes, chosen))

}  // namespace

namespace fl {

PyObject *choose(PyObject *, PyObject *args) {
    Py_ssize_t markets, services;
    Buffer wanted, payment, bids, budget, market, service, client, price;
    if (!PyArg_ParseTuple(args, "nny*y*y*y*w*w*w*w*", &markets, &services, &wanted.view, &payment.view, &bids.view,
                          &budget.view, &market.view, &service.view, &client.view, &price.view))
        return nullptr;
    const Py_ssize_t rows = budget.count<int64_t>(), all = wanted.view.len, each = rows ? all / rows : 0;
    bool fits = each * rows == all && markets >= 0 && services >= 0 && markets * services == rows &&
                payment.count<double>() == all;
    for (const Buffer *it : {&bids, &market, &service, &client, &price}) fits = fits && it->count<int64_t>() == all;
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "the arrays of a selection must fit each other");
        return nullptr;
    }
    const Py_ssize_t room = each + 2 * LANES;
    int64_t *memory = static_cast<int64_t *>(calloc(size_t(4 * room), sizeof(int64_t)));
    if (!memory) return PyErr_NoMemory();
    const Wishes wishes = {memory, reinterpret_cast<double *>(memory + room), memory + 2 * room, memory + 3 * room};
    Py_ssize_t chosen;
    Py_BEGIN_ALLOW_THREADS
    choose_all({markets, services, each, wanted.as<const char>(), payment.as<const double>(), bids.as<const int64_t>(),
            budget.as<const int64_t>(), market.as<int64_t>(), service.as<int64_t>(), client.as<int64_t>(),
            price.as<int64_t>()},
           wishes, &chosen);
    Py_END_ALLOW_THREADS
    free(memory);
    return PyLong_FromSsize_t(chosen);
}

}  // namespace fl
