// Fully connected layers.
//
// Weights stay in torch's layout [out][in], with `in` padded by zeros to a multiple of 16 and `out` to one of 4.
// Activations are [image][width], padded alike. Then two register-blocked products do all the work:
//   outputs          Y[b][o]  = X[b] . W[o]               products along the vectors ("dots")
//   input gradient   dX[b][i] = sum_o dY[b][o] W[o][i]    a scalar times a vector ("outers")
//   weight gradient  dW[o][i] = sum_b dY[b][o] X[b][i]    the same with other strides

constexpr int DOT_ROWS = REGISTERS >= 32 ? 6 : 3;    // images per block of 4 outputs
constexpr int OUTER_ROWS = 6;                        // rows of the result ...
constexpr int OUTER_VECTORS = REGISTERS >= 32 ? 4 : 2;  // ... times vectors per row

constexpr int padded(int n, int to = 16) { return (n + to - 1) / to * to; }

struct Dense {
    int in, out;
    int64_t weight, bias;  // where they start in the working parameter vector
    bool hidden;           // followed by a ReLU
    int in_stride() const { return padded(in); }
    int out_stride() const { return padded(out); }
};

template <int ROWS>
FL_INLINE void dots(const float *x, int x_stride, const float *w, int w_stride, V (&sum)[ROWS][4]) {
    FL_UNROLL
    for (int r = 0; r < ROWS; r++)
        FL_UNROLL
        for (int o = 0; o < 4; o++) sum[r][o] = V{};
    for (int k = 0; k < w_stride; k += LANES) {
        V wk[4];
        FL_UNROLL
        for (int o = 0; o < 4; o++) wk[o] = load(w + int64_t(o) * w_stride + k);
        FL_UNROLL
        for (int r = 0; r < ROWS; r++) {
            const V xk = load(x + int64_t(r) * x_stride + k);
            FL_UNROLL
            for (int o = 0; o < 4; o++) sum[r][o] += xk * wk[o];
        }
    }
}

// Y = X W' + bias, through a ReLU if the layer is hidden. Rows of X and Y are the n images.
static void dense_forward(const Dense &layer, const float *parameters, const float *x, int n, float *y) {
    const int in = layer.in_stride(), out = layer.out_stride();
    const V4 zero = {};
    for (int o = 0; o < layer.out; o += 4) {
        const float *w = parameters + layer.weight + int64_t(o) * in;
        const float *b = parameters + layer.bias + o;
        const V4 bias = {b[0], b[1], b[2], b[3]};
        in_blocks<DOT_ROWS>(n, [&](int row, auto rows) {
            constexpr int ROWS = decltype(rows)::value;
            V sum[ROWS][4];
            dots<ROWS>(x + int64_t(row) * in, in, w, in, sum);
            FL_UNROLL
            for (int r = 0; r < ROWS; r++) {
                V4 value = sums(sum[r][0], sum[r][1], sum[r][2], sum[r][3]) + bias;
                if (layer.hidden) value = value < zero ? zero : value;
                store4(y + int64_t(row + r) * out + o, value);
            }
        });
    }
}

// C[m][v] (+)= sum_k a[m * a_row + k * a_step] * b[k][v]; `rows` x `columns` results, `columns` a multiple of 16.
template <bool ADD>
FL_INLINE void outers(int rows, int columns, int steps, const float *a, int a_row, int a_step, const float *b,
                      int b_step, float *c, int c_row) {
    in_blocks<OUTER_VECTORS>(columns / LANES, [&](int vector, auto vectors) {
        in_blocks<OUTER_ROWS>(rows, [&](int row, auto block) {
            constexpr int VECTORS = decltype(vectors)::value, ROWS = decltype(block)::value;
            V sum[ROWS][VECTORS];
            FL_UNROLL
            for (int r = 0; r < ROWS; r++)
                FL_UNROLL
                for (int v = 0; v < VECTORS; v++) sum[r][v] = V{};
            const float *ak = a + int64_t(row) * a_row, *bk = b + vector * LANES;
            for (int k = 0; k < steps; k++, ak += a_step, bk += b_step) {
                V bv[VECTORS];
                FL_UNROLL
                for (int v = 0; v < VECTORS; v++) bv[v] = load(bk + v * LANES);
                FL_UNROLL
                for (int r = 0; r < ROWS; r++) {
                    const V scalar = broadcast(ak[int64_t(r) * a_row]);
                    FL_UNROLL
                    for (int v = 0; v < VECTORS; v++) sum[r][v] += scalar * bv[v];
                }
            }
            float *cr = c + int64_t(row) * c_row + vector * LANES;
            FL_UNROLL
            for (int r = 0; r < ROWS; r++)
                FL_UNROLL
                for (int v = 0; v < VECTORS; v++) {
                    float *at = cr + int64_t(r) * c_row + v * LANES;
                    store(at, ADD ? load(at) + sum[r][v] : sum[r][v]);
                }
        });
    });
}

// Adds the layer's gradient to `gradient` (overwrites if `fresh`), given the inputs x and the output gradient dy.
static void dense_gradient(const Dense &layer, const float *x, const float *dy, int n, bool fresh, float *gradient) {
    const int in = layer.in_stride(), out = layer.out_stride();
    float *dw = gradient + layer.weight, *db = gradient + layer.bias;
    if (fresh)
        outers<false>(layer.out, in, n, dy, 1, out, x, in, dw, in);
    else
        outers<true>(layer.out, in, n, dy, 1, out, x, in, dw, in);
    for (int o = 0; o < out; o += LANES) {
        V sum = fresh ? V{} : load(db + o);
        for (int b = 0; b < n; b++) sum += load(dy + int64_t(b) * out + o);
        store(db + o, sum);
    }
}

// dx = dy W, cut to where the ReLU that made x let something through.
static void dense_backward(const Dense &layer, const float *parameters, const float *x, const float *dy, int n,
                           float *dx) {
    const int in = layer.in_stride(), out = layer.out_stride();
    outers<false>(n, in, layer.out, dy, out, 1, parameters + layer.weight, in, dx, in);
    for (int64_t i = 0; i < int64_t(n) * in; i += LANES) store(dx + i, load(x + i) <= V{} ? V{} : load(dx + i));
}
