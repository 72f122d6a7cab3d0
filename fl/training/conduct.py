"""Clients that do other than honest work: they train on wrong labels, or send an update that is made up or hidden."""

import math

import numpy as np

from fl.arithmetic.draws import integers, normals, uniforms
from fl.arithmetic.ordered_sums import folded_sums
from fl.arrays import Float32Array, FloatArray, IntArray, Labels, UInt32Array
from fl.training.jobs import HONEST, Conduct

CONDUCT = "conduct"  # the purpose of a service's stream; the second word of its counter is one of these
_WRONG, _LABEL, _FLIPPED, _UPDATE, _NOISE = range(5)


def used_labels(
    conduct: Conduct,
    labels: Labels,  # [n] the true ones
    count: int,  # L
    key: UInt32Array,  # of the service's stream
    client: int,
    images: IntArray,  # [n] their places in the data set: whenever a client has an image, it takes it for the same
) -> Labels:
    """Return the labels [n] that a client trains on. Those that are wrong are each of the others equally often."""
    used = labels.astype(np.int64)
    if conduct.label_noise:
        wrong = uniforms(key, images, _WRONG, client)[0] < conduct.label_noise
        used = np.where(wrong, (used + 1 + integers(key, count - 1, images, _LABEL, client)) % count, used)
    if conduct.label_flip:
        flipped = uniforms(key, images, _FLIPPED, client)[0] < conduct.label_flip
        used = np.where(flipped, count - 1 - used, used)
    return used.astype(labels.dtype)


def sent_model(
    conduct: Conduct,
    old: Float32Array,  # [P] the global model
    trained: Float32Array,  # [P] what the client's training made of it
    key: UInt32Array,  # of the service's stream
    round_: int,
    client: int,
) -> Float32Array:
    """Return the model [P] that a client sends: ``trained`` itself where its update is neither made up nor hidden."""
    if conduct._replace(epochs=None, label_noise=0.0, label_flip=0.0) == HONEST:
        return trained
    start, place = old.astype(np.float64), np.arange(len(old))
    with np.errstate(over="ignore", invalid="ignore"):  # of models that have diverged: the federation checks
        change = trained - start
        if conduct.update == "old":
            change = np.zeros_like(change)
        elif conduct.update == "random":
            numbers = normals(key, round_, _UPDATE, client, place)
            change = numbers * (_norm(change) / _norm(numbers))
        if conduct.clip is not None and (norm := _norm(change)) > conduct.clip:
            change *= conduct.clip / norm
        if conduct.noise:
            change += conduct.noise * normals(key, round_, _NOISE, client, place)
        return (start + conduct.update_scale * change).astype(np.float32)


def _norm(vector: FloatArray) -> float:
    return math.sqrt(folded_sums(vector * vector))
