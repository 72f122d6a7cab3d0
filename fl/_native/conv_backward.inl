// The convolutions' gradients, one image at a time.
//
// Only one output per pooling window has a gradient, so backward visits a quarter of the second convolution's outputs.
// There, lanes are (x, input map) pairs, and every sum is a chain over windows and maps. The first convolution's
// gradients are in conv1_gradient.inl.

constexpr int TAP_VECTORS = padded(TAPS * MAPS1) / LANES;
constexpr int TAPS2_BLOCK = LANES == 16 ? 5 : LANES == 8 || REGISTERS >= 32 ? 3 : 1;  // rows, * TAP_VECTORS
constexpr int FIELD_VECTORS = ((TAPS + 1) * MAPS1 - 4) / LANES;  // of a row of the 6x6 field; and one of four lanes
constexpr int INPUT2_BLOCK = LANES == 16 ? 3 : LANES == 8 || REGISTERS >= 32 ? 2 : 1;  // rows, * FIELD_VECTORS and one

// planes [map][cell] -> cells [cell][map], and what a row of taps sees of those, wherever it stands.
template <class G>
static void gather_maps(const typename G::Features &f, typename G::Scratch &s) {
    for (int cell = 0; cell < G::CELLS; cell += 4)
        FL_UNROLL
        for (int m = 0; m <= MAPS1 - 4; m += MAPS1 - 4)
            turn<4>(f.planes[m] + cell, G::CELLS, s.cells + cell * MAPS1 + m, MAPS1);
    for (int row = 0; row < G::SIDE1; row++)
        for (int column = 0; column < G::SIDE2; column++)
            FL_UNROLL
            for (int i = 0; i < G::SEEN; i += LANES)
                store(s.seen + row * G::SEEN_ROW + column * G::SEEN + i,
                      load(s.cells + row * G::CELL_ROW + column * MAPS1 + i));
}

// Gradient of weight2 and bias2, given that of the pooled outputs (zero where the ReLU is shut), [window][map].
template <class G>
static void conv2_gradient(const typename G::Features &f, const float *d_out, const typename G::Scratch &s,
                           float *gradient) {
    const int start[4] = {0, G::SEEN, G::SEEN_ROW, G::SEEN_ROW + G::SEEN};  // by winner
    for (int map = 0; map < MAPS2; map++)
        in_blocks<TAPS2_BLOCK>(TAPS, [&](int row, auto rows) __attribute__((always_inline)) {
            constexpr int ROWS = decltype(rows)::value;
            float *dw = gradient + G::WEIGHT2 + map * KERNEL2 + (1 + row) * TAP_ROW;
            V sum[ROWS][TAP_VECTORS];
            FL_UNROLL
            for (int r = 0; r < ROWS; r++)
                FL_UNROLL
                for (int v = 0; v < TAP_VECTORS; v++) sum[r][v] = load(dw + r * TAP_ROW + v * LANES);
            for (int y = 0, window = 0; y < G::GRID; y++)
                for (int x = 0; x < G::GRID; x++, window++) {
                    const V d = broadcast(d_out[window * MAPS2 + map]);
                    const float *in = s.seen + start[f.winner2[window][map]] + (2 * y + row) * G::SEEN_ROW +
                                      2 * x * G::SEEN;
                    FL_FORGET(in);
                    FL_UNROLL
                    for (int r = 0; r < ROWS; r++)
                        FL_UNROLL
                        for (int v = 0; v < TAP_VECTORS; v++)
                            sum[r][v] = fma(d, load(in + r * G::SEEN_ROW + v * LANES), sum[r][v]);
                }
            FL_UNROLL
            for (int r = 0; r < ROWS; r++)
                FL_UNROLL
                for (int v = 0; v < TAP_VECTORS; v++) store(dw + r * TAP_ROW + v * LANES, sum[r][v]);
        });
    for (int lane = 0; lane < MAPS2; lane += LANES) {
        V sum = load(gradient + G::BIAS2 + lane);
        for (int window = 0; window < G::WINDOWS; window++) sum += load(d_out + window * MAPS2 + lane);
        store(gradient + G::BIAS2 + lane, sum);
    }
}

// Gradient of the cells: each window adds its maps' shifted kernels to the 6x6 cells it saw, in order of the windows. What
// a row of cells gets from lower rows of kernels comes from earlier windows: these are added first. So a part of the
// kernels meets all windows, and stays in the nearest cache.
template <class G>
static void conv2_backward(const float *parameters, const typename G::Features &f, const float *d_out,
                           typename G::Scratch &s) {
    __builtin_memset(s.cell_gradient, 0, sizeof s.cell_gradient);
    const float *own = parameters + G::WEIGHT2, *moved = s.moved2;
    const float *const start[4] = {own + TAP_ROW, moved + TAP_ROW, own, moved};  // by winner: it moves right and down
    for (int row = TAPS + 1 - INPUT2_BLOCK; row >= 0; row -= INPUT2_BLOCK)
        for (int window = 0; window < G::WINDOWS; window++) {
            V sum[INPUT2_BLOCK][FIELD_VECTORS];
            V4 last[INPUT2_BLOCK];
            float *d_in = s.cell_gradient + (window / G::GRID * 2 + row) * G::CELL_ROW + window % G::GRID * 2 * MAPS1;
            FL_UNROLL
            for (int r = 0; r < INPUT2_BLOCK; r++) {
                FL_UNROLL
                for (int v = 0; v < FIELD_VECTORS; v++) sum[r][v] = load(d_in + r * G::CELL_ROW + v * LANES);
                last[r] = load_as<V4>(d_in + r * G::CELL_ROW + FIELD_VECTORS * LANES);
            }
            for (int map = 0; map < MAPS2; map++) {
                const V d = broadcast(d_out[window * MAPS2 + map]);
                const float *weight = start[f.winner2[window][map]] + map * KERNEL2 + row * TAP_ROW;
                FL_FORGET(weight);
                FL_UNROLL
                for (int r = 0; r < INPUT2_BLOCK; r++) {
                    FL_UNROLL
                    for (int v = 0; v < FIELD_VECTORS; v++)
                        sum[r][v] = fma(d, load(weight + r * TAP_ROW + v * LANES), sum[r][v]);
                    last[r] = fma4(d, load_as<V4>(weight + r * TAP_ROW + FIELD_VECTORS * LANES), last[r]);
                }
            }
            FL_UNROLL
            for (int r = 0; r < INPUT2_BLOCK; r++) {
                FL_UNROLL
                for (int v = 0; v < FIELD_VECTORS; v++) store(d_in + r * G::CELL_ROW + v * LANES, sum[r][v]);
                store_as(d_in + r * G::CELL_ROW + FIELD_VECTORS * LANES, last[r]);
            }
        }
}

// cell_gradient [cell][map] -> planes [map][cell].
template <class G>
static void scatter_maps(typename G::Scratch &s) {
    for (int cell = 0; cell < G::CELLS; cell += LANES)
        FL_UNROLL
        for (int m = 0; m <= MAPS1 - 4; m += MAPS1 - 4)
            turn<LANES>(s.cell_gradient + cell * MAPS1 + m, MAPS1, s.planes[m] + cell, G::CELLS);
}

// One image's share of the convolutions' gradient, given that of the pooled outputs.
template <class G>
static void conv_backward(const float *parameters, const uint8_t *image, float scale, float offset,
                          const typename G::Features &f, const float *d_out, typename G::Scratch &s, float *gradient) {
    gather_maps<G>(f, s);
    conv2_gradient<G>(f, d_out, s, gradient);
    conv2_backward<G>(parameters, f, d_out, s);
    scatter_maps<G>(s);
    scale_image<G>(image, scale, offset, s.image);
    conv1_gradient<G>(f, s);
}

template <class G>
static void begin_conv_gradient(typename G::Scratch &s, float *gradient) {
    __builtin_memset(gradient, 0, G::PARAMETERS * sizeof(float));
    __builtin_memset(s.rows1, 0, sizeof s.rows1);
    __builtin_memset(s.bias1, 0, sizeof s.bias1);
}

// Adds up the lanes of weight1 and bias1, and clears what vectors wider than a row of taps left behind it. A zero of
// weight1 gets one sign: which it had depends on whether products with 0 were added.
template <class G>
static void finish_conv_gradient(const typename G::Scratch &s, float *gradient) {
    sum_rows1<G>(s, gradient + G::WEIGHT1);
    for (int i = 0; i < MAPS1 * G::TAPS1; i++) gradient[G::WEIGHT1 + i] += 0.0f;
    for (int m = 0; m < MAPS1; m += 4) sum16(s.bias1 + m, gradient + G::BIAS1 + m);
    for (int map = 0; map < MAPS2; map++)
        for (int row = 1; row <= TAPS; row++)
            __builtin_memset(gradient + G::WEIGHT2 + map * KERNEL2 + row * TAP_ROW + TAPS * MAPS1, 0,
                             (TAP_ROW - TAPS * MAPS1) * sizeof(float));
}
