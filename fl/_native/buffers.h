// What the functions of the Python module share: buffer arguments, and the arithmetic that a thread computes in.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace {

// A buffer argument, given back when it goes out of scope.
struct Buffer {
    Py_buffer view{};
    ~Buffer() {
        if (view.obj) PyBuffer_Release(&view);
    }
    template <class T>
    T *as() const {
        return static_cast<T *>(view.buf);
    }
    template <class T>
    Py_ssize_t count() const {
        return view.len / Py_ssize_t(sizeof(T));
    }
};

// Rounding to nearest and gradual underflow, whatever the thread was set to: libraries switch underflow off for speed,
// and results must not depend on who did. What was set returns when this goes out of scope.
struct DefaultArithmetic {
#if defined(__SSE__)
    const unsigned before = _mm_getcsr();
    DefaultArithmetic() { _mm_setcsr(0x1f80); }
    ~DefaultArithmetic() { _mm_setcsr(before); }
#elif defined(__aarch64__)
    uint64_t before;
    static void set(uint64_t control) { asm volatile("msr fpcr, %0" : : "r"(control)); }
    DefaultArithmetic() {
        asm volatile("mrs %0, fpcr" : "=r"(before));
        set(0);
    }
    ~DefaultArithmetic() { set(before); }
#endif
};

}  // namespace
