// Serial selection for many services at once: see fl/selection.py, whose NumPy version gives the same bytes.
#pragma once
#include "buffers.h"

namespace fl {

// (B, M, wanted, payment, bids, budget, market, service, client, price): bool [B, M, C], double and int64 [B, M, C], int64
// [B, M]; results int64 [B M C] four times, of which the first are filled; returns how many.
PyObject *choose(PyObject *, PyObject *args);

}  // namespace fl
