// A whole network: where its parameters live, one batch forward and backward, SGD, evaluation.
//
// Parameters are worked on in a vector of their own layout (padded rows, kernels as conv.inl wants them); torch's flat
// vector is unpacked into it once per call and packed again at the end. Whatever pads the working vector is zero, has
// a zero gradient, and so stays zero.

constexpr int GROUP = 32;  // images whose activations are kept at once; a bigger batch is walked in such groups
constexpr int MAX_LAYERS = 16;

struct Network {
    bool convolutional;
    int layers;
    Dense dense[MAX_LAYERS];
    int64_t size;  // floats in the working vector
    int labels() const { return dense[layers - 1].out; }
};

static Network plan(const Architecture &a) {
    Network net{};
    net.convolutional = a.convolutional;
    net.layers = a.layers;
    net.size = a.convolutional ? CONV_PARAMETERS : 0;
    int in = a.convolutional ? WINDOWS * MAPS2 : PIXELS;
    for (int l = 0; l < a.layers; l++) {
        Dense &d = net.dense[l];
        d.in = in;
        d.out = in = a.widths[l];
        d.hidden = l + 1 < a.layers;
        d.weight = net.size;
        d.bias = d.weight + int64_t(padded(d.out, 4)) * d.in_stride();
        net.size = d.bias + d.out_stride();
    }
    return net;
}

// Calls f(position in torch's vector, position in the working vector) for every parameter.
template <class F>
FL_INLINE void each_parameter(const Network &net, F &&f) {
    int64_t at = 0;
    if (net.convolutional) {
        for (int i = 0; i < MAPS1 * TAPS * TAPS; i++) f(at++, WEIGHT1 + i);
        for (int i = 0; i < MAPS1; i++) f(at++, BIAS1 + i);
        for (int map = 0; map < MAPS2; map++)
            for (int m = 0; m < MAPS1; m++)
                for (int y = 0; y < TAPS; y++)
                    for (int x = 0; x < TAPS; x++) f(at++, WEIGHT2 + map * KERNEL2 + (1 + y) * TAP_ROW + x * DEPTH + m);
        for (int i = 0; i < MAPS2; i++) f(at++, BIAS2 + i);
    }
    for (int l = 0; l < net.layers; l++) {
        const Dense &d = net.dense[l];
        for (int o = 0; o < d.out; o++) {
            const int64_t row = d.weight + int64_t(o) * d.in_stride();
            if (l == 0 && net.convolutional) {  // torch flattens [map][window], the kernels keep [window][map]
                for (int map = 0; map < MAPS2; map++)
                    for (int window = 0; window < WINDOWS; window++) f(at++, row + window * MAPS2 + map);
            } else {
                for (int i = 0; i < d.in; i++) f(at++, row + i);
            }
        }
        for (int o = 0; o < d.out; o++) f(at++, d.bias + o);
    }
}

// Everything a call needs, in one zeroed, aligned block that is its own: calls share nothing, so they are reentrant.
struct Workspace {
    Network net;
    float *parameters, *gradient, *velocity;
    float *activations[MAX_LAYERS + 1];  // [GROUP][in_stride] inputs of every layer, then the logits
    float *gradients[MAX_LAYERS + 1];    // of the same
    Features *features;                  // [GROUP]; forward alone uses only the first
    ConvScratch *scratch;
    void *block;

    bool allocate(const Architecture &a, bool training) {
        net = plan(a);
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
            for (int l = 0; l <= net.layers; l++) {
                const int width = l < net.layers ? net.dense[l].in_stride() : net.dense[l - 1].out_stride();
                take(activations[l], int64_t(GROUP) * width);
                take(gradients[l], training ? int64_t(GROUP) * width : 0);
            }
            take(features, !net.convolutional ? 0 : training ? GROUP : 1);
            take(scratch, net.convolutional ? 1 : 0);
        };
        lay_out(nullptr);
        block = calloc(size_t(bytes) + 64, 1);
        if (!block) return false;
        lay_out(static_cast<char *>(block) + (64 - reinterpret_cast<uintptr_t>(block) % 64) % 64);
        return true;
    }
    ~Workspace() { free(block); }

    void unpack(const float *torch) {
        each_parameter(net, [&](int64_t i, int64_t j) { parameters[j] = torch[i]; });
        parameters_changed();
    }
    void parameters_changed() {
        if (net.convolutional) transpose_weight2(parameters, *scratch);
    }

    // Forward for n <= GROUP images; image(i) is the i-th one's number. The logits end in the last activations.
    template <class F>
    void forward(const Images &images, int n, bool keep_features, F &&image) {
        for (int i = 0; i < n; i++) {
            const uint8_t *pixels = images.pixels + int64_t(image(i)) * PIXELS;
            if (net.convolutional) {
                conv_forward(parameters, pixels, images.scale, images.offset, features[keep_features ? i : 0], *scratch,
                             activations[0] + i * WINDOWS * MAPS2);
            } else {
                float *x = activations[0] + i * PIXELS;
                for (int p = 0; p < PIXELS; p++) x[p] = float(pixels[p]) * images.scale + images.offset;
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
            for (int k = 0; k < labels; k++) sum += d[k] = expf(z[k] - top);
            const int label = images.labels[image(i)];
            total += logf(sum) + (top - z[label]);
            const float scale = share / sum;
            for (int k = 0; k < labels; k++) d[k] *= scale;
            d[label] -= share;
        }
        return total;
    }

    // Adds the gradient of the group that forward() saw last (overwrites what was there if `fresh`).
    void backward(int n, bool fresh) {
        for (int l = net.layers - 1; l >= 0; l--) {
            const Dense &layer = net.dense[l];
            dense_gradient(layer, activations[l], gradients[l + 1], n, fresh, gradient);
            if (l > 0 || net.convolutional)
                dense_backward(layer, parameters, activations[l], gradients[l + 1], n, gradients[l]);
        }
        if (!net.convolutional) return;
        if (fresh) begin_conv_gradient(*scratch, gradient);
        for (int i = 0; i < n; i++)
            conv_backward(parameters, features[i], gradients[0] + i * WINDOWS * MAPS2, *scratch, gradient);
    }

    // The mean gradient over a batch; returns its summed loss.
    template <class F>
    double batch_gradient(const Images &images, int64_t n, F &&image) {
        double total = 0;
        for (int64_t first = 0; first < n; first += GROUP) {
            const int group = int(n - first < GROUP ? n - first : GROUP);
            const auto member = [&](int i) { return image(first + i); };
            forward(images, group, true, member);
            total += cross_entropy(images, group, 1.0f / float(n), member);
            backward(group, first == 0);
        }
        if (net.convolutional) finish_conv_gradient(*scratch, gradient);
        return total;
    }

    // torch's SGD: v = momentum * v + g, p -= rate * v. Plain SGD never touches the velocity.
    void step(float rate, float momentum) {
        if (momentum != 0)
            for (int64_t i = 0; i < net.size; i++) {
                velocity[i] = momentum * velocity[i] + gradient[i];
                parameters[i] -= rate * velocity[i];
            }
        else
            for (int64_t i = 0; i < net.size; i++) parameters[i] -= rate * gradient[i];
        parameters_changed();
    }
};

static bool train(const Architecture &a, const Images &images, const Schedule &s, const float *parameters,
                  float *result, double *loss) {
    Workspace w;
    if (!w.allocate(a, true)) return false;
    w.unpack(parameters);
    *loss = 0;
    for (int64_t epoch = 0; epoch < s.epochs; epoch++)
        for (int64_t first = 0; first < s.samples; first += s.batch) {
            const int64_t n = s.samples - first < s.batch ? s.samples - first : s.batch;
            const int32_t *order = s.order + epoch * s.samples + first;
            *loss += w.batch_gradient(images, n, [&](int64_t i) { return order[i]; });
            w.step(s.learning_rate, s.momentum);
        }
    each_parameter(w.net, [&](int64_t i, int64_t j) { result[i] = w.parameters[j]; });
    return true;
}

static bool gradient(const Architecture &a, const Images &images, int64_t n, const float *parameters, float *result,
                     double *loss) {
    Workspace w;
    if (!w.allocate(a, true)) return false;
    w.unpack(parameters);
    *loss = w.batch_gradient(images, n, [](int64_t i) { return i; });
    each_parameter(w.net, [&](int64_t i, int64_t j) { result[i] = w.gradient[j]; });
    return true;
}

static bool correct(const Architecture &a, const Images &images, int64_t n, const float *parameters, int64_t *hits) {
    Workspace w;
    if (!w.allocate(a, false)) return false;
    w.unpack(parameters);
    const int labels = w.net.labels(), stride = padded(labels);
    *hits = 0;
    for (int64_t first = 0; first < n; first += GROUP) {
        const int group = int(n - first < GROUP ? n - first : GROUP);
        w.forward(images, group, false, [&](int i) { return first + i; });
        for (int i = 0; i < group; i++) {
            const float *z = w.activations[w.net.layers] + i * stride;
            int best = 0;
            for (int k = 1; k < labels; k++) best = z[k] > z[best] ? k : best;
            *hits += best == images.labels[first + i];
        }
    }
    return true;
}
