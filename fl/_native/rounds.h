// What becomes of the offers of a round, of one market or of many at once: see des/allocation.py and
// learning/lockstep/, whose NumPy versions give the same bytes. Whole numbers are int64, amounts micro-units.
#pragma once
#include "buffers.h"

namespace fl {

// (playing [B], round [B], arrival [B, M], online [B, C], the codes of services that wait and that train, status, budget
// [B, M], asked [B, M], available [B, M, C]): lets services arrive, puts 0 in the budgets of those that wait, and says who
// takes part and can select whom.
PyObject *begin(PyObject *, PyObject *args);
// (B, spent [B, M], received [B, C], budget [B, M], total [B, M], paid [B, M], income [B, C]): adds a round's payments to
// the books, if they balance and no budget is exceeded; returns whether that is so.
PyObject *settle(PyObject *, PyObject *args);
// (market [n], service [n], client [n], payment [n], asks [B, M, C], available [B, M, C], budget [B, M], asked [B, M],
// over [B], most): whether all offers keep the constraints. `over` says whose services may offer more than their
// budget in all, but not more than `most` to one client.
PyObject *proper(PyObject *, PyObject *args);
// (service [n], client [n], payment [n], K, core [n]): fills in the cores of those who are paid most, -1 for the others;
// -2 where equal payments compete for a client's last core, for all offers to it. Returns how many these are.
PyObject *highest(PyObject *, PyObject *args);
// (B, served [n], market [n], service [n], client [n], price [n], at [n], size, weight, emd [T], counts [5, B, M],
// weighted [B, M], income [B, C]): adds up what served, in the order of the offers. `at` says where in the tables each
// offer's data stand; `counts` are clients, money, images, weights and squared weights.
PyObject *totals(PyObject *, PyObject *args);

// (curves [P, n], u, luck, z [n], samples, weights [n], weighted [n], squares [n], new u [n], accuracy [n]): the learning
// curves of those services that have images, see fl/surrogate.py; the results of others stay as they are. P parameters
// in the order of Curve's fields.
PyObject *follow(PyObject *, PyObject *args);

// (actions [B M, 2 C], asked [B, M], there [B, C], limit, selected [B, M, C], payment [B, M, C]): what actions mean, see
// learning/lockstep/rows.py. Returns whether those of services that take part are between -1 and 1.
PyObject *decode(PyObject *, PyObject *args);
// (B, M, at [B, M, C], dqi [T], bids [T], present [B, M], rows [B, M, F]): copies into each row the DQI, its own bids,
// and those of the others, as float32; those of services that are not present are 0.
PyObject *observe(PyObject *, PyObject *args);

}  // namespace fl
