// A whole network: where its parameters live, one batch forward and backward, SGD, evaluation.
//
// Parameters are worked on in a vector of their own layout (see geometry.inl and dense.inl); torch's flat vector is
// unpacked into it once per call and packed again at the end. Whatever pads the working vector never meets a result.

constexpr int GROUP = 32;  // images whose activations are kept at once; a bigger batch is walked in such groups
constexpr int MAX_LAYERS = 16;

template <class G>
struct Network {
    int inputs;  // of the first fully connected layer
    int layers;
    Dense dense[MAX_LAYERS];
    int64_t size;             // floats in the working vector
    int64_t transposed_size;  // floats of all transposed weights
    int labels() const { return dense[layers - 1].out; }

    explicit Network(const Architecture &a) : inputs(a.inputs), layers(a.layers), dense{} {
        if constexpr (G::CONVOLUTIONAL) inputs = G::FEATURES;
        size = G::PARAMETERS;
        transposed_size = 0;
        for (int l = 0, in = inputs; l < a.layers; in = a.widths[l++]) {
            Dense &d = dense[l];
            d.in = in;
            d.out = a.widths[l];
            d.hidden = l + 1 < a.layers;
            d.weight = size;
            d.bias = d.weight + d.weight_size();
            size = d.bias + d.out_stride();
            d.transposed = G::CONVOLUTIONAL || l > 0 ? transposed_size : -1;  // nobody wants the pixels' gradient
            if (d.transposed >= 0) transposed_size += d.weight_size();
        }
    }
};

// Calls f(position in torch's vector, position in the working vector) for every parameter.
template <class G, class F>
FL_INLINE void each_parameter(const Network<G> &net, F &&f) {
    int64_t at = 0;
    if constexpr (G::CONVOLUTIONAL) {
        for (int i = 0; i < MAPS1 * G::TAPS1; i++) f(at++, G::WEIGHT1 + i);
        for (int i = 0; i < MAPS1; i++) f(at++, G::BIAS1 + i);
        for (int map = 0; map < MAPS2; map++)
            for (int m = 0; m < MAPS1; m++)
                for (int y = 0; y < TAPS; y++)
                    for (int x = 0; x < TAPS; x++)
                        f(at++, G::WEIGHT2 + map * KERNEL2 + (1 + y) * TAP_ROW + x * MAPS1 + m);
        for (int i = 0; i < MAPS2; i++) f(at++, G::BIAS2 + i);
    }
    for (int l = 0; l < net.layers; l++) {
        const Dense &d = net.dense[l];
        const auto column = [&](int k) __attribute__((always_inline)) {  // in torch's matrix, of the kernels' input k
            if constexpr (G::CONVOLUTIONAL)
                if (l == 0) return k % MAPS2 * G::WINDOWS + k / MAPS2;  // they keep [window][map], torch [map][window]
            return k;
        };
        for (int panel = 0; panel < d.out; panel += VIRTUAL_LANES)
            for (int k = 0; k < d.in; k++)
                for (int lane = 0; lane < VIRTUAL_LANES && panel + lane < d.out; lane++)
                    f(at + int64_t(panel + lane) * d.in + column(k),
                      d.weight + (int64_t(panel) * d.in_stride() + k * VIRTUAL_LANES) + lane);
        at += int64_t(d.in) * d.out;
        for (int o = 0; o < d.out; o++) f(at++, d.bias + o);
    }
}

// Everything a call needs, in one zeroed, aligned block that is its own: calls share nothing, so they are reentrant.
template <class G>
struct Workspace {
    const Network<G> net;
    const bool training;
    float *parameters, *gradient, *velocity;
    float *transposed;                   // the weights once more, as the backward pass wants them
    float *activations[MAX_LAYERS + 1];  // [GROUP][in_stride] inputs of every layer, then the logits
    float *gradients[MAX_LAYERS + 1];    // of the same
    typename G::Features *features;      // [GROUP]; forward alone uses only the first
    typename G::Scratch *scratch;
    void *block;

    // block is null where there is not enough memory.
    Workspace(const Architecture &a, bool training_) : net(a), training(training_) {
        int64_t bytes = 0;
        const auto lay_out = [&](char *base) {
            bytes = 0;
            const auto take = [&](auto *&pointer, int64_t count) {
                pointer = base ? reinterpret_cast<decltype(&*pointer)>(base + bytes) : nullptr;
                bytes += (count * int64_t(sizeof *pointer) + 63) / 64 * 64;
            };
            take(parameters, net.size);
            take(gradient, training ? net.size : 0);
            take(velocity, training ? net.size : 0);
            take(transposed, training ? net.transposed_size : 0);
            for (int l = 0; l <= net.layers; l++) {
                const int width = l < net.layers ? net.dense[l].in_stride() : net.dense[l - 1].out_stride();
                take(activations[l], int64_t(GROUP) * width);
                take(gradients[l], training ? int64_t(GROUP) * width : 0);
            }
            take(features, !G::CONVOLUTIONAL ? 0 : training ? GROUP : 1);
            take(scratch, G::CONVOLUTIONAL);
        };
        lay_out(nullptr);
        block = calloc(size_t(bytes) + 64, 1);
        if (block) lay_out(static_cast<char *>(block) + (64 - reinterpret_cast<uintptr_t>(block) % 64) % 64);
    }
    ~Workspace() { free(block); }
    Workspace(const Workspace &) = delete;

    void unpack(const float *torch) {
        each_parameter(net, [&](int64_t i, int64_t j) { parameters[j] = torch[i]; });
        change([](int64_t, int64_t) {});
    }

    // Calls change(first, last) for stretches of the working vector until it has met all of it, and brings up to date
    // what is derived from the parameters.
    template <class F>
    __attribute__((always_inline)) void change(F &&change) {
        if constexpr (G::CONVOLUTIONAL) {
            change(0, G::PARAMETERS);
            transpose_weight2<G>(parameters, *scratch);
        }
        if (!training) return;  // nothing changes, and nothing but the above is wanted
        for (int l = 0; l < net.layers; l++) {
            const Dense &layer = net.dense[l];
            dense_change(layer, parameters, transposed, [&](int64_t tile) { change(tile, tile + TILE); });
            change(layer.bias, layer.bias + layer.out_stride());
        }
    }

    // Forward for n <= GROUP images; image(i) is the i-th one's number. The logits end in the last activations.
    template <bool TRAINING, class F>
    void forward(const Images &images, int n, F &&image) {
        for (int i = 0; i < n; i++) {
            if constexpr (G::CONVOLUTIONAL) {
                const uint8_t *pixels = images.pixels + int64_t(image(i)) * G::PIXELS;
                conv_forward<G, TRAINING>(parameters, pixels, images.scale, images.offset, features[TRAINING ? i : 0],
                                          *scratch, activations[0] + i * G::FEATURES);
            } else {
                float *x = activations[0] + int64_t(i) * net.dense[0].in_stride();
                const auto scaled = [&](const auto *from) __attribute__((always_inline)) {
                    for (int p = 0; p < net.inputs; p++) x[p] = float(from[p]) * images.scale + images.offset;
                };
                const int64_t first = int64_t(image(i)) * net.inputs;
                images.features ? scaled(images.features + first) : scaled(images.pixels + first);
            }
        }
        for (int l = 0; l < net.layers; l++)
            dense_forward(net.dense[l], parameters, activations[l], n, activations[l + 1]);
    }

    // Cross-entropy of n images: their summed loss; `share` times its gradient goes to the logits' gradients.
    template <class F>
    double cross_entropy(const Images &images, int n, float share, F &&image) {
        const int labels = net.labels(), stride = padded(labels);
        double total = 0;
        for (int i = 0; i < n; i++) {
            const float *z = activations[net.layers] + i * stride;
            float *d = gradients[net.layers] + i * stride, top = z[0], sum = 0;
            for (int k = 1; k < labels; k++) top = z[k] > top ? z[k] : top;
            for (int k = 0; k < stride; k += LANES) store(d + k, exponential(load(z + k) - top));
            for (int k = 0; k < labels; k++) sum += d[k];
            const int label = images.labels[image(i)];
            total += logarithm(double(sum)) + (double(top) - double(z[label]));
            const float scale = share / sum;
            for (int k = 0; k < stride; k += LANES) store(d + k, load(d + k) * scale);
            d[label] -= share;
            for (int k = labels; k < stride; k++) d[k] = 0;
        }
        return total;
    }

    // Adds the gradient of the group that forward() saw last (overwrites what was there if `fresh`). If `down` is not 0,
    // the group is the whole batch, and the fully connected layers' parameters change by their gradient times it at
    // once: the backward pass reads only their transposed copies.
    template <class F>
    void backward(const Images &images, int n, bool fresh, float down, F &&image) {
        for (int l = net.layers - 1; l >= 0; l--) {
            const Dense &layer = net.dense[l];
            const float *x = activations[l], *dy = gradients[l + 1];
            if (down != 0)
                dense_descent(layer, x, dy, n, down, parameters);
            else
                (fresh ? dense_first_gradient : dense_next_gradient)(layer, x, dy, n, gradient);
            if (layer.transposed >= 0) dense_backward(layer, transposed, x, dy, n, gradients[l]);
        }
        if constexpr (G::CONVOLUTIONAL) {
            if (fresh) begin_conv_gradient<G>(*scratch, gradient);
            for (int i = 0; i < n; i++) {
                const uint8_t *pixels = images.pixels + int64_t(image(i)) * G::PIXELS;
                conv_backward<G>(parameters, pixels, images.scale, images.offset, features[i],
                                 gradients[0] + i * G::FEATURES, *scratch, gradient);
            }
        }
    }

    // The mean gradient over a batch; returns its summed loss. `down` as for backward().
    template <class F>
    double batch_gradient(const Images &images, int64_t n, float down, F &&image) {
        double total = 0;
        for (int64_t first = 0; first < n; first += GROUP) {
            const int group = int(n - first < GROUP ? n - first : GROUP);
            const auto member = [&](int i) { return image(first + i); };
            forward<true>(images, group, member);
            total += cross_entropy(images, group, 1.0f / float(n), member);
            backward(images, group, first == 0, down, member);
        }
        if constexpr (G::CONVOLUTIONAL) finish_conv_gradient<G>(*scratch, gradient);
        return total;
    }

    // A step of torch's SGD: v = momentum * v + g, p = p - rate * v, each rounded once. Plain SGD never touches the
    // velocity. Returns the batch's summed loss.
    template <class F>
    double step(const Images &images, int64_t n, float rate, float momentum, F &&image) {
        const bool at_once = momentum == 0 && n <= GROUP && rate != 0;
        const double loss = batch_gradient(images, n, at_once ? -rate : 0, image);
        const V down = broadcast(-rate), keep = broadcast(momentum);
        if (momentum != 0)
            change([&](int64_t first, int64_t last) {
                for (int64_t i = first; i < last; i += LANES) {
                    const V v = fma(keep, load(velocity + i), load(gradient + i));
                    store(velocity + i, v);
                    store(parameters + i, fma(down, v, load(parameters + i)));
                }
            });
        else
            change([&](int64_t first, int64_t last) {
                if (at_once && first >= G::PARAMETERS) return;
                for (int64_t i = first; i < last; i += LANES)
                    store(parameters + i, fma(down, load(gradient + i), load(parameters + i)));
            });
        return loss;
    }
};

// Which NaN an operation gives differs from one instruction set to another: what is returned has only one.
template <class T>
FL_INLINE T one_nan(T x) {
    return x == x ? x : T(__builtin_nan(""));
}

// Copies to torch's order.
template <class G>
static void pack(const Network<G> &net, const float *working, float *torch) {
    each_parameter(net, [&](int64_t i, int64_t j) { torch[i] = one_nan(working[j]); });
}

template <class G>
static bool train_as(const Architecture &a, const Images &images, const Schedule &s, const float *parameters,
                     float *result, double *loss) {
    Workspace<G> w(a, true);
    if (!w.block) return false;
    w.unpack(parameters);
    *loss = 0;
    for (int64_t epoch = 0; epoch < s.epochs; epoch++)
        for (int64_t first = 0; first < s.samples; first += s.batch) {
            const int64_t n = s.samples - first < s.batch ? s.samples - first : s.batch;
            const int32_t *order = s.order + epoch * s.samples + first;
            *loss += w.step(images, n, s.learning_rate, s.momentum, [&](int64_t i) { return order[i]; });
        }
    *loss = one_nan(*loss);
    pack(w.net, w.parameters, result);
    return true;
}

template <class G>
static bool gradient_as(const Architecture &a, const Images &images, int64_t n, const float *parameters, float *result,
                        double *loss) {
    Workspace<G> w(a, true);
    if (!w.block) return false;
    w.unpack(parameters);
    *loss = one_nan(w.batch_gradient(images, n, 0, [](int64_t i) { return i; }));
    pack(w.net, w.gradient, result);
    return true;
}

template <class G>
static bool correct_as(const Architecture &a, const Images &images, int64_t n, const float *parameters, int64_t *hits) {
    Workspace<G> w(a, false);
    if (!w.block) return false;
    w.unpack(parameters);
    const int labels = w.net.labels(), stride = padded(labels);
    *hits = 0;
    for (int64_t first = 0; first < n; first += GROUP) {
        const int group = int(n - first < GROUP ? n - first : GROUP);
        w.template forward<false>(images, group, [&](int i) { return first + i; });
        for (int i = 0; i < group; i++) {
            const float *z = w.activations[w.net.layers] + i * stride;
            int best = 0;
            for (int k = 1; k < labels; k++) best = z[k] > z[best] ? k : best;
            *hits += best == images.labels[first + i];
        }
    }
    return true;
}
