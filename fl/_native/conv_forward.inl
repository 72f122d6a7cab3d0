// The two convolutions with their ReLU and 2x2 max-pool, one image at a time, so that no batch size wastes lanes.
//
// First convolution: lanes are neighbouring cells, which meet the spread image at equal distances; pooling is then a
// maximum of four accumulators. Second convolution: lanes are output maps. An output is a chain of multiply-adds from
// its bias: over channel, y, x in the first, over y, x, input map in the second.

// Register blocks: how many accumulators a loop keeps depends on how many registers there are.
constexpr int MAPS1_BLOCK = REGISTERS >= 32 ? 6 : 3;  // * 4 outputs
constexpr int MAPS2_VECTORS = MAPS2 / LANES;
constexpr int COLUMNS2_BLOCK = LANES == 16 ? 10 : 3;  // * 2 rows * MAPS2_VECTORS

// The largest of a pooling window's four values, NaN if one of them is not a number, through the ReLU; in training also
// which it was: 0 to 3, the first of equals, and -1 where the ReLU is shut if wanted.
template <bool TRAINING, bool MARK_SHUT>
FL_INLINE void pool(const V (&in)[4], float *out, int32_t *winner) {
    const V top = larger(in[1], in[0]), bottom = larger(in[3], in[2]), best = larger(bottom, top);
    if constexpr (TRAINING) {
        const VI which = bottom > top ? 2 - VI(in[3] > in[2]) : -VI(in[1] > in[0]);
        store(winner, MARK_SHUT ? which | VI(best <= V{}) : which);
    }
    store(out, unless_nan(relu(best), in[0], in[1], in[2], in[3]));
}

template <class G>
static void spread(const uint8_t *image, float scale, float offset, float *to) {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "pixel pairs are read as little-endian numbers");
    typedef uint16_t Pairs __attribute__((vector_size(2 * LANES)));
    constexpr int ROW = 16, ROWS = G::CHANNELS * G::SIDE;
    static_assert(G::HALF <= ROW && G::SIDE1 + 2 <= ROW, "half a row of pixels is one vector of 16");
    uint8_t pixels[G::PIXELS + 2 * ROW];  // the last row's vectors read beyond the image
    __builtin_memcpy(pixels, image, G::PIXELS);
    __builtin_memset(pixels + G::PIXELS, 0, 2 * ROW);
    alignas(64) float halves[2][ROWS * ROW + 2];  // even and odd columns
    for (float *half : halves) half[ROWS * ROW] = half[ROWS * ROW + 1] = 0;  // shifted rows are read beyond the last
    for (int row = 0; row < ROWS; row++)
        FL_UNROLL
        for (int j = 0; j < ROW; j += LANES) {
            const Pairs pairs = load_as<Pairs>(reinterpret_cast<const uint16_t *>(pixels + row * G::SIDE + 2 * j));
            const V even = __builtin_convertvector(__builtin_convertvector(pairs & 255, VI), V);
            const V odd = __builtin_convertvector(__builtin_convertvector(pairs >> 8, VI), V);
            store(halves[0] + row * ROW + j, even * scale + offset);
            store(halves[1] + row * ROW + j, odd * scale + offset);
        }
    for (int channel = 0; channel < G::CHANNELS; channel++)
        for (int shift = 0; shift < G::SHIFTS; shift++)
            for (int y = 0; y < 2; y++) {
                const float *from = halves[shift & 1] + (channel * G::SIDE + y) * ROW + (shift >> 1);
                for (int row = 0; row < G::HALF; row++, from += 2 * ROW, to += G::SIDE1)
                    FL_UNROLL
                    for (int j = 0; j < G::SIDE1; j += LANES) store(to + j, load(from + j));  // too long: overwritten
            }
    __builtin_memset(to, 0, VIRTUAL_LANES * sizeof(float));
}

// The spread image's row of pixels that meets row y of a window's 6 x 6 inputs in its cell 0, at shift 0.
template <class G>
constexpr int spread_row(int channel, int y) {
    return channel * G::SPREAD_CHANNEL + (y & 1) * G::SPREAD + (y >> 1) * G::SIDE1;
}

// First convolution, ReLU and pooling: spread image -> planes, and winner1.
template <class G, bool TRAINING>
static void conv1_forward(const float *parameters, const float *spread, typename G::Features &f) {
    for (int cell = 0; cell < G::CELLS; cell += LANES)
        for (int map = 0; map < MAPS1; map += MAPS1_BLOCK) {
            const float *weight = parameters + G::WEIGHT1 + map * G::TAPS1, *bias = parameters + G::BIAS1 + map;
            V sum[MAPS1_BLOCK][4];
            FL_UNROLL
            for (int m = 0; m < MAPS1_BLOCK; m++)
                FL_UNROLL
                for (int c = 0; c < 4; c++) sum[m][c] = broadcast(bias[m]);
            for (int channel = 0; channel < G::CHANNELS; channel++)
                for (int ky = 0; ky < TAPS; ky++, weight += TAPS) {
                    const float *rows[2] = {spread + spread_row<G>(channel, ky) + cell,
                                            spread + spread_row<G>(channel, ky + 1) + cell};
                    FL_UNROLL
                    for (int y = 0; y < 2; y++) {
                        V left = load(rows[y]);
                        FL_UNROLL
                        for (int kx = 0; kx < TAPS; kx++) {
                            FL_FORGET(weight);
                            const V right = load(rows[y] + (kx + 1) * 2 * G::SPREAD);
                            FL_UNROLL
                            for (int m = 0; m < MAPS1_BLOCK; m++) {
                                const V w = broadcast(weight[m * G::TAPS1 + kx]);
                                sum[m][2 * y] = fma(left, w, sum[m][2 * y]);
                                sum[m][2 * y + 1] = fma(right, w, sum[m][2 * y + 1]);
                            }
                            left = right;
                        }
                    }
                }
            FL_UNROLL
            for (int m = 0; m < MAPS1_BLOCK; m++)
                pool<TRAINING, true>(sum[m], f.planes[map + m] + cell, f.winner1[map + m] + cell);
        }
}

// weight2 of the parameters -> weight2 of the scratch, once per change of the parameters.
template <class G>
static void transpose_weight2(const float *parameters, typename G::Scratch &s) {
    for (int map = 0; map < MAPS2; map += LANES)
        for (int y = 0; y < TAPS; y++)
            for (int x = 0; x < TAPS; x++) {
                alignas(64) float turned[MAPS1][LANES];
                const float *from = parameters + G::WEIGHT2 + map * KERNEL2 + (1 + y) * TAP_ROW + x * MAPS1;
                for (int m = 0; m <= MAPS1 - 4; m += MAPS1 - 4) turn<LANES>(from + m, KERNEL2, turned[m], LANES);
                for (int m = 0; m < MAPS1; m++) store(s.weight2[(y * TAPS + x) * MAPS1 + m] + map, load(turned[m]));
            }
    for (int i = 0; i < MAPS2 * KERNEL2; i += LANES) store(s.moved2 + i, load(parameters + G::WEIGHT2 + i - MAPS1));
}

// Second convolution, ReLU and pooling: planes -> out [window][map], and winner2.
template <class G, bool TRAINING>
static void conv2_forward(const float *parameters, const typename G::Scratch &s, typename G::Features &f, float *out) {
    for (int row = 0; row < G::SIDE2; row += 2) {
        alignas(64) float unpooled[2][G::SIDE2][MAPS2];
        in_blocks<COLUMNS2_BLOCK>(G::SIDE2, [&](int column, auto columns) __attribute__((always_inline)) {
            constexpr int COLUMNS = decltype(columns)::value;
            V sum[2][COLUMNS][MAPS2_VECTORS];
            FL_UNROLL
            for (int v = 0; v < MAPS2_VECTORS; v++) {
                const V bias = load(parameters + G::BIAS2 + v * LANES);
                FL_UNROLL
                for (int y = 0; y < 2; y++)
                    FL_UNROLL
                    for (int x = 0; x < COLUMNS; x++) sum[y][x][v] = bias;
            }
            const float *weight = s.weight2[0];
            for (int ky = 0; ky < TAPS; ky++)
                for (int kx = 0; kx < TAPS; kx++, weight += MAPS1 * MAPS2) {
                    const float *in = f.planes[0] + (row + ky) * G::SIDE1 + column + kx;
                    FL_UNROLL
                    for (int m = 0; m < MAPS1; m++) {
                        V w[MAPS2_VECTORS];
                        FL_UNROLL
                        for (int v = 0; v < MAPS2_VECTORS; v++) w[v] = load(weight + m * MAPS2 + v * LANES);
                        FL_UNROLL
                        for (int y = 0; y < 2; y++)
                            FL_UNROLL
                            for (int x = 0; x < COLUMNS; x++) {
                                const V scalar = broadcast(in[m * G::CELLS + y * G::SIDE1 + x]);
                                FL_UNROLL
                                for (int v = 0; v < MAPS2_VECTORS; v++)
                                    sum[y][x][v] = fma(scalar, w[v], sum[y][x][v]);
                            }
                    }
                }
            FL_UNROLL
            for (int y = 0; y < 2; y++)
                FL_UNROLL
                for (int x = 0; x < COLUMNS; x++)
                    FL_UNROLL
                    for (int v = 0; v < MAPS2_VECTORS; v++) store(unpooled[y][column + x] + v * LANES, sum[y][x][v]);
        });
        for (int column = 0; column < G::SIDE2; column += 2) {
            const int window = row / 2 * G::GRID + column / 2;
            FL_UNROLL
            for (int lane = 0; lane < MAPS2; lane += LANES) {
                const V in[4] = {load(unpooled[0][column] + lane), load(unpooled[0][column + 1] + lane),
                                 load(unpooled[1][column] + lane), load(unpooled[1][column + 1] + lane)};
                pool<TRAINING, false>(in, out + window * MAPS2 + lane, f.winner2[window] + lane);
            }
        }
    }
}

// Features and `out` of an image, and its spread form in the scratch.
template <class G, bool TRAINING>
static void conv_forward(const float *parameters, const uint8_t *image, float scale, float offset,
                         typename G::Features &f, typename G::Scratch &s, float *out) {
    spread<G>(image, scale, offset, s.spread);
    conv1_forward<G, TRAINING>(parameters, s.spread, f);
    conv2_forward<G, TRAINING>(parameters, s, f, out);
}
