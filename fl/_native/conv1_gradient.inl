// The first convolution's gradients: sums over cells, in 16 virtual lanes (cell mod 16), whatever the vector's width, that
// one tree adds up when the batch is done.
//
// Only one of a cell's four outputs has won the maximum, the others have a gradient of 0. There are two ways, which give
// the same sums. All outputs: the lanes of a vector are the virtual lanes, and each cell takes four multiply-adds to a
// tap, three of them with 0. Winners alone: the lanes of a vector are the taps of a row, of which there are only five,
// and a cell takes one multiply-add to a row. That is the faster way unless a vector has 16 lanes.

constexpr int TAPS1_BLOCK = REGISTERS >= 32 ? 5 : 2;  // rows of taps, * 5 taps

// Gives a map's gradient to the outputs that won the maximum, none where the ReLU is shut; its sum goes to bias1.
template <class G>
static void share_out(const typename G::Features &f, int map, typename G::Scratch &s) {
    for (int cell = 0; cell < G::CELLS; cell += LANES) {
        const VI winner = load(f.winner1[map] + cell);
        const V d = winner < 0 ? V{} : load(s.planes[map] + cell);
        float *bias = s.bias1[map] + cell % VIRTUAL_LANES;
        store(bias, load(bias) + d);
        FL_UNROLL
        for (int c = 0; c < 4; c++) store(s.shares[c] + cell, winner == c ? d : V{});
    }
}

// Gradient of ROWS rows of a map's kernel for one channel, from tap row `row` on: HALVES vectors of virtual lanes at a
// time, from `lane` on.
template <class G, int ROWS, int HALVES>
FL_INLINE void conv1_rows(const float *image, int channel, int row, int lane, const float (*shares)[G::CELLS],
                          float (*dw)[VIRTUAL_LANES]) {
    V sum[HALVES][ROWS][TAPS];
    FL_UNROLL
    for (int h = 0; h < HALVES; h++)
        FL_UNROLL
        for (int r = 0; r < ROWS; r++)
            FL_UNROLL
            for (int k = 0; k < TAPS; k++) sum[h][r][k] = load(dw[r * TAPS + k] + lane + h * LANES);
    const float *rows[ROWS + 1];
    FL_UNROLL
    for (int y = 0; y <= ROWS; y++) rows[y] = image + spread_row<G>(channel, row + y);
    for (int block = lane; block < G::CELLS; block += VIRTUAL_LANES)
        FL_UNROLL
        for (int h = 0; h < HALVES; h++) {
            const int cell = block + h * LANES;
            V share[4];
            FL_UNROLL
            for (int c = 0; c < 4; c++) share[c] = load(shares[c] + cell);
            FL_UNROLL
            for (int y = 0; y <= ROWS; y++)
                FL_UNROLL
                for (int x = 0; x <= TAPS; x++) {
                    const V in = load(rows[y] + x * 2 * G::SPREAD + cell);
                    FL_UNROLL
                    for (int c = 0; c < 4; c++) {
                        const int ky = y - c / 2, kx = x - c % 2;
                        if (ky >= 0 && ky < ROWS && kx >= 0 && kx < TAPS)
                            sum[h][ky][kx] = fma(share[c], in, sum[h][ky][kx]);
                    }
                }
        }
    FL_UNROLL
    for (int h = 0; h < HALVES; h++)
        FL_UNROLL
        for (int r = 0; r < ROWS; r++)
            FL_UNROLL
            for (int k = 0; k < TAPS; k++) store(dw[r * TAPS + k] + lane + h * LANES, sum[h][r][k]);
}

// Gradient of weight1, lanes apart: the shares of the four outputs times the equally shifted image.
template <class G>
static void conv1_gradient(const typename G::Features &f, typename G::Scratch &s) {
    for (int map = 0; map < MAPS1; map++) {
        share_out<G>(f, map, s);
        for (int channel = 0; channel < G::CHANNELS; channel++)
            in_blocks<TAPS1_BLOCK>(TAPS, [&](int row, auto rows) __attribute__((always_inline)) {
                constexpr int ROWS = decltype(rows)::value;
                constexpr int HALVES = LANES == 8 && ROWS == 1 ? 2 : 1;  // else too few accumulators hide no latency
                float(*dw)[VIRTUAL_LANES] = s.weight1 + map * G::TAPS1 + (channel * TAPS + row) * TAPS;
                for (int lane = 0; lane < VIRTUAL_LANES; lane += HALVES * LANES)
                    conv1_rows<G, ROWS, HALVES>(s.spread, channel, row, lane, s.shares, dw);
            });
    }
}

// A row of taps in eight lanes; what is in those beyond the fifth is of no account.
typedef float Row __attribute__((vector_size(4 * DEPTH)));
FL_INLINE Row fma_row(float a, const float *b, Row c) {
#if LANES >= 8
    return Row(_mm256_fmadd_ps(_mm256_set1_ps(a), _mm256_loadu_ps(b), __m256(c)));
#else
    const V low = fma(broadcast(a), load(b), __builtin_shufflevector(c, c, 0, 1, 2, 3));
    const V high = fma(broadcast(a), load(b + 4), __builtin_shufflevector(c, c, 4, 5, 6, 7));
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
}

template <class G>
static void scale_image(const uint8_t *image, float scale, float offset, float *to) {
    static_assert(G::PIXELS % LANES == 0, "whole vectors");
    typedef uint8_t Pixels __attribute__((vector_size(LANES)));
    for (int i = 0; i < G::PIXELS; i += LANES)
        store(to + i, __builtin_convertvector(load_as<Pixels>(image + i), V) * scale + offset);
}

// Gradient of weight1, lanes apart, by the winners alone.
template <class G>
static void conv1_winners(const typename G::Features &f, typename G::Scratch &s) {
    alignas(64) float share[G::CELLS];
    alignas(64) int32_t start[G::CELLS];  // of the winner's pixels
    alignas(64) int32_t corner[G::CELLS] = {};
    for (int y = 0; y < G::SIDE1; y++)
        for (int x = 0; x < G::SIDE1; x++) corner[y * G::SIDE1 + x] = 2 * (y * G::SIDE + x);
    for (int map = 0; map < MAPS1; map++) {
        for (int cell = 0; cell < G::CELLS; cell += LANES) {
            const VI winner = load(f.winner1[map] + cell), which = winner & 3;
            const V d = winner < 0 ? V{} : load(s.planes[map] + cell);
            float *bias = s.bias1[map] + cell % VIRTUAL_LANES;
            store(bias, load(bias) + d);
            store(share + cell, d);
            store(start + cell, load(corner + cell) + (which & 1) + (which >> 1) * G::SIDE);
        }
        for (int lane = 0; lane < VIRTUAL_LANES; lane++) {
            float(*dw)[DEPTH] = s.rows1[map][lane];
            Row sum[G::TAP_ROWS];
            FL_UNROLL
            for (int r = 0; r < G::TAP_ROWS; r++) sum[r] = load_as<Row>(dw[r]);
            for (int cell = lane; cell < G::SIDE1 * G::SIDE1; cell += VIRTUAL_LANES) {
                const float *in = s.image + start[cell];
                FL_FORGET(in);
                FL_UNROLL
                for (int r = 0; r < G::TAP_ROWS; r++)
                    sum[r] = fma_row(share[cell], in + (r / TAPS * G::SIDE + r % TAPS) * G::SIDE, sum[r]);
            }
            FL_UNROLL
            for (int r = 0; r < G::TAP_ROWS; r++) store_as(dw[r], sum[r]);
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
            float taps[DEPTH];
            store_as(taps, (part[0] + part[1]) + (part[2] + part[3]));
            __builtin_memcpy(to, taps, TAPS * sizeof(float));
        }
}
