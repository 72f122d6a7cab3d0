// One variant of the kernel: all of its code, for the instruction set that the including unit has switched on, behind
// the functions that kernel.h names. The unit defines LANES, REGISTERS and supported().
#include "simd.inl"
#include "elementary.inl"
#include "dense.inl"
#include "geometry.inl"
#include "conv_forward.inl"
#include "conv1_gradient.inl"
#include "conv_backward.inl"
#include "network.inl"

static bool train(const Architecture &a, const Images &images, const Schedule &s, const float *parameters,
                  float *result, double *loss) {
    if (!a.convolutional) return train_as<Flat>(a, images, s, parameters, result, loss);
    if (a.channels == 1) return train_as<Geometry<1, 28>>(a, images, s, parameters, result, loss);
    return train_as<Geometry<3, 32>>(a, images, s, parameters, result, loss);
}

static bool gradient(const Architecture &a, const Images &images, int64_t n, const float *parameters, float *result,
                     double *loss) {
    if (!a.convolutional) return gradient_as<Flat>(a, images, n, parameters, result, loss);
    if (a.channels == 1) return gradient_as<Geometry<1, 28>>(a, images, n, parameters, result, loss);
    return gradient_as<Geometry<3, 32>>(a, images, n, parameters, result, loss);
}

static bool correct(const Architecture &a, const Images &images, int64_t n, const float *parameters, int64_t *hits) {
    if (!a.convolutional) return correct_as<Flat>(a, images, n, parameters, hits);
    if (a.channels == 1) return correct_as<Geometry<1, 28>>(a, images, n, parameters, hits);
    return correct_as<Geometry<3, 32>>(a, images, n, parameters, hits);
}

// The elementary operations by themselves, on n numbers, so that tests can compare them with exact ones.
static void fused_multiply_add(const float *a, const float *b, const float *c, int64_t n, float *result) {
    for (int64_t i = 0; i < n; i++) {
        float lanes[LANES];
        store(lanes, fma(broadcast(a[i]), broadcast(b[i]), broadcast(c[i])));
        result[i] = lanes[0];
    }
}
static void exponentials(const float *x, int64_t n, float *result) {
    for (int64_t i = 0; i < n; i++) {
        float lanes[LANES];
        store(lanes, exponential(broadcast(x[i])));
        result[i] = lanes[0];
    }
}
static void logarithms(const double *x, int64_t n, double *result) {
    for (int64_t i = 0; i < n; i++) result[i] = logarithm(x[i]);
}
