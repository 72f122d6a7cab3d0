"""Drawn data sets: strokes with random shape, thickness, noise and clutter, in plain NumPy. No download, no font.

The same bytes come out on every machine and with every version of NumPy: random bits are PCG64's raw output, which
NumPy keeps stable; floats go through basic operations alone, which IEEE 754 defines to the last bit (no sin, no exp);
the one matrix product is of integers small enough to be exact in any order; pixels are computed in integers.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from fl.arithmetic.streams import stream
from fl.arrays import FloatArray, Int32Array, IntArray, Pixels, UInt64Array
from fl.data.dataset import Arrays

LABELS = 10
TRAIN_SIZE = 12_000
TEST_SIZE = 2_000
SIDE = 28
CHUNK = 1_000  # images drawn at once: bounds memory, and keys the random streams
SEED = 1  # of the data sets themselves; no scenario's seed changes them

PAPER = 20  # side of a glyph's paper, in units; one unit is one pixel at scale 1
MARGIN = 8  # units around the paper that the distance tables still cover
CELLS_PER_UNIT = 4
TABLE_SIDE = (PAPER + 2 * MARGIN) * CELLS_PER_UNIT
STEPS_PER_UNIT = 16  # resolution of distances; 255 steps or more are "far"
CURVE_PIECES = 8

POINT_BITS = 12  # a place on the paper is an integer in units of 2 ** -12
CELL_BITS = POINT_BITS - 2  # 4 cells to a unit
WARP_NODES = 5  # elastic distortion: offsets at 5 x 5 nodes, 7 pixels apart, linear between
WARP_SPACING = 7
BELL = 147.8  # standard deviation of the sum of four random bytes

# Written like SVG paths, y downwards: M moves, L draws a line, Q a quadratic curve. Glyphs with two ways of writing
# them, half of the images each, have both.
DIGITS = (
    ("M10 1 Q16 1 16 10 Q16 19 10 19 Q4 19 4 10 Q4 1 10 1",),
    ("M6 5 L10 1 L10 19", "M6 5 L10 1 L10 19 M6 19 L14 19"),
    ("M4 6 Q4 1 10 1 Q16 1 16 6 Q16 10 4 19 L16 19",),
    ("M4 3 Q8 1 10 1 Q15 1 15 5 Q15 9 9 9 Q16 9 16 14 Q16 19 10 19 Q6 19 4 17",),
    ("M12 19 L12 1 L4 13 L17 13", "M6 1 L4 10 L16 10 M13 4 L13 19"),
    ("M15 1 L6 1 L5 9 Q8 7 10 7 Q16 7 16 13 Q16 19 10 19 Q6 19 4 17",),
    ("M14 1 Q4 5 4 13 Q4 19 10 19 Q16 19 16 13 Q16 9 10 9 Q5 9 4 13",),
    ("M4 1 L16 1 L8 19", "M4 1 L16 1 L8 19 M7 10 L15 10"),
    ("M10 9 Q4 9 4 5 Q4 1 10 1 Q16 1 16 5 Q16 9 10 9 Q3 9 3 14 Q3 19 10 19 Q17 19 17 14 Q17 9 10 9",),
    ("M16 7 Q15 11 10 11 Q4 11 4 6 Q4 1 10 1 Q16 1 16 7 Q16 14 12 19",),
)
_C = "M16 4 Q14 1 10 1 Q4 1 4 10 Q4 19 10 19 Q14 19 16 16"
_O = "M10 1 Q17 1 17 10 Q17 19 10 19 Q3 19 3 10 Q3 1 10 1"
_P = "M5 19 L5 1 L9 1 Q16 1 16 6 Q16 11 9 11 L5 11"
_F = "M15 1 L5 1 L5 19 M5 10 L13 10"
LETTERS = (
    ("M5 1 L5 19 M5 1 L9 1 Q15 1 15 5 Q15 9 9 9 L5 9 M9 9 Q16 9 16 14 Q16 19 9 19 L5 19",),  # B
    (_C,),
    ("M5 1 L5 19 M5 1 L8 1 Q16 1 16 10 Q16 19 8 19 L5 19",),  # D
    (_F + " M5 19 L15 19",),  # E
    (_F,),
    (_C + " L16 11 L11 11",),  # G
    (_O,),
    (_P,),
    (_O + " M11 13 L17 19",),  # Q
    (_P + " M9 11 L16 19",),  # R
)


@dataclass(frozen=True)
class Style:
    """The variation among the drawings of a data set. Ranges are (least, most), uniform."""

    glyphs: tuple[tuple[str, ...], ...]  # for each label, the ways to write it
    lean: float  # largest tangent of half the angle by which a figure is turned
    shear: float  # largest sideways slant, in units per unit of height
    size: tuple[float, float]  # magnification, for width and height apart
    shift: float  # largest displacement, in pixels, for x and y apart
    warp: float  # largest elastic offset, in pixels
    pen: tuple[float, float]  # half of the stroke's thickness, in pixels
    ink: tuple[float, float]  # brightness of the stroke, of 255
    noise: float  # standard deviation of the noise, of 255
    clutter: int  # pieces of other figures that are drawn into the image


STYLES = MappingProxyType(
    {
        "strokes": Style(
            DIGITS, lean=0.16, shear=0.35, size=(0.65, 1.05), shift=3.0, warp=1.8,
            pen=(0.7, 1.5), ink=(160, 255), noise=30, clutter=0,
        ),
        "scribbles": Style(
            LETTERS, lean=0.12, shear=0.25, size=(0.75, 1.1), shift=2.0, warp=1.75,
            pen=(0.8, 1.7), ink=(140, 255), noise=25, clutter=1,
        ),
    }
)  # fmt: skip


class Bits:
    """Random numbers made from a generator's raw output, which NumPy promises never to change."""

    def __init__(self, *purpose: str | int) -> None:
        self._raw = stream(SEED, *purpose).bit_generator

    def uniform(self, *shape: int) -> FloatArray:
        """Return exact multiples of 2 ** -32 in [0, 1)."""
        raw: UInt64Array = self._raw.random_raw(int(np.prod(shape)))
        return ((raw >> np.uint64(32)).astype(np.float64) * 2.0**-32).reshape(shape)

    def between(self, least: float, most: float, *shape: int) -> FloatArray:
        """Return numbers in [least, most)."""
        return least + (most - least) * self.uniform(*shape)

    def below(self, limit: int | IntArray, *shape: int) -> IntArray:
        """Return integers in [0, limit)."""
        return (self.uniform(*shape) * limit).astype(np.int64)

    def bell(self, *shape: int) -> Int32Array:
        """Return sums of four bytes less their mean: nearly normal, standard deviation ``BELL``."""
        raw: UInt64Array = self._raw.random_raw(int(np.prod(shape)) // 2)
        quads = raw.astype("<u8").view(np.uint8).reshape(*shape, 4)
        total = quads[..., 0].astype(np.int32)
        for place in (1, 2, 3):
            total += quads[..., place]
        return total - 510


class Alphabet:
    """The distance tables of a data set's glyphs, end to end in one array."""

    def __init__(self, glyphs: tuple[tuple[str, ...], ...]) -> None:
        self.tables = np.concatenate([distance_table(path).ravel() for ways in glyphs for path in ways])
        self._ways = np.array([len(ways) for ways in glyphs])
        self._first = np.concatenate([[0], self._ways.cumsum()[:-1]])

    def choose(self, labels: IntArray, bits: Bits) -> IntArray:
        """Return one of the tables of each label [n], by its position in ``tables``."""
        chosen: IntArray = self._first[labels] + bits.below(self._ways[labels], len(labels))
        return chosen * TABLE_SIDE**2


def draw(name: str) -> Arrays:
    """Return training images [12000, SIDE, SIDE], their labels [12000], and the same of the 2,000 test images."""
    style = STYLES[name]
    alphabet = Alphabet(style.glyphs)
    splits = []
    for split, size in (("train", TRAIN_SIZE), ("test", TEST_SIZE)):
        labels = np.arange(size) % LABELS
        images = np.empty((size, SIDE, SIDE), dtype=np.uint8)
        for start in range(0, size, CHUNK):
            part = slice(start, start + CHUNK)
            images[part] = _draw_chunk(style, alphabet, labels[part], Bits(name, split, start))
        splits += [images, labels.astype(np.uint8)]
    return splits[0], splits[1], splits[2], splits[3]


def _draw_chunk(style: Style, alphabet: Alphabet, labels: IntArray, bits: Bits) -> Pixels:
    """Draw one image [n, SIDE, SIDE] for each label [n]."""
    count = len(labels)
    ink = _pen_strokes(style, alphabet, labels, bits, style.shift)
    for _ in range(style.clutter):
        others = (labels + 1 + bits.below(LABELS - 1, count)) % LABELS
        # Shifted by up to most of the paper's width: what shows of it is a piece.
        ink = np.maximum(ink, _pen_strokes(style, alphabet, others, bits, 0.8 * PAPER))
    brightness = np.rint(bits.between(*style.ink, count, 1)).astype(np.int32)
    noise = bits.bell(count, SIDE * SIDE) * round(style.noise / BELL * 1024) // 1024
    pixels = ink * brightness // STEPS_PER_UNIT + noise
    images: Pixels = np.clip(pixels, 0, 255).astype(np.uint8)
    return images.reshape(count, SIDE, SIDE)


def _pen_strokes(style: Style, alphabet: Alphabet, labels: IntArray, bits: Bits, shift: float) -> Int32Array:
    """Return how much of each pixel [n, SIDE * SIDE] the pen covers, in sixteenths, for one figure in each image."""
    count = len(labels)
    table = alphabet.choose(labels, bits)
    # The map from image to paper, so sizes are divided by. tan(angle / 2) gives a rotation without sin and cos.
    tangent = bits.between(-style.lean, style.lean, count)
    cos, sin = (1 - tangent * tangent) / (1 + tangent * tangent), 2 * tangent / (1 + tangent * tangent)
    slant = bits.between(-style.shear, style.shear, count)
    wide, high = bits.between(*style.size, count), bits.between(*style.size, count)
    matrix = np.stack([(cos + slant * sin) / wide, (slant * cos - sin) / wide, sin / high, cos / high], axis=1)
    # Pixel coordinates are in half pixels from the image's centre, hence one bit less.
    a, b, c, d = np.rint(matrix * 2 ** (POINT_BITS - 1)).astype(np.int32).T[:, :, None, None]
    moved = np.rint((bits.between(-shift, shift, 2, count) + PAPER / 2) * 2**POINT_BITS).astype(np.int32)
    half_pixels = 2 * np.arange(SIDE, dtype=np.int32) - (SIDE - 1)
    column, row = half_pixels[None, None, :], half_pixels[None, :, None]
    warp = _warp(style.warp, count, bits)
    x = a * column + b * row + moved[0][:, None, None] + warp[0]
    y = c * column + d * row + moved[1][:, None, None] + warp[1]
    edge = MARGIN * CELLS_PER_UNIT
    cell_x = np.clip((x >> CELL_BITS) + edge, 0, TABLE_SIDE - 1)
    cell_y = np.clip((y >> CELL_BITS) + edge, 0, TABLE_SIDE - 1)
    place = cell_y * TABLE_SIDE + cell_x + table[:, None, None]
    distance = alphabet.tables[place.reshape(count, -1)].astype(np.int32)
    pen = np.rint(bits.between(*style.pen, count, 1) * STEPS_PER_UNIT).astype(np.int32)
    # A stroke's edge is one pixel wide: full ink half a pixel inside it, none half a pixel outside.
    covered: Int32Array = np.clip(pen + STEPS_PER_UNIT // 2 - distance, 0, STEPS_PER_UNIT)
    return covered


def _warp(largest: float, count: int, bits: Bits) -> Int32Array:
    """Return smooth random offsets [2, n, SIDE, SIDE] on the paper: random at the nodes, linear between."""
    nodes = np.rint(bits.between(-largest, largest, 2 * count, WARP_NODES**2) * 2**POINT_BITS)
    pixel = np.arange(SIDE)
    weights = np.zeros((SIDE, WARP_NODES), dtype=np.float32)
    weights[pixel, pixel // WARP_SPACING] = WARP_SPACING - pixel % WARP_SPACING
    weights[pixel, pixel // WARP_SPACING + 1] = pixel % WARP_SPACING
    # Integers below 2 ** 24 throughout, so exact in float32 whatever the order of the sums.
    sums = nodes.astype(np.float32) @ np.kron(weights, weights).T
    offsets: Int32Array = sums.astype(np.int32) // WARP_SPACING**2
    return offsets.reshape(2, count, SIDE, SIDE)


# A glyph is a few lines and quadratic curves on paper of 20 x 20 units. An image is drawn by mapping each of its pixels
# onto the paper (affine plus elastic distortion) and looking up how far the pen went by.
def distance_table(path: str) -> Pixels:
    """Return the distance from each cell's centre to the nearest stroke, in steps, 255 for far away."""
    centres = (np.arange(TABLE_SIDE) + 0.5) / CELLS_PER_UNIT - MARGIN
    x, y = centres[None, :], centres[:, None]
    nearest = np.full((TABLE_SIDE, TABLE_SIDE), np.inf)
    for (x0, y0), (x1, y1) in segments(path):
        along_x, along_y = x1 - x0, y1 - y0
        length = along_x * along_x + along_y * along_y
        position = np.clip(((x - x0) * along_x + (y - y0) * along_y) / length, 0.0, 1.0)
        off_x, off_y = x - x0 - position * along_x, y - y0 - position * along_y
        nearest = np.minimum(nearest, off_x * off_x + off_y * off_y)
    steps: Pixels = np.minimum(np.rint(np.sqrt(nearest) * STEPS_PER_UNIT), 255.0).astype(np.uint8)
    return steps


def segments(path: str) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Yield the straight pieces ((x0, y0), (x1, y1)) of a path; curves come in eight pieces."""
    at = (0.0, 0.0)
    for command, *numbers in _commands(path):
        points = list(zip(numbers[::2], numbers[1::2], strict=True))
        end = points[-1]
        if command == "L":
            yield at, end
        elif command == "Q":
            (x0, y0), (x1, y1), (x2, y2) = at, *points
            last = at
            for piece in range(1, CURVE_PIECES + 1):
                t = piece / CURVE_PIECES
                u = 1 - t
                point = (u * u * x0 + 2 * u * t * x1 + t * t * x2, u * u * y0 + 2 * u * t * y1 + t * t * y2)
                yield last, point
                last = point
        at = end


def _commands(path: str) -> Iterator[tuple[str, *tuple[float, ...]]]:
    for letter, numbers in re.findall(r"([MLQ])([\d ]+)", path):
        yield letter, *map(float, numbers.split())
