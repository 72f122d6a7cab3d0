// The first convolution's gradients: sums over cells, in 16 virtual lanes (cell mod 16), whatever the vector's width, that
// one tree adds up when the batch is done.
//
// Only one of a cell's four outputs has won the maximum, and only that has a gradient. So the lanes of a vector are the
// taps of a row, though there are but five: a cell takes one multiply-add to a row.

constexpr int LANES1_BLOCK = 2;  // virtual lanes at a time, * 5 rows: else too few sums hide no latency

// A row of taps in eight lanes; what is in those beyond the fifth is of no account.
typedef float Row __attribute__((vector_size(4 * ROW_LANES)));
FL_INLINE Row fma_row(float a, const float *b, Row c) {
#if LANES >= 8
    return Row(_mm256_fmadd_ps(_mm256_set1_ps(a), _mm256_loadu_ps(b), __m256(c)));
#else
    const V low = fma(broadcast(a), load(b), __builtin_shufflevector(c, c, 0, 1, 2, 3));
    const V high = fma(broadcast(a), load(b + 4), __builtin_shufflevector(c, c, 4, 5, 6, 7));
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
}

// The scaled image, twice: a row of taps that would be read across two cache lines from one copy is not from the other.
template <class G>
static void scale_image(const uint8_t *image, float scale, float offset, float *to) {
    typedef uint8_t Pixels __attribute__((vector_size(LANES)));
    for (int row = 0; row < G::CHANNELS * G::SIDE; row++, image += G::SIDE, to += G::IMAGE_ROW)
        FL_UNROLL
        for (int j = 0; j < G::SIDE; j += LANES) {
            const int column = j + LANES > G::SIDE ? G::SIDE - LANES : j;
            const V x = __builtin_convertvector(load_as<Pixels>(image + column), V) * scale + offset;
            store(to + column, x);
            store(to + G::IMAGE_COPY + column + ROW_LANES, x);
        }
}

// Gradient of weight1 and bias1, lanes apart.
template <class G>
static void conv1_gradient(const typename G::Features &f, typename G::Scratch &s) {
    static_assert(G::SIDE1 * G::SIDE1 % LANES1_BLOCK == 0, "lanes of a block have as many cells");
    alignas(64) float share[G::CELLS];
    alignas(64) int32_t start[G::CELLS];  // of the winner's pixels
    alignas(64) int32_t corner[G::CELLS] = {};
    for (int y = 0; y < G::SIDE1; y++)
        for (int x = 0; x < G::SIDE1; x++) corner[y * G::SIDE1 + x] = 2 * (y * G::IMAGE_ROW + x);
    for (int map = 0; map < MAPS1; map++) {
        for (int cell = 0; cell < G::CELLS; cell += LANES) {
            const VI winner = load(f.winner1[map] + cell), which = winner & 3;
            const V d = winner < 0 ? V{} : load(s.planes[map] + cell);
            float *bias = s.bias1[map] + cell % VIRTUAL_LANES;
            store(bias, load(bias) + d);
            store(share + cell, d);
            const VI first = load(corner + cell) + (which & 1) + (which >> 1) * G::IMAGE_ROW;
            store(start + cell, first + (((first & 15) > 16 - ROW_LANES) & (G::IMAGE_COPY + ROW_LANES)));
        }
        for (int lane = 0; lane < VIRTUAL_LANES; lane += LANES1_BLOCK)
            for (int channel = 0; channel < G::CHANNELS; channel++) {
                Row sum[LANES1_BLOCK][TAPS];
                FL_UNROLL
                for (int l = 0; l < LANES1_BLOCK; l++)
                    FL_UNROLL
                    for (int r = 0; r < TAPS; r++)
                        sum[l][r] = load_as<Row>(s.rows1[map][lane + l][channel * TAPS + r]);
                for (int cell = lane; cell < G::SIDE1 * G::SIDE1; cell += VIRTUAL_LANES)
                    FL_UNROLL
                    for (int l = 0; l < LANES1_BLOCK; l++) {
                        const float *in = s.image + channel * G::SIDE * G::IMAGE_ROW + start[cell + l];
                        FL_FORGET(in);
                        FL_UNROLL
                        for (int r = 0; r < TAPS; r++)
                            sum[l][r] = fma_row(share[cell + l], in + r * G::IMAGE_ROW, sum[l][r]);
                    }
                FL_UNROLL
                for (int l = 0; l < LANES1_BLOCK; l++)
                    FL_UNROLL
                    for (int r = 0; r < TAPS; r++) store_as(s.rows1[map][lane + l][channel * TAPS + r], sum[l][r]);
            }
    }
}

// Adds up the lanes in sum16's order.
template <class G>
static void sum_rows1(const typename G::Scratch &s, float *to) {
    for (int map = 0; map < MAPS1; map++)
        for (int r = 0; r < G::TAP_ROWS; r++, to += TAPS) {
            const auto at = [&](int lane) __attribute__((always_inline)) { return load_as<Row>(s.rows1[map][lane][r]); };
            Row part[4];
            FL_UNROLL
            for (int i = 0; i < 4; i++) part[i] = (at(i) + at(i + 4)) + (at(i + 8) + at(i + 12));
            float taps[ROW_LANES];
            store_as(taps, (part[0] + part[1]) + (part[2] + part[3]));
            __builtin_memcpy(to, taps, TAPS * sizeof(float));
        }
}
