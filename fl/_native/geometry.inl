// The two convolutions' sizes and memory layouts, for images of CHANNELS x SIDE x SIDE.
//
// A "cell" is a pooled position of the first convolution, a "window" one of the second. Cells are numbered row by row
// and rounded up to whole vectors of 16; those beyond the last are computed like the others and never used.

constexpr int TAPS = 5;
constexpr int MAPS1 = 6, MAPS2 = 16;
constexpr int ROW_LANES = 8;          // for the five taps of a row in the first convolution's gradient
constexpr int TAP_ROW = 48;           // the second's: 5 taps * 6 maps, and zeros
constexpr int KERNEL2 = 7 * TAP_ROW;  // a zero row, 5 rows of taps, a zero row

template <int CHANNELS_, int SIDE_>
struct Geometry {
    static constexpr bool CONVOLUTIONAL = true;
    static constexpr int CHANNELS = CHANNELS_, SIDE = SIDE_, PIXELS = CHANNELS * SIDE * SIDE;
    static constexpr int HALF = SIDE / 2;
    static constexpr int SIDE1 = (SIDE - TAPS + 1) / 2, CELLS = padded(SIDE1 * SIDE1);
    static constexpr int SIDE2 = SIDE1 - TAPS + 1;  // outputs of the second convolution, unpooled
    static constexpr int GRID = SIDE2 / 2, WINDOWS = GRID * GRID, FEATURES = WINDOWS * MAPS2;
    static constexpr int CELL_ROW = SIDE1 * MAPS1;

    // What a row of the second convolution's taps sees, [row of cells][its first column][5 cells * 6 maps], is aligned.
    static constexpr int SEEN = padded(TAPS * MAPS1), SEEN_ROW = SIDE2 * SEEN;

    // The scaled image has rows of whole cache lines, and a copy that is half a line on (see conv1_gradient.inl).
    static constexpr int IMAGE_ROW = padded(SIDE + ROW_LANES), IMAGE_COPY = CHANNELS * SIDE * IMAGE_ROW;
    static constexpr int TAP_ROWS = CHANNELS * TAPS;  // of a map's kernel

    // The image, scaled and spread into [channel][shift 0..5][row parity][row / 2][column]: in shift x, a row holds
    // every other pixel from the x-th on. There, each of a pooling window's four outputs meets a tap of the kernel at
    // one and the same distance from its cell, whichever cell that is.
    static constexpr int SHIFTS = TAPS + 1, SPREAD = HALF * SIDE1, SPREAD_CHANNEL = 2 * SHIFTS * SPREAD;
    static constexpr int SPREAD_SIZE = CHANNELS * SPREAD_CHANNEL + VIRTUAL_LANES;  // zeros: read beyond the last row

    // Where parameters start in the working vector (see network.inl), and their layouts:
    //   weight1 [map][channel][5][5], bias1 [map]: as torch has them
    //   weight2 [map][7][8][6]: a zero row, then [y][x][input map], the rest zeros. Read from a row up or a column to
    //   the left this is the kernel shifted within a 6x6 field, which is how it meets a window's four possible maxima.
    static constexpr int TAPS1 = CHANNELS * TAPS * TAPS;  // of one map
    static constexpr int WEIGHT1 = 0, BIAS1 = padded(MAPS1 * TAPS1);
    static constexpr int WEIGHT2 = BIAS1 + 2 * VIRTUAL_LANES, BIAS2 = WEIGHT2 + MAPS2 * KERNEL2;
    static constexpr int PARAMETERS = BIAS2 + MAPS2;

    // What an image's forward pass leaves for its backward pass.
    struct Features {
        float planes[MAPS1][CELLS];     // pooled first convolution
        int32_t winner1[MAPS1][CELLS];  // which of a cell's four outputs won the maximum; -1: the ReLU is shut
        int32_t winner2[WINDOWS][MAPS2];
    };

    // Scratch of the passes: used for one image at a time.
    struct Scratch {
        float spread[SPREAD_SIZE];
        float weight2[TAPS * TAPS * MAPS1][MAPS2];   // [y][x][input map][map]: weight2 with the maps as lanes
        float moved2[MAPS2 * KERNEL2];               // weight2 a column to the right, for aligned loads
        float cells[CELLS * MAPS1 + VIRTUAL_LANES];  // planes as [cell][map]
        float seen[SIDE1 * SEEN_ROW];                // the same, as rows of the second convolution's taps see it
        float cell_gradient[CELLS * MAPS1];
        float planes[MAPS1][CELLS];              // cell_gradient as [map][cell]
        float bias1[MAPS1 + 2][VIRTUAL_LANES];   // gradient of bias1, lanes not yet summed; sums are made of four rows
        float image[2 * IMAGE_COPY + ROW_LANES];
        float rows1[MAPS1][VIRTUAL_LANES][TAP_ROWS][ROW_LANES];  // gradient of weight1, likewise; 5 of 8 lanes in use
    };
};

// A network without convolutions: it takes the pixels as they are.
struct Flat {
    static constexpr bool CONVOLUTIONAL = false;
    static constexpr int PARAMETERS = 0;
    struct Features {};
    struct Scratch {};
};
