// What a kernel variant (one instruction set) offers to the Python module.
//
// Every variant is the same source (network.inl and below) compiled in a translation unit of its own with other
// instructions switched on; the module picks one at run time. This header is all that those units share.
#pragma once

#include <cstdint>

namespace fl {

// A network of the family the fused path knows: the paper's two convolutions or nothing, then fully connected layers.
struct Architecture {
    bool convolutional;     // Conv(1,6,5) ReLU MaxPool2 Conv(6,16,5) ReLU MaxPool2 before the fully connected layers
    int layers;             // fully connected layers
    const int32_t *widths;  // their output widths; the last is the number of labels
};

struct Images {
    const uint8_t *pixels;   // [n][28][28]
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
};

extern const Kernel kernel_portable;
#if defined(__x86_64__)
extern const Kernel kernel_avx2;
extern const Kernel kernel_avx512;
#endif

}  // namespace fl
