#include "functions.h"

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

}  // namespace

namespace fl {

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

}  // namespace fl
