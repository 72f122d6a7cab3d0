// What a kernel variant (one instruction set) offers to the Python module.
//
// Every variant is the same source (variant.inl) compiled in a translation unit of its own with other instructions
// switched on, and computes the same floats; the module picks one at run time. This header is all that they share.
#pragma once

#include <cstdint>

namespace fl {

// A network of the family the fused path knows: the paper's two convolutions or nothing, then fully connected layers.
// The convolutions take images of 1 x 28 x 28 and 3 x 32 x 32.
struct Architecture {
    bool convolutional;     // Conv(channels,6,5) ReLU MaxPool2 Conv(6,16,5) ReLU MaxPool2 before the other layers
    int channels, inputs;   // of an image: channels, and channels * height * width
    int layers;             // fully connected layers
    const int32_t *widths;  // their output widths; the last is the number of labels
};

struct Images {
    const uint8_t *pixels;   // [n][channels][height][width]
    const float *features;   // [n][inputs] in their place, for networks without convolutions; null: there are pixels
    const uint8_t *labels;   // [n], each below the number of labels: checked by the caller
    float scale, offset;     // the network's input is pixel * scale + offset
};

struct Schedule {
    const int32_t *order;  // [epochs][samples] image numbers, checked by the caller
    int64_t epochs, samples, batch;
    float learning_rate, momentum;
};

struct Kernel {
    const char *name;
    bool (*supported)();  // may this CPU run it?
    // SGD from `parameters` into `result` (both in torch's order); the summed loss goes to *loss. False: out of memory.
    bool (*train)(const Architecture &, const Images &, const Schedule &, const float *parameters, float *result,
                  double *loss);
    // Gradient of the mean loss over images 0..n-1, and the summed loss. False: out of memory.
    bool (*gradient)(const Architecture &, const Images &, int64_t n, const float *parameters, float *result,
                     double *loss);
    // How many of images 0..n-1 get their highest logit at their label. False: out of memory.
    bool (*correct)(const Architecture &, const Images &, int64_t n, const float *parameters, int64_t *hits);
    // What the above are made of, on n numbers, for tests: a * b + c rounded once, and two functions.
    void (*fused_multiply_add)(const float *a, const float *b, const float *c, int64_t n, float *result);
    void (*exponentials)(const float *x, int64_t n, float *result);
    void (*logarithms)(const double *x, int64_t n, double *result);
};

extern const Kernel kernel_portable;
#if defined(__x86_64__)
extern const Kernel kernel_avx2;
extern const Kernel kernel_avx512;
#endif

}  // namespace fl
