// Functions of the Python module whose NumPy versions give the same bytes: draws and elementary functions (see
// fl/arithmetic/draws.py and elementary.py), and parts of a round, of one market or of many at once. Whole numbers are
// int64, amounts micro-units.
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
// (key, order): 32 bytes, int64 [n]; see fl/arithmetic/streams.py.
PyObject *permutation(PyObject *, PyObject *args);

// Computes with vectors of another kind from here on: 0 of the baseline, 1 of AVX2, 2 of AVX-512; for tests. Returns
// which, the best one if the processor lacks it.
PyObject *vectors(PyObject *, PyObject *number);

// Of a number, and of an array: (double [n], result double [n]).
PyObject *exponential(PyObject *, PyObject *x);
PyObject *natural_logarithm(PyObject *, PyObject *x);
PyObject *exponentials(PyObject *, PyObject *args);
PyObject *natural_logarithms(PyObject *, PyObject *args);
PyObject *normal_quantiles(PyObject *, PyObject *args);
// (double [n], result double [n], bool [n]): 12 significant digits, and where they are certain; returns whether all are.
PyObject *round_by_scaling(PyObject *, PyObject *args);

// (service [n], client [n], payment [n], K, core [n]): fills in the cores of those who are paid most, -1 for the others;
// -2 where equal payments compete for a client's last core, for all offers to it. Returns how many these are.
PyObject *highest(PyObject *, PyObject *args);

// (curves [P, n], u, luck, z [n], samples, weights [n], weighted [n], squares [n], new u [n], accuracy [n]): the
// learning curves of those services that have images, see fl/surrogate/learning_curves.py; the results of others stay
// as they are. P parameters in the order of Curve's fields.
PyObject *follow(PyObject *, PyObject *args);

// (actions [B M, 2 C], asked [B, M], there [B, C], limit, selected [B, M, C], payment [B, M, C]): what actions mean.
// Returns whether those of services that take part are between -1 and 1.
PyObject *decode(PyObject *, PyObject *args);
// (B, M, at [B, M, C], dqi [T], bids [T], present [B, M], rows [B, M, F]): copies into each row the DQI, its own bids,
// and those of the others, as float32; those of services that are not present are 0.
PyObject *observe(PyObject *, PyObject *args);

// Serial selection, see learning/environments/actions.py.
// (B, M, wanted, payment, bids, budget, market, service, client, price): bool [B, M, C], double and int64 [B, M, C], int64
// [B, M]; results int64 [B M C] four times, of which the first are filled; returns how many.
PyObject *choose(PyObject *, PyObject *args);

}  // namespace fl
