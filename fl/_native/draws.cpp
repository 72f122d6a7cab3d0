// Draws of the world: Philox4x32-10 (see fl/arithmetic/draws.py) for arrays of keys and counters, and what is made of its words.
// Integers alone, but for uniforms(), whose operations are exact.
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "lanes.h"
#include "functions.h"

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

constexpr int KEY = 5;          // the sources of a row: four words of the counter, what comes after them, the key's words
constexpr Py_ssize_t PART = 64;  // blocks of a row that are computed at once

// Where the numbers of a row come from, how far they move along it, and the words of some of its blocks.
struct Row {
    const char *from[KEY + 2];
    Py_ssize_t step[KEY + 2];
    Words high;  // bits above the lower halves tell that a counter is out of range
    alignas(64) uint64_t words[4][PART];

    uint64_t number(int source, const char *at) const {
        return source < KEY ? *reinterpret_cast<const uint64_t *>(at) : *reinterpret_cast<const uint32_t *>(at);
    }
    uint64_t below(Py_ssize_t at) const { return number(4, from[4] + at * step[4]); }
};

namespace plain {
void row_blocks(Row &row, Py_ssize_t first, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        uint64_t source[KEY + 2];
        for (int w : {0, 1, 2, 3, KEY, KEY + 1}) source[w] = row.number(w, row.from[w] + (first + i) * row.step[w]);
        row.high |= source[0] | source[1] | source[2] | source[3];
        const Block block = philox(uint32_t(source[KEY]), uint32_t(source[KEY + 1]), uint32_t(source[0]),
                                   uint32_t(source[1]), uint32_t(source[2]), uint32_t(source[3]));
        for (int w = 0; w < 4; w++) row.words[w][i] = block.words[w];
    }
}
}  // namespace plain

#if defined(__x86_64__)
// Intrinsics for the product alone: no compiler sees that the upper halves do not count.
FL_TARGET_PUSH("avx2")
namespace avx2 {
FL_INLINE Words low_product(Words a, uint64_t b) {
    union {
        Words all;
        __m256i half[2];
    } x = {a};
    for (__m256i &half : x.half) half = _mm256_mul_epu32(half, _mm256_set1_epi64x(int64_t(b)));
    return x.all;
}
#include "philox.inl"
}  // namespace avx2
FL_TARGET_POP

FL_TARGET_PUSH(FL_AVX512)
namespace avx512 {
FL_INLINE Words low_product(Words a, uint64_t b) {
    return Words(_mm512_mul_epu32(__m512i(a), _mm512_set1_epi64(int64_t(b))));
}
#include "philox.inl"
}  // namespace avx512
FL_TARGET_POP
#endif

void row_blocks(Row &row, Py_ssize_t first, Py_ssize_t count) {
#if defined(__x86_64__)
    if (fl::width == fl::Width::avx512) return avx512::row_blocks(row, first, count);
    if (fl::width == fl::Width::avx2) return avx2::row_blocks(row, first, count);
#endif
    plain::row_blocks(row, first, count);
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
    Py_ssize_t step[MAX_DIMENSIONS] = {};

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

// Goes through all elements of the result, row by row along the last dimension, and calls put(to, how far it is to the
// next array of the result, row, first element, how many). OUT is how many arrays the result holds, its first dimension;
// BELOW whether a further array of whole numbers comes after the counter.
template <class Element, int OUT, bool BELOW, class Put>
PyObject *each_block(PyObject *args, Put &&put) {
    constexpr int WORDS = BELOW ? 5 : 4;
    if (PyTuple_Size(args) != WORDS + 2) {
        PyErr_SetString(PyExc_TypeError, "wrong number of arrays");
        return nullptr;
    }
    Buffer result;
    if (PyObject_GetBuffer(PyTuple_GetItem(args, WORDS + 1), &result.view, PyBUF_ND | PyBUF_WRITABLE) < 0) return nullptr;
    const int dimensions = result.view.ndim - 1, last = dimensions > 0 ? dimensions - 1 : 0;
    if (result.view.itemsize != sizeof(Element) || dimensions < 0 || dimensions > MAX_DIMENSIONS ||
        result.view.shape[0] != OUT) {
        PyErr_SetString(PyExc_ValueError, "the result has another type or shape");
        return nullptr;
    }
    const Py_ssize_t *shape = result.view.shape + 1, total = result.count<Element>() / OUT;
    const Py_ssize_t each = dimensions ? shape[last] : 1;
    Operand key, words[WORDS];
    if (!key.take(PyTuple_GetItem(args, 0), 4, 1, dimensions, shape)) return nullptr;
    if (key.buffer.view.shape[key.buffer.view.ndim - 1] != 2) {
        PyErr_SetString(PyExc_ValueError, "a key has 2 words");
        return nullptr;
    }
    for (int w = 0; w < WORDS; w++)
        if (!words[w].take(PyTuple_GetItem(args, 1 + w), 8, 0, dimensions, shape)) return nullptr;

    Row row = {};
    for (int w = 0; w < WORDS; w++) {
        row.from[w] = static_cast<const char *>(words[w].buffer.view.buf);
        row.step[w] = words[w].step[last];
    }
    row.from[KEY] = static_cast<const char *>(key.buffer.view.buf);
    row.from[KEY + 1] = row.from[KEY] + key.buffer.view.strides[key.buffer.view.ndim - 1];
    row.step[KEY] = row.step[KEY + 1] = key.step[last];
    {
        const Unlocked unlocked(total >= WORTH_RELEASING);
        Py_ssize_t at[MAX_DIMENSIONS] = {};
        for (Py_ssize_t n = 0; n < total; n += each) {
            for (Py_ssize_t first = 0; first < each; first += PART) {
                const Py_ssize_t count = each - first < PART ? each - first : PART;
                row_blocks(row, first, count);
                put(result.as<Element>() + n + first, total, row, first, count);
            }
            for (int d = last - 1; d >= 0; d--) {
                const Py_ssize_t back = ++at[d] < shape[d] ? 1 : 1 - shape[d];
                for (int w = 0; w < WORDS; w++) row.from[w] += back * words[w].step[d];
                for (int w = KEY; w < KEY + 2; w++) row.from[w] += back * key.step[d];
                if (back == 1) break;
                at[d] = 0;
            }
        }
    }
    uint64_t any = 0;
    for (int l = 0; l < LANES; l++) any |= row.high[l];
    if (any >> 32) {
        PyErr_SetString(PyExc_ValueError, "the words of a counter must be in [0, 2^32)");
        return nullptr;
    }
    Py_RETURN_NONE;
}

}  // namespace

namespace fl {

PyObject *blocks(PyObject *, PyObject *args) {
    const auto put = [](uint32_t *to, Py_ssize_t next, const Row &row, Py_ssize_t, Py_ssize_t count) {
        for (int w = 0; w < 4; w++)
            for (Py_ssize_t i = 0; i < count; i++) to[w * next + i] = uint32_t(row.words[w][i]);
    };
    return each_block<uint32_t, 4, false>(args, put);
}

PyObject *uniforms(PyObject *, PyObject *args) {
    const auto put = [](double *to, Py_ssize_t next, const Row &row, Py_ssize_t, Py_ssize_t count) {
        for (int w = 0; w < 4; w += 2, to += next)
            for (Py_ssize_t i = 0; i < count; i++) {
                const int64_t bits = int64_t(row.words[w][i] >> 5 << 26 | row.words[w + 1][i] >> 6);
                to[i] = double(bits) * (1.0 / 9007199254740992.0);  // 2^-53
            }
    };
    return each_block<double, 2, false>(args, put);
}

PyObject *integers(PyObject *, PyObject *args) {
    const auto put = [](int64_t *to, Py_ssize_t, const Row &row, Py_ssize_t first, Py_ssize_t count) {
        for (Py_ssize_t i = 0; i < count; i++) to[i] = int64_t(row.words[0][i] * row.below(first + i) >> 32);
    };
    return each_block<int64_t, 1, true>(args, put);
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
