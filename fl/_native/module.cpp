// The Python module fl._fused: buffers in, buffers out, the GIL released while a kernel works. fl/training/fused.py is the
// interface to use; it checks types and shapes. Here lengths and numbers are checked again: a kernel trusts them.
#include "functions.h"
#include "kernel.h"

namespace {

const fl::Kernel *const kernels[] = {
#if defined(__x86_64__)
    &fl::kernel_avx512, &fl::kernel_avx2,
#endif
    &fl::kernel_portable,
};
constexpr int KERNELS = sizeof kernels / sizeof *kernels;
constexpr int MAX_LAYERS = 16;
constexpr int32_t MAX_WIDTH = 1 << 16;
constexpr int32_t MAX_INPUTS = 1 << 24;

// What all three functions take first: which kernel, the architecture, parameters, images, their scaling.
struct Call {
    int kernel, convolutional, channels, inputs;
    Buffer widths, parameters, pixels, labels;
    float scale, offset;

    fl::Architecture architecture() const {
        return {convolutional != 0, channels, inputs, int(widths.count<int32_t>()), widths.as<const int32_t>()};
    }
    fl::Images images() const {
        return {pixels.as<const uint8_t>(), of_floats() ? pixels.as<const float>() : nullptr,
                labels.as<const uint8_t>(), scale, offset};
    }
    Py_ssize_t image_count() const { return labels.count<uint8_t>(); }
    bool of_floats() const { return !convolutional && pixels.view.len == image_count() * inputs * 4; }

    int64_t parameter_count() const {
        int64_t total = convolutional ? 6 * (25 * channels + 1) + 16 * 151 : 0;
        int64_t in = !convolutional ? inputs : channels == 1 ? 256 : 400;
        for (Py_ssize_t l = 0; l < widths.count<int32_t>(); l++) {
            const int64_t out = widths.as<const int32_t>()[l];
            total += (in + 1) * out;
            in = out;
        }
        return total;
    }

    // Sets a ValueError and returns false where a kernel would read or write what is not there.
    bool check(const Buffer *result) const {
        const Py_ssize_t layers = widths.count<int32_t>();
        const char *problem = nullptr;
        if (kernel < 0 || kernel >= KERNELS || !kernels[kernel]->supported())
            problem = "this CPU cannot run that kernel";
        if (convolutional ? !(channels == 1 && inputs == 28 * 28) && !(channels == 3 && inputs == 3 * 32 * 32)
                          : inputs < 1 || inputs > MAX_INPUTS)
            problem = "no kernel for images of that shape";
        if (layers < 1 || layers > MAX_LAYERS) problem = "a network has 1 to 16 fully connected layers";
        for (Py_ssize_t l = 0; l < layers && !problem; l++)
            if (widths.as<const int32_t>()[l] < 1 || widths.as<const int32_t>()[l] > MAX_WIDTH)
                problem = "layer widths must be 1 to 65536";
        if (!problem && widths.as<const int32_t>()[layers - 1] > 256) problem = "at most 256 labels";
        if (!problem && parameters.count<float>() != parameter_count()) problem = "wrong number of parameters";
        if (!problem && result && result->count<float>() != parameter_count()) problem = "wrong size of the result";
        if (!problem && pixels.view.len != image_count() * inputs && !of_floats()) problem = "pixels and labels differ in number";
        if (!problem && image_count() == 0) problem = "no images";
        if (problem) PyErr_SetString(PyExc_ValueError, problem);
        return !problem;
    }
    bool check_label(Py_ssize_t image) const {
        const int labels_known = widths.as<const int32_t>()[widths.count<int32_t>() - 1];
        const int label = labels.as<const uint8_t>()[image];
        if (label < labels_known) return true;
        PyErr_Format(PyExc_ValueError, "label %d of image %zd is not below %d", label, image, labels_known);
        return false;
    }
};

PyObject *train(PyObject *, PyObject *args) {
    Call c;
    Buffer order, result;
    Py_ssize_t epochs, batch;
    float rate, momentum;
    if (!PyArg_ParseTuple(args, "iiiiy*y*y*y*ffy*nnffw*", &c.kernel, &c.convolutional, &c.channels, &c.inputs, &c.widths.view, &c.parameters.view,
                          &c.pixels.view, &c.labels.view, &c.scale, &c.offset, &order.view, &epochs, &batch, &rate,
                          &momentum, &result.view))
        return nullptr;
    if (!c.check(&result)) return nullptr;
    const Py_ssize_t visits = order.count<int32_t>();
    if (epochs < 1 || visits < 1 || visits % epochs || batch < 1) {
        PyErr_SetString(PyExc_ValueError, "order needs at least one epoch and one image, a batch at least one image");
        return nullptr;
    }
    for (Py_ssize_t i = 0; i < visits; i++) {
        const int32_t image = order.as<const int32_t>()[i];
        if (image < 0 || image >= c.image_count()) {
            PyErr_Format(PyExc_ValueError, "order names image %d, but there are %zd", int(image), c.image_count());
            return nullptr;
        }
        if (!c.check_label(image)) return nullptr;
    }
    const fl::Schedule schedule = {order.as<const int32_t>(), epochs, visits / epochs, batch, rate, momentum};
    double loss = 0;
    bool done;
    Py_BEGIN_ALLOW_THREADS
    const DefaultArithmetic arithmetic;
    done = kernels[c.kernel]->train(c.architecture(), c.images(), schedule, c.parameters.as<const float>(),
                                    result.as<float>(), &loss);
    Py_END_ALLOW_THREADS
    return done ? PyFloat_FromDouble(loss / double(visits)) : PyErr_NoMemory();
}

PyObject *gradient(PyObject *, PyObject *args) {
    Call c;
    Buffer result;
    if (!PyArg_ParseTuple(args, "iiiiy*y*y*y*ffw*", &c.kernel, &c.convolutional, &c.channels, &c.inputs, &c.widths.view, &c.parameters.view,
                          &c.pixels.view, &c.labels.view, &c.scale, &c.offset, &result.view))
        return nullptr;
    if (!c.check(&result)) return nullptr;
    for (Py_ssize_t i = 0; i < c.image_count(); i++)
        if (!c.check_label(i)) return nullptr;
    double loss = 0;
    bool done;
    Py_BEGIN_ALLOW_THREADS
    const DefaultArithmetic arithmetic;
    done = kernels[c.kernel]->gradient(c.architecture(), c.images(), c.image_count(), c.parameters.as<const float>(),
                                       result.as<float>(), &loss);
    Py_END_ALLOW_THREADS
    return done ? PyFloat_FromDouble(loss / double(c.image_count())) : PyErr_NoMemory();
}

PyObject *correct(PyObject *, PyObject *args) {
    Call c;
    if (!PyArg_ParseTuple(args, "iiiiy*y*y*y*ff", &c.kernel, &c.convolutional, &c.channels, &c.inputs, &c.widths.view, &c.parameters.view,
                          &c.pixels.view, &c.labels.view, &c.scale, &c.offset))
        return nullptr;
    if (!c.check(nullptr)) return nullptr;
    for (Py_ssize_t i = 0; i < c.image_count(); i++)
        if (!c.check_label(i)) return nullptr;
    int64_t hits = 0;
    bool done;
    Py_BEGIN_ALLOW_THREADS
    const DefaultArithmetic arithmetic;
    done = kernels[c.kernel]->correct(c.architecture(), c.images(), c.image_count(), c.parameters.as<const float>(),
                                      &hits);
    Py_END_ALLOW_THREADS
    return done ? PyLong_FromLongLong(hits) : PyErr_NoMemory();
}

// An elementary operation of a kernel, by itself: (kernel, name, operands..., result), all arrays of one length.
PyObject *elementary(PyObject *, PyObject *args) {
    int kernel;
    const char *name;
    Buffer a, b, c, result;
    if (!PyArg_ParseTuple(args, "isy*y*y*w*", &kernel, &name, &a.view, &b.view, &c.view, &result.view)) return nullptr;
    if (kernel < 0 || kernel >= KERNELS || !kernels[kernel]->supported() || b.view.len != a.view.len ||
        c.view.len != a.view.len || result.view.len != a.view.len) {
        PyErr_SetString(PyExc_ValueError, "operands and result must be of one length, and the kernel one that runs here");
        return nullptr;
    }
    const fl::Kernel &k = *kernels[kernel];
    const DefaultArithmetic arithmetic;
    switch (name[0]) {
        case 'f':
            k.fused_multiply_add(a.as<const float>(), b.as<const float>(), c.as<const float>(), a.count<float>(),
                                 result.as<float>());
            break;
        case 'e':
            k.exponentials(a.as<const float>(), a.count<float>(), result.as<float>());
            break;
        default:
            k.logarithms(a.as<const double>(), a.count<double>(), result.as<double>());
    }
    Py_RETURN_NONE;
}

// {kernel name: number to call it by}, the fastest first: those this CPU can run.
PyObject *runnable(PyObject *, PyObject *) {
    PyObject *names = PyDict_New();
    for (int k = 0; names && k < KERNELS; k++) {
        if (!kernels[k]->supported()) continue;
        PyObject *number = PyLong_FromLong(k);
        if (!number || PyDict_SetItemString(names, kernels[k]->name, number) < 0) Py_CLEAR(names);
        Py_XDECREF(number);
    }
    return names;
}

PyMethodDef methods[] = {
    {"kernels", runnable, METH_NOARGS, nullptr},
    {"train", train, METH_VARARGS, nullptr},
    {"gradient", gradient, METH_VARARGS, nullptr},
    {"correct", correct, METH_VARARGS, nullptr},
    {"elementary", elementary, METH_VARARGS, nullptr},
    {"blocks", fl::blocks, METH_VARARGS, nullptr},
    {"uniforms", fl::uniforms, METH_VARARGS, nullptr},
    {"integers", fl::integers, METH_VARARGS, nullptr},
    {"vectors", fl::vectors, METH_O, nullptr},
    {"subsets", fl::subsets, METH_VARARGS, nullptr},
    {"permutation", fl::permutation, METH_VARARGS, nullptr},
    {"choose", fl::choose, METH_VARARGS, nullptr},
    {"highest", fl::highest, METH_VARARGS, nullptr},
    {"exp", fl::exponential, METH_O, nullptr},
    {"log", fl::natural_logarithm, METH_O, nullptr},
    {"exponentials", fl::exponentials, METH_VARARGS, nullptr},
    {"logarithms", fl::natural_logarithms, METH_VARARGS, nullptr},
    {"quantiles", fl::normal_quantiles, METH_VARARGS, nullptr},
    {"rounded", fl::round_by_scaling, METH_VARARGS, nullptr},
    {"follow", fl::follow, METH_VARARGS, nullptr},
    {"decode", fl::decode, METH_VARARGS, nullptr},
    {"observe", fl::observe, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef_Slot slots[] = {{0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_fused", "The compiled part; use fl.training.fused and fl.arithmetic.", 0, methods, slots,
                          nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__fused() { return PyModuleDef_Init(&definition); }
