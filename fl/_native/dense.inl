// Fully connected layers.
//
// A layer's weights are kept as [panel][input][16]: a panel is 16 outputs, inputs are padded by zeros to a multiple of
// 16. So the weights consist of tiles of 16 x 16 that lie in one piece. Activations are [image][width], the width
// padded alike. One register-blocked product does all the work, a scalar times a vector, so that every sum is a chain
// of its own and no lanes are ever added up:
//   outputs          Y[b][o]  = bias[o] + sum_k X[b][k] W[k][o]
//   weight gradient  dW[k][o] = sum_b X[b][k] dY[b][o]
//   input gradient   dX[b][k] = sum_o dY[b][o] W'[o][k], with the transposed weights, [panel of inputs][output][16]
// The transposed copy is made where the weights change, in training alone.

constexpr int TILE = VIRTUAL_LANES * VIRTUAL_LANES;
constexpr int PANEL_VECTORS = VIRTUAL_LANES / LANES;
constexpr int OUTER_ROWS = 6;                                  // rows of a register block ...
constexpr int OUTER_PANELS = LANES == 16 ? 4 : 1;              // ... times panels

constexpr int padded(int n) { return (n + VIRTUAL_LANES - 1) / VIRTUAL_LANES * VIRTUAL_LANES; }

struct Dense {
    int in, out;
    int64_t weight, bias;   // where they start in the working parameter vector
    int64_t transposed;     // where the transposed weights start in a vector of their own; -1: nobody needs them
    bool hidden;            // followed by a ReLU
    int in_stride() const { return padded(in); }
    int out_stride() const { return padded(out); }
    int64_t weight_size() const { return int64_t(in_stride()) * out_stride(); }
};

// What a product reads and writes. Result (row, panel, lane) stands at c[panel * c_panel + row * c_row + lane], and is
// start + sum over steps of a[row * a_row + step * a_step] * b[panel * b_panel + step * b_step + lane].
struct Product {
    int rows, panels, steps;
    const float *a;
    int64_t a_row, a_step;
    const float *b;
    int64_t b_panel, b_step;
    float *c;
    int64_t c_panel, c_row;
};

// start(where the result goes, its lane) -> V; finish(where it goes, sum) -> V.
template <class Start, class Finish>
FL_INLINE void outers(const Product &p, Start &&start, Finish &&finish) {
    in_blocks<OUTER_PANELS>(p.panels, [&](int panel, auto panels) __attribute__((always_inline)) {
        in_blocks<OUTER_ROWS>(p.rows, [&](int row, auto rows) __attribute__((always_inline)) {
            constexpr int ROWS = decltype(rows)::value, VECTORS = decltype(panels)::value * PANEL_VECTORS;
            float *c = p.c + panel * p.c_panel + row * p.c_row;
            const auto at = [&](int r, int v) __attribute__((always_inline)) {
                return c + v / PANEL_VECTORS * p.c_panel + r * p.c_row + v % PANEL_VECTORS * LANES;
            };
            V sum[ROWS][VECTORS];
            FL_UNROLL
            for (int r = 0; r < ROWS; r++)
                FL_UNROLL
                for (int v = 0; v < VECTORS; v++)
                    sum[r][v] = start(at(r, v), (panel * PANEL_VECTORS + v) * LANES);
            const float *ak = p.a + row * p.a_row, *bk = p.b + panel * p.b_panel;
            for (int k = 0; k < p.steps; k++, ak += p.a_step, bk += p.b_step) {
                V in[VECTORS];
                FL_UNROLL
                for (int v = 0; v < VECTORS; v++)
                    in[v] = load(bk + v / PANEL_VECTORS * p.b_panel + v % PANEL_VECTORS * LANES);
                FL_UNROLL
                for (int r = 0; r < ROWS; r++) {
                    const V scalar = broadcast(ak[r * p.a_row]);
                    FL_UNROLL
                    for (int v = 0; v < VECTORS; v++) sum[r][v] = fma(scalar, in[v], sum[r][v]);
                }
            }
            FL_UNROLL
            for (int r = 0; r < ROWS; r++)
                FL_UNROLL
                for (int v = 0; v < VECTORS; v++) store(at(r, v), finish(at(r, v), sum[r][v]));
        });
    });
}

const auto from_zero = [](const float *, int) __attribute__((always_inline)) { return V{}; };
const auto from_there = [](const float *at, int) __attribute__((always_inline)) { return load(at); };
const auto as_it_is = [](const float *, V x) __attribute__((always_inline)) { return x; };
const auto rectified = [](const float *, V x) __attribute__((always_inline)) { return relu(x); };

// Y = X W + bias, through a ReLU if the layer is hidden. Rows of X and Y are the n images.
static void dense_forward(const Dense &layer, const float *parameters, const float *x, int n, float *y) {
    const int in = layer.in_stride(), out = layer.out_stride();
    const float *bias = parameters + layer.bias;
    const Product product = {n, out / VIRTUAL_LANES, layer.in, x, in, 1, parameters + layer.weight,
                             int64_t(in) * VIRTUAL_LANES, VIRTUAL_LANES, y, VIRTUAL_LANES, out};
    const auto from_bias = [&](const float *, int lane) __attribute__((always_inline)) { return load(bias + lane); };
    if (layer.hidden)
        outers(product, from_bias, rectified);
    else
        outers(product, from_bias, as_it_is);
}

// The layer's gradient, given the inputs x and the output gradient dy, goes to where finish() puts it: (where the
// element stands in `to`, sum) -> what is stored there. start() is what the sums begin with.
template <class Start, class Finish>
FL_INLINE void dense_gradient(const Dense &layer, const float *x, const float *dy, int n, float *to, Start &&start,
                              Finish &&finish) {
    const int in = layer.in_stride(), out = layer.out_stride();
    outers({layer.in, out / VIRTUAL_LANES, n, x, 1, in, dy, VIRTUAL_LANES, out, to + layer.weight,
            int64_t(in) * VIRTUAL_LANES, VIRTUAL_LANES},
           start, finish);
    float *bias = to + layer.bias;
    for (int o = 0; o < out; o += LANES) {
        V sum = start(bias + o, o);
        for (int b = 0; b < n; b++) sum += load(dy + int64_t(b) * out + o);
        store(bias + o, finish(bias + o, sum));
    }
}
static void dense_first_gradient(const Dense &layer, const float *x, const float *dy, int n, float *gradient) {
    dense_gradient(layer, x, dy, n, gradient, from_zero, as_it_is);
}
static void dense_next_gradient(const Dense &layer, const float *x, const float *dy, int n, float *gradient) {
    dense_gradient(layer, x, dy, n, gradient, from_there, as_it_is);
}
// Plain SGD in the same stroke: the gradient is added, times `down`, to the parameters, and never stored.
static void dense_descent(const Dense &layer, const float *x, const float *dy, int n, float down, float *parameters) {
    dense_gradient(layer, x, dy, n, parameters, from_zero, [&](const float *at, V sum) __attribute__((always_inline)) {
        return fma(broadcast(down), sum, load(at));
    });
}

// dx = dy W', cut to where the ReLU that made x let something through.
static void dense_backward(const Dense &layer, const float *transposed, const float *x, const float *dy, int n,
                           float *dx) {
    const int in = layer.in_stride(), out = layer.out_stride();
    outers({n, in / VIRTUAL_LANES, layer.out, dy, out, 1, transposed + layer.transposed,
            int64_t(out) * VIRTUAL_LANES, VIRTUAL_LANES, dx, VIRTUAL_LANES, in},
           from_zero, as_it_is);
    for (int64_t i = 0; i < int64_t(n) * in; i += LANES) store(dx + i, load(x + i) <= V{} ? V{} : load(dx + i));
}

// Goes through the tiles of a layer's weights: change(where the tile starts in the working vector), and then puts the
// tile's transpose into its place, if the layer has one.
template <class F>
FL_INLINE void dense_change(const Dense &layer, const float *parameters, float *transposed, F &&change) {
    const int ins = layer.in_stride() / VIRTUAL_LANES, outs = layer.out_stride() / VIRTUAL_LANES;
    for (int o = 0; o < outs; o++)
        for (int k = 0; k < ins; k++) {
            const int64_t tile = layer.weight + (int64_t(o) * ins + k) * TILE;
            change(tile);
            if (layer.transposed < 0) continue;
            float *to = transposed + layer.transposed + (int64_t(k) * outs + o) * TILE;
            FL_UNROLL
            for (int row = 0; row < VIRTUAL_LANES; row += LANES)
                for (int column = 0; column < VIRTUAL_LANES; column += 4)
                    turn<LANES>(parameters + tile + row * VIRTUAL_LANES + column, VIRTUAL_LANES,
                                to + column * VIRTUAL_LANES + row, VIRTUAL_LANES);
        }
}
