#include "rounds.h"

#include <cstdlib>

namespace {

constexpr int64_t NO_CORE = -1, TIED = -2;

// A buffer of the C library's, given back when it goes out of scope.
struct Scratch {
    void *const memory;
    explicit Scratch(size_t bytes) : memory(calloc(bytes + 1, 1)) {}
    ~Scratch() { free(memory); }
};

PyObject *misfit() {
    PyErr_SetString(PyExc_ValueError, "the arrays of a round must fit each other");
    return nullptr;
}

inline bool below(int64_t index, int64_t count) { return uint64_t(index) < uint64_t(count); }

}  // namespace

namespace fl {

PyObject *begin(PyObject *, PyObject *args) {
    Buffer playing, number, arrival, online, status, budget, asked, available;
    long long waiting, training;
    if (!PyArg_ParseTuple(args, "y*y*y*y*LLw*w*w*w*", &playing.view, &number.view, &arrival.view, &online.view, &waiting,
                          &training, &status.view, &budget.view, &asked.view, &available.view))
        return nullptr;
    const int64_t markets = playing.view.len, rows = asked.view.len, places = available.view.len;
    const int64_t services = markets ? rows / markets : 0, clients = rows ? places / rows : 0;
    if (services * markets != rows || clients * rows != places || number.count<int64_t>() != markets ||
        arrival.count<int64_t>() != rows || status.count<int64_t>() != rows || budget.count<int64_t>() != rows ||
        online.view.len != markets * clients)
        return misfit();
    for (int64_t row = 0; row < rows; row++) {
        const int64_t b = row / services;
        const bool plays = playing.as<const char>()[b];
        int64_t &now = status.as<int64_t>()[row];
        if (plays && now == waiting && arrival.as<const int64_t>()[row] <= number.as<const int64_t>()[b]) now = training;
        if (now == waiting) budget.as<int64_t>()[row] = 0;
        const char takes_part = plays && now == training;
        asked.as<char>()[row] = takes_part;
        const char *there = online.as<const char>() + b * clients;
        char *can = available.as<char>() + row * clients;
        for (int64_t c = 0; c < clients; c++) can[c] = there[c] & takes_part;
    }
    Py_RETURN_NONE;
}

PyObject *settle(PyObject *, PyObject *args) {
    Buffer spent, received, budget, total, paid, income;
    Py_ssize_t markets;
    if (!PyArg_ParseTuple(args, "ny*y*y*y*w*w*", &markets, &spent.view, &received.view, &budget.view, &total.view,
                          &paid.view, &income.view))
        return nullptr;
    const int64_t rows = paid.count<int64_t>(), places = income.count<int64_t>();
    const int64_t services = markets > 0 ? rows / markets : 0, clients = markets > 0 ? places / markets : 0;
    if (services * markets != rows || clients * markets != places || spent.count<int64_t>() != rows ||
        budget.count<int64_t>() != rows || total.count<int64_t>() != rows || received.count<int64_t>() != places)
        return misfit();
    int64_t *in_all = paid.as<int64_t>(), *earned = income.as<int64_t>();
    const int64_t *now = spent.as<const int64_t>(), *got = received.as<const int64_t>();
    bool fine = true;
    for (int64_t b = 0; b < markets; b++) {
        uint64_t out = 0, in = 0;
        for (int64_t row = b * services; row < (b + 1) * services; row++) {
            const uint64_t sum = uint64_t(in_all[row]) + uint64_t(now[row]);
            fine &= now[row] <= budget.as<const int64_t>()[row] && int64_t(sum) <= total.as<const int64_t>()[row];
            out += sum;
        }
        for (int64_t place = b * clients; place < (b + 1) * clients; place++)
            in += uint64_t(earned[place]) + uint64_t(got[place]);
        fine &= in == out;
    }
    for (int64_t row = 0; fine && row < rows; row++) in_all[row] += now[row];
    for (int64_t place = 0; fine && place < places; place++) earned[place] += got[place];
    return PyBool_FromLong(fine);
}

PyObject *proper(PyObject *, PyObject *args) {
    Buffer market, service, client, payment, asks, available, budget, asked, over;
    long long most;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*y*y*L", &market.view, &service.view, &client.view, &payment.view,
                          &asks.view, &available.view, &budget.view, &asked.view, &over.view, &most))
        return nullptr;
    const int64_t n = market.count<int64_t>(), rows = asked.view.len, places = available.view.len;
    const int64_t markets = over.view.len, services = markets ? rows / markets : 0, clients = rows ? places / rows : 0;
    if (service.view.len != market.view.len || client.view.len != market.view.len ||
        payment.view.len != market.view.len || asks.count<int64_t>() != places || budget.count<int64_t>() != rows ||
        services * markets != rows || clients * rows != places)
        return misfit();
    const Scratch wanted{size_t(places)};  // whom each service has offered something
    if (!wanted.memory) return PyErr_NoMemory();
    char *known = static_cast<char *>(wanted.memory);
    int64_t last = 0;
    uint64_t total = 0;
    bool fine = true;
    for (int64_t i = 0; fine && i < n; i++) {
        const int64_t b = market.as<const int64_t>()[i], m = service.as<const int64_t>()[i];
        const int64_t c = client.as<const int64_t>()[i], paid = payment.as<const int64_t>()[i];
        if (!below(b, markets) || !below(m, services) || !below(c, clients)) {
            fine = false;
            break;
        }
        const int64_t row = b * services + m, place = row * clients + c, limit = budget.as<const int64_t>()[row];
        const bool exceeds = over.as<const char>()[b];
        total = row == last ? total + uint64_t(paid) : uint64_t(paid);
        fine = row >= last && asked.as<const char>()[row] && available.as<const char>()[place] && !known[place] &&
               paid >= asks.as<const int64_t>()[place] && paid <= (exceeds ? most : limit) &&
               (exceeds || int64_t(total) <= limit);
        known[place] = 1;
        last = row;
    }
    return PyBool_FromLong(fine);
}

PyObject *highest(PyObject *, PyObject *args) {
    Buffer service, client, payment, core;
    long long cores;
    if (!PyArg_ParseTuple(args, "y*y*y*Lw*", &service.view, &client.view, &payment.view, &cores, &core.view))
        return nullptr;
    const int64_t n = client.count<int64_t>();
    if (service.view.len != client.view.len || payment.view.len != client.view.len ||
        core.view.len != client.view.len || cores < 1)
        return misfit();
    const int64_t *clients = client.as<const int64_t>(), *services = service.as<const int64_t>();
    const int64_t *paid = payment.as<const int64_t>();
    int64_t *result = core.as<int64_t>(), last = -1, tied = 0;
    for (int64_t i = 0; i < n; i++) {
        if (clients[i] < 0) return misfit();
        if (clients[i] > last) last = clients[i];
    }
    // The offers to each client, one client after another: from start[c] to start[c + 1].
    const Scratch memory{sizeof(int64_t) * size_t(last + 3 + n)};
    if (!memory.memory) return PyErr_NoMemory();
    int64_t *start = static_cast<int64_t *>(memory.memory), *order = start + last + 3;
    for (int64_t i = 0; i < n; i++) start[clients[i] + 2]++;
    for (int64_t c = 0; c <= last; c++) start[c + 2] += start[c + 1];
    for (int64_t i = 0; i < n; i++) order[start[clients[i] + 1]++] = i;
    for (int64_t c = 0; c <= last; c++) {
        int64_t *own = order + start[c];
        const int64_t count = start[c + 1] - start[c];
        for (int64_t i = 1; i < count; i++) {  // few: by insertion, the highest payment first, then the lower service
            const int64_t offer = own[i];
            int64_t j = i;
            for (; j > 0; j--) {
                const int64_t other = own[j - 1];
                if (paid[other] > paid[offer] || (paid[other] == paid[offer] && services[other] <= services[offer]))
                    break;
                own[j] = other;
            }
            own[j] = offer;
        }
        // A tie matters only where it straddles the last core.
        const bool tie = count > cores && paid[own[cores]] == paid[own[cores - 1]];
        for (int64_t i = 0; i < count; i++) result[own[i]] = tie ? TIED : i < cores ? i : NO_CORE;
        tied += tie ? count : 0;
    }
    return PyLong_FromLongLong(tied);
}

PyObject *totals(PyObject *, PyObject *args) {
    Buffer served, market, service, client, price, at, size, weight, emd, counts, weighted, income;
    Py_ssize_t markets;
    if (!PyArg_ParseTuple(args, "ny*y*y*y*y*y*y*y*y*w*w*w*", &markets, &served.view, &market.view, &service.view, &client.view,
                          &price.view, &at.view, &size.view, &weight.view, &emd.view, &counts.view, &weighted.view,
                          &income.view))
        return nullptr;
    const int64_t n = served.view.len, table = size.count<int64_t>(), rows = weighted.count<double>();
    const int64_t services = markets > 0 ? rows / markets : 0, clients = markets > 0 ? income.count<int64_t>() / markets : 0;
    if (market.count<int64_t>() != n || service.count<int64_t>() != n || client.count<int64_t>() != n ||
        price.count<int64_t>() != n || at.count<int64_t>() != n || weight.count<int64_t>() != table ||
        emd.count<double>() != table || counts.count<int64_t>() != 5 * rows || services * markets != rows)
        return misfit();
    int64_t *count = counts.as<int64_t>(), *spent = count + rows, *samples = spent + rows;
    int64_t *weights = samples + rows, *squares = weights + rows;
    const DefaultArithmetic arithmetic;
    for (int64_t i = 0; i < n; i++) {
        if (!served.as<const char>()[i]) continue;
        const int64_t b = market.as<const int64_t>()[i], m = service.as<const int64_t>()[i];
        const int64_t c = client.as<const int64_t>()[i], place = at.as<const int64_t>()[i];
        if (!below(b, markets) || !below(m, services) || !below(c, clients) || !below(place, table)) return misfit();
        const int64_t row = b * services + m, paid = price.as<const int64_t>()[i];
        const int64_t w = weight.as<const int64_t>()[place];
        count[row]++;
        spent[row] += paid;
        samples[row] += size.as<const int64_t>()[place];
        weights[row] += w;
        squares[row] += w * w;
        weighted.as<double>()[row] += double(w) * emd.as<const double>()[place];
        income.as<int64_t>()[b * clients + c] += paid;
    }
    Py_RETURN_NONE;
}

}  // namespace fl
