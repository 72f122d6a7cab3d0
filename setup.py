"""Only the compiled part: everything else about the package stands in pyproject.toml."""

from setuptools import Extension, setup

SOURCES = ["module.cpp", "kernel_portable.cpp", "kernel_avx2.cpp", "kernel_avx512.cpp"]
SHARED = ["kernel.h"] + [
    f"{name}.inl"
    for name in ("variant", "simd", "elementary", "dense", "geometry", "conv_forward", "conv_backward", "network")
]

setup(
    ext_modules=[
        Extension(
            "fl._fused",
            sources=[f"fl/_native/{name}" for name in SOURCES],
            depends=[f"fl/_native/{name}" for name in SHARED],
            language="c++",
            # No liberties with floats: every kernel gives the same bytes, whatever compiled it.
            extra_compile_args=[
                "-std=c++17",
                "-O3",
                "-ffp-contract=off",
                "-fno-predictive-commoning",  # else gcc carries loads from iteration to iteration, and spills them
                "-fno-math-errno",
                "-fno-exceptions",
                "-fvisibility=hidden",
                "-g0",
            ],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            py_limited_api=True,
            optional=True,  # without a compiler the package installs all the same, and trains on its torch path
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
