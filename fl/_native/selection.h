// Serial selection for many services at once: see fl/selection.py, whose NumPy version gives the same bytes.
#pragma once
#include "buffers.h"

namespace fl {

// (wanted, payment, bids, budget, clients, prices, counts): bool [R, C], double [R, C], int64 [R, C], int64 [R]; results
// int64 [R C] twice, of which the first sum(counts) are filled, row by row, and int64 [R].
PyObject *by_payment(PyObject *, PyObject *args);

}  // namespace fl
