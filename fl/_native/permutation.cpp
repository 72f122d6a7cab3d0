// The permutation of a keyed stream, see fl/arithmetic/streams.py: NumPy's Generator.permutation with PCG64, whose words
// and order of draws are followed one by one.
#include <cstdlib>

#include "functions.h"

namespace {

using Wide = unsigned __int128;

// PCG64 (O'Neill, "PCG: A family of simple fast space-efficient statistically good algorithms", 2014: XSL RR 128/64).
struct Words {
    Wide state, increment;

    explicit Words(const uint64_t *key) {
        increment = (Wide(key[2]) << 64 | key[3]) << 1 | 1;
        state = increment + (Wide(key[0]) << 64 | key[1]);
        step();
    }
    void step() { state = state * (Wide(2549297995355413924u) << 64 | 4865540595714422341u) + increment; }
    uint64_t next() {
        step();
        const uint64_t mixed = uint64_t(state >> 64) ^ uint64_t(state);
        const unsigned turned = unsigned(state >> 122);
        return mixed >> turned | mixed << (-turned & 63);
    }
};

// The place with which each of the places n - 1 to 1 changes in its turn, from 0 to itself: the low bits of a word, where
// they are not above it. Which words that holds for cannot be foreseen, and a branch would cost more than the rest; so
// each is written, and the next one over it if it does not.
void draw_partners(Words words, int64_t n, uint32_t *partner) {
    uint64_t place = uint64_t(n - 1), mask = UINT32_MAX, half = mask >> 1;
    for (;;) {
        const uint64_t both = words.next();
        for (int shift = 0; shift < 64; shift += 32) {
            for (; place <= half; half >>= 1) {
                if (!place) return;
                mask = half;
            }
            const uint64_t drawn = both >> shift & mask;
            partner[place] = uint32_t(drawn);
            place -= drawn <= place;
        }
    }
}

}  // namespace

namespace fl {

PyObject *permutation(PyObject *, PyObject *args) {
    Buffer key, order;
    if (!PyArg_ParseTuple(args, "y*w*", &key.view, &order.view)) return nullptr;
    const Py_ssize_t n = order.count<int64_t>();
    if (key.view.len != 32 || n >= Py_ssize_t(1) << 32) {
        PyErr_SetString(PyExc_ValueError, "a key has 32 bytes, and a permutation less than 2^32 places");
        return nullptr;
    }
    int64_t *to = order.as<int64_t>();
    uint32_t *partner = static_cast<uint32_t *>(malloc(sizeof(uint32_t) * size_t(n + 1)));
    if (!partner) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < n; i++) to[i] = i;
    if (n) draw_partners(Words(key.as<const uint64_t>()), n, partner);
    for (Py_ssize_t i = n - 1; i > 0; i--) {
        const int64_t other = to[partner[i]];
        to[partner[i]] = to[i];
        to[i] = other;
    }
    Py_END_ALLOW_THREADS
    free(partner);
    Py_RETURN_NONE;
}

}  // namespace fl
