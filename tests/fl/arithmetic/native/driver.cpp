// Trains with the portable kernel of the machine it is compiled for, without Python: so that a kernel for another
// processor can be run under an emulator. Reads one case from standard input and writes what came out; the case is laid
// out in tests/fl/test_arithmetic.py. Exits with 1 if the input is short.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "kernel.h"

template <class T>
static std::vector<T> read(size_t n) {
    std::vector<T> values(n);
    if (fread(values.data(), sizeof(T), n, stdin) != n) exit(1);
    return values;
}

int main() {
    const auto h = read<int32_t>(10);
    const int convolutional = h[0], channels = h[1], inputs = h[2], layers = h[3], parameter_count = h[4], n = h[5],
              epochs = h[6], samples = h[7], batch = h[8], tested = h[9];
    const auto settings = read<float>(4);  // scale, offset, learning rate, momentum
    const auto widths = read<int32_t>(layers);
    const auto parameters = read<float>(parameter_count);
    const auto pixels = read<uint8_t>(size_t(n) * inputs), labels = read<uint8_t>(n);
    const auto order = read<int32_t>(size_t(epochs) * samples);

    const fl::Architecture architecture = {convolutional != 0, channels, inputs, layers, widths.data()};
    const fl::Images images = {pixels.data(), labels.data(), settings[0], settings[1]};
    const fl::Schedule schedule = {order.data(), epochs, samples, batch, settings[2], settings[3]};
    std::vector<float> trained(parameter_count);
    double loss = 0;
    int64_t hits = 0;
    if (!fl::kernel_portable.train(architecture, images, schedule, parameters.data(), trained.data(), &loss)) return 1;
    if (!fl::kernel_portable.correct(architecture, images, tested, trained.data(), &hits)) return 1;
    fwrite(trained.data(), sizeof(float), trained.size(), stdout);
    fwrite(&loss, sizeof loss, 1, stdout);
    fwrite(&hits, sizeof hits, 1, stdout);
}
