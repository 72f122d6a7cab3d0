// Draws of the world: Philox4x32-10 (see fl/philox.py) for arrays of keys and counters, and what is made of its words.
// Integers alone, but for uniforms(), whose operations are exact.
#include <cstdlib>
#include <cstring>

#include "world.h"

namespace {

constexpr int MAX_DIMENSIONS = 64;       // NumPy's own limit
constexpr int64_t WORTH_RELEASING = 1024;  // blocks; to hand the GIL over for less costs more than it gives

struct Block {
    uint32_t words[4];
};

inline Block philox(uint32_t k, uint32_t m, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    for (int round = 0; round < 10; round++) {
        const uint64_t one = uint64_t(a) * 0xD2511F53u, other = uint64_t(c) * 0xCD9E8D57u;
        a = uint32_t(other >> 32) ^ b ^ k;
        b = uint32_t(other);
        c = uint32_t(one >> 32) ^ d ^ m;
        d = uint32_t(one);
        k += 0x9E3779B9u;
        m += 0xBB67AE85u;
    }
    return {{a, b, c, d}};
}

// Releases the GIL while in scope, if the work is worth it.
struct Unlocked {
    PyThreadState *const state;
    explicit Unlocked(bool worth) : state(worth ? PyEval_SaveThread() : nullptr) {}
    ~Unlocked() {
        if (state) PyEval_RestoreThread(state);
    }
};

// An array of numbers that is broadcast to the result's shape: how far it moves along each dimension, 0 where it stays.
struct Operand {
    Buffer buffer;
    Py_ssize_t step[MAX_DIMENSIONS];

    // False, and an error is set, unless it is an array of items of that size that broadcasts. The last `own` of its
    // dimensions do not take part.
    bool take(PyObject *array, Py_ssize_t itemsize, int own, int dimensions, const Py_ssize_t *shape) {
        if (PyObject_GetBuffer(array, &buffer.view, PyBUF_STRIDES) < 0) return false;
        const Py_buffer &v = buffer.view;
        const int extra = dimensions - (v.ndim - own);
        bool fits = v.itemsize == itemsize && v.ndim >= own && extra >= 0;
        for (int d = 0; fits && d < dimensions; d++) {
            const bool stays = d < extra || v.shape[d - extra] == 1;
            fits = stays || v.shape[d - extra] == shape[d];
            step[d] = stays ? 0 : v.strides[d - extra];
        }
        if (!fits) PyErr_SetString(PyExc_ValueError, "keys and counters must broadcast to the shape of the result");
        return fits;
    }
};

// Goes through all elements of the result, and calls put(number of the element, block). OUT is how many arrays the
// result holds, its first dimension.
template <class Element, int OUT, class Put>
PyObject *each_block(PyObject *args, Put &&put) {
    PyObject *objects[6];
    if (!PyArg_ParseTuple(args, "OOOOOO", objects, objects + 1, objects + 2, objects + 3, objects + 4, objects + 5))
        return nullptr;
    Buffer result;
    if (PyObject_GetBuffer(objects[5], &result.view, PyBUF_ND | PyBUF_WRITABLE) < 0) return nullptr;
    const int dimensions = result.view.ndim - 1;
    if (result.view.itemsize != sizeof(Element) || dimensions < 0 || dimensions > MAX_DIMENSIONS ||
        result.view.shape[0] != OUT) {
        PyErr_SetString(PyExc_ValueError, "the result has another type or shape");
        return nullptr;
    }
    const Py_ssize_t *shape = result.view.shape + 1;
    Operand key, words[4];
    if (!key.take(objects[0], 4, 1, dimensions, shape)) return nullptr;
    if (key.buffer.view.shape[key.buffer.view.ndim - 1] != 2) {
        PyErr_SetString(PyExc_ValueError, "a key has 2 words");
        return nullptr;
    }
    for (int w = 0; w < 4; w++)
        if (!words[w].take(objects[1 + w], 8, 0, dimensions, shape)) return nullptr;

    const Py_ssize_t total = result.count<Element>() / OUT, other = key.buffer.view.strides[key.buffer.view.ndim - 1];
    uint64_t high = 0;
    {
        const Unlocked unlocked(total >= WORTH_RELEASING);
        Py_ssize_t at[MAX_DIMENSIONS] = {};
        const char *k = key.buffer.as<const char>(), *from[4];
        for (int w = 0; w < 4; w++) from[w] = words[w].buffer.as<const char>();
        const auto move = [&](int d, Py_ssize_t times) {
            k += times * key.step[d];
            for (int w = 0; w < 4; w++) from[w] += times * words[w].step[d];
        };
        for (Py_ssize_t n = 0; n < total; n++) {
            uint32_t counter[4];
            for (int w = 0; w < 4; w++) {
                const uint64_t word = *reinterpret_cast<const uint64_t *>(from[w]);
                high |= word;
                counter[w] = uint32_t(word);
            }
            const uint32_t one = *reinterpret_cast<const uint32_t *>(k);
            const uint32_t two = *reinterpret_cast<const uint32_t *>(k + other);
            put(result.as<Element>() + n, total, philox(one, two, counter[0], counter[1], counter[2], counter[3]));
            for (int d = dimensions - 1; d >= 0; d--) {
                move(d, 1);
                if (++at[d] < shape[d]) break;
                move(d, -shape[d]);
                at[d] = 0;
            }
        }
    }
    if (high >> 32) {
        PyErr_SetString(PyExc_ValueError, "the words of a counter must be in [0, 2^32)");
        return nullptr;
    }
    Py_RETURN_NONE;
}

}  // namespace

namespace fl {

PyObject *blocks(PyObject *, PyObject *args) {
    return each_block<uint32_t, 4>(args, [](uint32_t *to, Py_ssize_t next, const Block &block) {
        for (int w = 0; w < 4; w++) to[w * next] = block.words[w];
    });
}

PyObject *uniforms(PyObject *, PyObject *args) {
    return each_block<double, 2>(args, [](double *to, Py_ssize_t next, const Block &block) {
        for (int i = 0; i < 2; i++) {
            const int64_t bits = int64_t(block.words[2 * i] >> 5) << 26 | block.words[2 * i + 1] >> 6;
            to[i * next] = double(bits) * (1.0 / 9007199254740992.0);  // 2^-53
        }
    });
}

PyObject *subsets(PyObject *, PyObject *args) {
    Buffer key, counts, sizes, members;
    long long first, second, third;
    if (!PyArg_ParseTuple(args, "y*y*y*LLLw*", &key.view, &counts.view, &sizes.view, &first, &second, &third,
                          &members.view))
        return nullptr;
    const Py_ssize_t sets = counts.count<int64_t>();
    const int64_t *count = counts.as<const int64_t>(), *size = sizes.as<const int64_t>();
    int64_t total = 0, largest = 0;
    bool proper = key.view.len == 8 && sizes.view.len == counts.view.len;
    for (Py_ssize_t s = 0; proper && s < sets; s++) {
        proper = 0 <= count[s] && count[s] <= size[s] && size[s] < int64_t(1) << 32;
        total += count[s];
        largest = size[s] > largest ? size[s] : largest;
    }
    if (!proper || total != members.count<int64_t>()) {
        PyErr_SetString(PyExc_ValueError, "a subset has at most as many members as its set, and the result as many");
        return nullptr;
    }
    if ((first | second | (second + sets) | third) >> 32) {
        PyErr_SetString(PyExc_ValueError, "the words of a counter must be in [0, 2^32)");
        return nullptr;
    }
    char *drawn = static_cast<char *>(malloc(size_t(largest) + 1));
    if (!drawn) return PyErr_NoMemory();
    {
        const Unlocked unlocked(total >= WORTH_RELEASING);
        const uint32_t *k = key.as<const uint32_t>();
        int64_t *to = members.as<int64_t>();
        for (Py_ssize_t s = 0; s < sets; s++) {
            const uint64_t n = uint64_t(size[s]);
            const bool inverted = 2 * count[s] > size[s];
            int64_t wanted = inverted ? size[s] - count[s] : count[s];
            memset(drawn, 0, size_t(n));
            for (uint32_t position = 0; wanted; position++) {
                const Block block = philox(k[0], k[1], uint32_t(first), uint32_t(second + s), uint32_t(third), position);
                for (int w = 0; w < 4 && wanted; w++) {
                    char &known = drawn[block.words[w] * n >> 32];
                    wanted -= !known;
                    known = 1;
                }
            }
            for (uint64_t i = 0; i < n; i++)
                if (drawn[i] != inverted) *to++ = int64_t(i);
        }
    }
    free(drawn);
    Py_RETURN_NONE;
}

}  // namespace fl
