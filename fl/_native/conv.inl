// The two convolutions with their ReLU and 2x2 max-pool, one image at a time, so that no batch size wastes lanes.
//
// First convolution: lanes are neighbouring *pooled* positions. The image is split into four phases (even/odd row,
// even/odd column), in which a pooling window's four outputs come from equally shifted vectors: pooling is then a
// maximum of four accumulators, and no output is ever stored unpooled.
//
// Second convolution: lanes are output maps forward, and (x, input map) pairs backward. Only one output per pooling
// window has a gradient, so backward visits 4*4 windows instead of 8*8 outputs: a quarter of the arithmetic.
//
// A "cell" is a pooled position of the first convolution: 12 rows of 14 (the phases' row length; the last two columns
// of a row hold rubbish that never meets a non-zero weight or gradient), rounded up to whole vectors.

constexpr int SIDE = 28, PIXELS = SIDE * SIDE;
constexpr int TAPS = 5;
constexpr int MAPS1 = 6, MAPS2 = 16;
constexpr int PHASE_ROW = 14, PHASE = 208;  // 14 * 14 values, and what the last vectors read beyond them
constexpr int CELLS = 176;
constexpr int DEPTH = 8;                    // maps of a cell, padded with zeros
constexpr int CELL_ROW = PHASE_ROW * DEPTH;
constexpr int WINDOWS = 16;                 // pooled positions of the second convolution
constexpr int TAP_ROW = 48;                 // 5 taps * 8 maps, and 8 zeros
constexpr int KERNEL2 = 7 * TAP_ROW;        // a zero row, 5 rows of taps, a zero row

// Register blocks: how many accumulators a loop keeps depends on how many registers there are.
constexpr int MAPS1_BLOCK = REGISTERS >= 32 ? 6 : 3;      // * 4 phases
constexpr int TAPS1_BLOCK = REGISTERS >= 32 ? 5 : 2;      // rows of taps, * 5 taps
constexpr int MAPS2_VECTORS = MAPS2 / LANES;
constexpr int MAPS2_BLOCK = LANES == 4 && REGISTERS < 32 ? 2 : MAPS2_VECTORS;
constexpr int COLUMNS2_BLOCK = LANES == 16 ? 8 : 2;       // * 2 rows * MAPS2_BLOCK
constexpr int ROW_VECTORS = TAP_ROW / LANES;
constexpr int TAP_VECTORS = (TAPS * DEPTH + LANES - 1) / LANES;
constexpr int INPUT2_BLOCK = LANES == 16 ? 6 : REGISTERS >= 32 || LANES == 8 ? 2 : 1;  // rows, * ROW_VECTORS
constexpr int TAPS2_BLOCK = LANES == 16 ? 5 : REGISTERS >= 32 || LANES == 8 ? 2 : 1;   // rows, * TAP_VECTORS

// Where the convolutions' parameters start in the working vector (see network.inl), and the parameters' layouts:
//   weight1 [map][5][5], bias1 [map]: as torch has them
//   weight2 [map][7][6][8]: a zero row, then [y][x][input map], the rest zeros. Read from a row up or a column to the
//   left this is the kernel shifted within a 6x6 field, which is how it meets a window's four possible maxima.
constexpr int WEIGHT1 = 0, BIAS1 = 160, WEIGHT2 = 176 + 16, BIAS2 = WEIGHT2 + MAPS2 * KERNEL2;
constexpr int CONV_PARAMETERS = BIAS2 + MAPS2;

// What an image's forward pass leaves for its backward pass.
struct Features {
    float phases[4][PHASE];         // the scaled image; phase 2 * (y & 1) + (x & 1)
    float cells[CELLS * DEPTH];     // pooled first convolution, [cell][map]
    int32_t winner1[MAPS1][CELLS];  // which phase won the maximum
    int32_t winner2[WINDOWS][MAPS2];
};

// Scratch of the conv passes: used for one image at a time.
struct ConvScratch {
    float weight2[TAPS * TAP_ROW][MAPS2];  // [y][x][input map][map]: weight2 with the maps as lanes, for the forward
    float planes[DEPTH][CELLS];            // pooled first convolution or its gradient, [map][cell]; maps 6, 7 zero
    float shifted[2][CELLS * DEPTH];       // an image's cells, and the same one cell on: keeps backward's loads aligned
    float cell_gradient[CELLS * DEPTH];
    float weight1[MAPS1 * TAPS * TAPS + 2][LANES];  // gradient of weight1 and bias1, lanes not yet summed; two spare
    float bias1[DEPTH][LANES];
};

// Takes the larger of the four accumulators of a pooling window and notes which it was; first wins ties, NaN wins all.
FL_INLINE void pool(const V (&candidates)[4], V &best, VI &winner) {
    best = candidates[0];
    winner = VI{};
    FL_UNROLL
    for (int c = 1; c < 4; c++) {
        const V x = candidates[c];
        const VI larger = (x > best) | (x != x);
        best = larger ? x : best;
        winner = larger ? broadcast(int32_t(c)) : winner;
    }
}

static void split_phases(const uint8_t *image, float scale, float offset, Features &f) {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "pixel pairs are read as little-endian numbers");
    typedef uint16_t Pairs __attribute__((vector_size(2 * LANES)));
    typedef uint16_t Unaligned __attribute__((vector_size(2 * LANES), aligned(1), may_alias));
    uint8_t pixels[PIXELS + 16];  // the last row's vectors read beyond the image
    __builtin_memcpy(pixels, image, PIXELS);
    __builtin_memset(pixels + PIXELS, 0, 16);
    for (int y = 0; y < SIDE; y++) {
        float *even = f.phases[2 * (y & 1)] + (y >> 1) * PHASE_ROW, *odd = even + PHASE;
        FL_UNROLL
        for (int j = 0; j < 16; j += LANES) {  // 16 for 14: the next row overwrites the other two
            const Pairs pairs = *reinterpret_cast<const Unaligned *>(pixels + y * SIDE + 2 * j);
            store(even + j, __builtin_convertvector(__builtin_convertvector(pairs & 255, VI), V) * scale + offset);
            store(odd + j, __builtin_convertvector(__builtin_convertvector(pairs >> 8, VI), V) * scale + offset);
        }
    }
}

// First convolution, ReLU and pooling: phases -> planes (and winner1).
static void conv1_forward(const float *parameters, Features &f, ConvScratch &s) {
    for (int map = 0; map < MAPS1; map += MAPS1_BLOCK) {
        const float *weight = parameters + WEIGHT1 + map * TAPS * TAPS, *bias = parameters + BIAS1 + map;
        for (int cell = 0; cell < CELLS; cell += LANES) {
            V sum[MAPS1_BLOCK][4];
            FL_UNROLL
            for (int m = 0; m < MAPS1_BLOCK; m++)
                FL_UNROLL
                for (int c = 0; c < 4; c++) sum[m][c] = broadcast(bias[m]);
            for (int ky = 0; ky < TAPS; ky++) {  // not unrolled: the compiler would keep loads for later and spill
                const float *rows[2];
                FL_UNROLL
                for (int y = 0; y < 2; y++)
                    rows[y] = f.phases[2 * ((ky + y) & 1)] + ((ky + y) >> 1) * PHASE_ROW + cell;
                FL_UNROLL
                for (int kx = 0; kx < TAPS; kx++)
                    FL_UNROLL
                    for (int c = 0; c < 4; c++) {
                        const int x = kx + c % 2;
                        const V in = load(rows[c / 2] + (x & 1) * PHASE + (x >> 1));
                        FL_UNROLL
                        for (int m = 0; m < MAPS1_BLOCK; m++) sum[m][c] += in * weight[(m * TAPS + ky) * TAPS + kx];
                    }
            }
            FL_UNROLL
            for (int m = 0; m < MAPS1_BLOCK; m++) {
                V best;
                VI winner;
                pool(sum[m], best, winner);
                store(s.planes[map + m] + cell, relu(best));
                store(f.winner1[map + m] + cell, best <= V{} ? broadcast(int32_t(-1)) : winner);  // -1: ReLU shut
            }
        }
    }
}

// planes [map][cell] -> cells [cell][map]
static void gather_maps(const ConvScratch &s, float *cells) {
    for (int cell = 0; cell < CELLS; cell += LANES) {
        V v[DEPTH];
        FL_UNROLL
        for (int m = 0; m < DEPTH; m++) v[m] = m < MAPS1 ? load(s.planes[m] + cell) : V{};
        riffle<DEPTH, 3>(v);
        FL_UNROLL
        for (int m = 0; m < DEPTH; m++) store(cells + cell * DEPTH + m * LANES, v[m]);
    }
}

// weight2 of the parameters -> weight2 of the scratch, once per change of the parameters.
static void transpose_weight2(const float *parameters, ConvScratch &s) {
    for (int tap = 0; tap < TAPS * TAP_ROW; tap += LANES) {
        V v[MAPS2];
        FL_UNROLL
        for (int m = 0; m < MAPS2; m++) v[m] = load(parameters + WEIGHT2 + m * KERNEL2 + TAP_ROW + tap);
        riffle<MAPS2, 4>(v);
        FL_UNROLL
        for (int m = 0; m < MAPS2; m++) store(&s.weight2[tap][0] + m * LANES, v[m]);
    }
}

// Second convolution, ReLU and pooling: cells -> out [window][map] (and winner2).
static void conv2_forward(const float *parameters, const ConvScratch &s, Features &f, float *out) {
    for (int map = 0; map < MAPS2; map += MAPS2_BLOCK * LANES)
        for (int row = 0; row < 8; row += 2)
            for (int column = 0; column < 8; column += COLUMNS2_BLOCK) {
                V sum[2][COLUMNS2_BLOCK][MAPS2_BLOCK];
                FL_UNROLL
                for (int v = 0; v < MAPS2_BLOCK; v++) {
                    const V bias = load(parameters + BIAS2 + map + v * LANES);
                    FL_UNROLL
                    for (int y = 0; y < 2; y++)
                        FL_UNROLL
                        for (int x = 0; x < COLUMNS2_BLOCK; x++) sum[y][x][v] = bias;
                }
                for (int ky = 0; ky < TAPS; ky++)
                    for (int kx = 0; kx < TAPS; kx++) {
                        const float *in = f.cells + (row + ky) * CELL_ROW + (column + kx) * DEPTH;
                        const float *weight = s.weight2[ky * TAP_ROW + kx * DEPTH] + map;
                        FL_UNROLL
                        for (int m = 0; m < MAPS1; m++)
                            FL_UNROLL
                            for (int v = 0; v < MAPS2_BLOCK; v++) {
                                const V w = load(weight + m * MAPS2 + v * LANES);
                                FL_UNROLL
                                for (int y = 0; y < 2; y++)
                                    FL_UNROLL
                                    for (int x = 0; x < COLUMNS2_BLOCK; x++)
                                        sum[y][x][v] += in[y * CELL_ROW + x * DEPTH + m] * w;
                            }
                    }
                FL_UNROLL
                for (int x = 0; x < COLUMNS2_BLOCK; x += 2)
                    FL_UNROLL
                    for (int v = 0; v < MAPS2_BLOCK; v++) {
                        const V window[4] = {sum[0][x][v], sum[0][x + 1][v], sum[1][x][v], sum[1][x + 1][v]};
                        const int at = (row / 2 * 4 + (column + x) / 2), lane = map + v * LANES;
                        V best;
                        VI winner;
                        pool(window, best, winner);
                        store(out + at * MAPS2 + lane, relu(best));
                        store(f.winner2[at] + lane, winner);
                    }
            }
}

static void conv_forward(const float *parameters, const uint8_t *image, float scale, float offset, Features &f,
                         ConvScratch &s, float *out) {
    split_phases(image, scale, offset, f);
    conv1_forward(parameters, f, s);
    gather_maps(s, f.cells);
    conv2_forward(parameters, s, f, out);
}

// Gradient of weight2 and bias2, given that of the pooled outputs (zero where the ReLU is shut), [window][map].
static void conv2_gradient(const Features &f, const float *d_out, ConvScratch &s, float *gradient) {
    for (int i = 0; i + DEPTH + LANES <= CELLS * DEPTH; i += LANES) {
        store(s.shifted[0] + i, load(f.cells + i));
        store(s.shifted[1] + i, load(f.cells + i + DEPTH));
    }
    const int start[4] = {0, CELLS * DEPTH, CELL_ROW, CELLS * DEPTH + CELL_ROW};  // by winner
    for (int map = 0; map < MAPS2; map++)
        in_blocks<TAPS2_BLOCK>(TAPS, [&](int row, auto rows) {
            constexpr int ROWS = decltype(rows)::value;
            float *dw = gradient + WEIGHT2 + map * KERNEL2 + (1 + row) * TAP_ROW;
            V sum[ROWS][TAP_VECTORS];
            FL_UNROLL
            for (int r = 0; r < ROWS; r++)
                FL_UNROLL
                for (int v = 0; v < TAP_VECTORS; v++) sum[r][v] = load(dw + r * TAP_ROW + v * LANES);
            for (int window = 0; window < WINDOWS; window++) {
                const V d = broadcast(d_out[window * MAPS2 + map]);
                const float *in = &s.shifted[0][0] + start[f.winner2[window][map]] +
                                  ((window >> 2) * 2 + row) * CELL_ROW + (window & 3) * 2 * DEPTH;
                FL_UNROLL
                for (int r = 0; r < ROWS; r++)
                    FL_UNROLL
                    for (int v = 0; v < TAP_VECTORS; v++) sum[r][v] += d * load(in + r * CELL_ROW + v * LANES);
            }
            FL_UNROLL
            for (int r = 0; r < ROWS; r++)
                FL_UNROLL
                for (int v = 0; v < TAP_VECTORS; v++) store(dw + r * TAP_ROW + v * LANES, sum[r][v]);
        });
    for (int lane = 0; lane < MAPS2; lane += LANES) {
        V sum = load(gradient + BIAS2 + lane);
        for (int window = 0; window < WINDOWS; window++) sum += load(d_out + window * MAPS2 + lane);
        store(gradient + BIAS2 + lane, sum);
    }
}

// Gradient of the cells: each window adds its maps' shifted kernels to the 6x6 cells it saw.
static void conv2_backward(const float *parameters, const Features &f, const float *d_out, ConvScratch &s) {
    __builtin_memset(s.cell_gradient, 0, sizeof s.cell_gradient);
    const int start[4] = {TAP_ROW, TAP_ROW - DEPTH, 0, -DEPTH};  // by winner: the kernel moves right and down
    for (int window = 0; window < WINDOWS; window++)
        for (int row = 0; row < 6; row += INPUT2_BLOCK) {
            V sum[INPUT2_BLOCK][ROW_VECTORS];
            float *d_in = s.cell_gradient + ((window >> 2) * 2 + row) * CELL_ROW + (window & 3) * 2 * DEPTH;
            FL_UNROLL
            for (int r = 0; r < INPUT2_BLOCK; r++)
                FL_UNROLL
                for (int v = 0; v < ROW_VECTORS; v++) sum[r][v] = load(d_in + r * CELL_ROW + v * LANES);
            for (int map = 0; map < MAPS2; map++) {
                const V d = broadcast(d_out[window * MAPS2 + map]);
                const float *weight =
                    parameters + WEIGHT2 + map * KERNEL2 + start[f.winner2[window][map]] + row * TAP_ROW;
                FL_UNROLL
                for (int r = 0; r < INPUT2_BLOCK; r++)
                    FL_UNROLL
                    for (int v = 0; v < ROW_VECTORS; v++) sum[r][v] += d * load(weight + r * TAP_ROW + v * LANES);
            }
            FL_UNROLL
            for (int r = 0; r < INPUT2_BLOCK; r++)
                FL_UNROLL
                for (int v = 0; v < ROW_VECTORS; v++) store(d_in + r * CELL_ROW + v * LANES, sum[r][v]);
        }
}

// cell_gradient [cell][map] -> planes [map][cell], zero where the ReLU is shut; their sums go to bias1.
static void scatter_maps(const Features &f, ConvScratch &s) {
    for (int cell = 0; cell < CELLS; cell += LANES) {
        V v[DEPTH];
        FL_UNROLL
        for (int m = 0; m < DEPTH; m++) v[m] = load(s.cell_gradient + cell * DEPTH + m * LANES);
        riffle<DEPTH, LANE_BITS>(v);
        FL_UNROLL
        for (int m = 0; m < MAPS1; m++) {
            const V d = load(f.winner1[m] + cell) < VI{} ? V{} : v[m];
            store(s.planes[m] + cell, d);
            store(s.bias1[m], load(s.bias1[m]) + d);
        }
    }
}

// Gradient of weight1, lanes apart: each phase's share of the planes times the equally shifted image.
static void conv1_gradient(const Features &f, ConvScratch &s) {
    for (int map = 0; map < MAPS1; map++)
        in_blocks<TAPS1_BLOCK>(TAPS, [&](int row, auto rows) {
            constexpr int ROWS = decltype(rows)::value;
            float *dw = s.weight1[(map * TAPS + row) * TAPS];
            V sum[ROWS][TAPS];
            FL_UNROLL
            for (int r = 0; r < ROWS; r++)
                FL_UNROLL
                for (int k = 0; k < TAPS; k++) sum[r][k] = load(dw + (r * TAPS + k) * LANES);
            for (int cell = 0; cell < CELLS; cell += LANES) {
                const V d = load(s.planes[map] + cell);
                const VI winner = load(f.winner1[map] + cell);
                V share[4];
                FL_UNROLL
                for (int c = 0; c < 4; c++) share[c] = winner == c ? d : V{};
                FL_UNROLL
                for (int y = 0; y < ROWS + 1; y++)
                    FL_UNROLL
                    for (int x = 0; x < TAPS + 1; x++) {
                        const V in = load(f.phases[2 * ((y + row) & 1) + (x & 1)] + ((y + row) >> 1) * PHASE_ROW +
                                          (x >> 1) + cell);
                        FL_UNROLL
                        for (int c = 0; c < 4; c++) {
                            const int ky = y - c / 2, kx = x - c % 2;
                            if (ky >= 0 && ky < ROWS && kx >= 0 && kx < TAPS) sum[ky][kx] += share[c] * in;
                        }
                    }
            }
            FL_UNROLL
            for (int r = 0; r < ROWS; r++)
                FL_UNROLL
                for (int k = 0; k < TAPS; k++) store(dw + (r * TAPS + k) * LANES, sum[r][k]);
        });
}

// One image's share of the convolutions' gradient, given that of the pooled outputs.
static void conv_backward(const float *parameters, const Features &f, const float *d_out, ConvScratch &s,
                          float *gradient) {
    conv2_gradient(f, d_out, s, gradient);
    conv2_backward(parameters, f, d_out, s);
    scatter_maps(f, s);
    conv1_gradient(f, s);
}

static void begin_conv_gradient(ConvScratch &s, float *gradient) {
    __builtin_memset(gradient, 0, CONV_PARAMETERS * sizeof(float));
    __builtin_memset(s.weight1, 0, sizeof s.weight1);
    __builtin_memset(s.bias1, 0, sizeof s.bias1);
}

// Adds up the lanes of weight1 and bias1, and clears what vectors wider than a row of taps left behind it.
static void finish_conv_gradient(const ConvScratch &s, float *gradient) {
    const auto sum4 = [](const float (*lanes)[LANES]) __attribute__((always_inline)) {
        return sums(load(lanes[0]), load(lanes[1]), load(lanes[2]), load(lanes[3]));
    };
    for (int i = 0; i < MAPS1 * TAPS * TAPS; i += 4) store4(gradient + WEIGHT1 + i, sum4(s.weight1 + i));
    for (int m = 0; m < DEPTH; m += 4) store4(gradient + BIAS1 + m, sum4(s.bias1 + m));
    for (int map = 0; map < MAPS2; map++)
        for (int row = 1; row <= TAPS; row++)
            __builtin_memset(gradient + WEIGHT2 + map * KERNEL2 + row * TAP_ROW + TAPS * DEPTH, 0,
                             (TAP_ROW - TAPS * DEPTH) * sizeof(float));
}
