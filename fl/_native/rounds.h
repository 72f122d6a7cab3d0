// Parts of a round, of one market or of many at once, whose NumPy versions give the same bytes: des/allocation.py,
// fl/surrogate.py and learning/lockstep/flat_codec.py. Whole numbers are int64, amounts micro-units.
#pragma once
#include "buffers.h"

namespace fl {

// (service [n], client [n], payment [n], K, core [n]): fills in the cores of those who are paid most, -1 for the others;
// -2 where equal payments compete for a client's last core, for all offers to it. Returns how many these are.
PyObject *highest(PyObject *, PyObject *args);

// (curves [P, n], u, luck, z [n], samples, weights [n], weighted [n], squares [n], new u [n], accuracy [n]): the learning
// curves of those services that have images, see fl/surrogate.py; the results of others stay as they are. P parameters
// in the order of Curve's fields.
PyObject *follow(PyObject *, PyObject *args);

// (actions [B M, 2 C], asked [B, M], there [B, C], limit, selected [B, M, C], payment [B, M, C]): what actions mean.
// Returns whether those of services that take part are between -1 and 1.
PyObject *decode(PyObject *, PyObject *args);
// (B, M, at [B, M, C], dqi [T], bids [T], present [B, M], rows [B, M, F]): copies into each row the DQI, its own bids,
// and those of the others, as float32; those of services that are not present are 0.
PyObject *observe(PyObject *, PyObject *args);

}  // namespace fl
