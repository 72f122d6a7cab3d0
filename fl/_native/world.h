// Functions of the Python module that draw the world and compute exp and log: see fl/philox.py, fl/draws.py and
// fl/elementary.py, whose NumPy versions give the same bytes.
#pragma once
#include "buffers.h"

namespace fl {

// (key, four words of the counter, result): uint32 [..., 2], int64 [...] four times, uint32 [4, ...]. They broadcast.
PyObject *blocks(PyObject *, PyObject *args);
// The same, but the result is double [2, ...]: numbers in [0, 1).
PyObject *uniforms(PyObject *, PyObject *args);
// (key, four words of the counter, below, result): whole numbers in [0, below); int64 [...], and int64 [1, ...].
PyObject *integers(PyObject *, PyObject *args);
// (key, counts, sizes, three words of the counter, members): uint32 [2], int64 [S] twice, int64 [sum of counts].
PyObject *subsets(PyObject *, PyObject *args);

// Computes with vectors of another kind from here on: 0 of the baseline, 1 of AVX2, 2 of AVX-512; for tests. Returns
// which, the best one if the processor lacks it.
PyObject *vectors(PyObject *, PyObject *number);

// Of a number, and of an array: (double [n], result double [n]).
PyObject *exponential(PyObject *, PyObject *x);
PyObject *natural_logarithm(PyObject *, PyObject *x);
PyObject *exponentials(PyObject *, PyObject *args);
PyObject *natural_logarithms(PyObject *, PyObject *args);
// (base double [n], exponent double [n], result double [n]).
PyObject *powers(PyObject *, PyObject *args);
PyObject *normal_quantiles(PyObject *, PyObject *args);
// (double [n], result double [n], bool [n]): 12 significant digits, and where they are certain; returns whether all are.
PyObject *round_by_scaling(PyObject *, PyObject *args);

}  // namespace fl
