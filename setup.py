"""Only the compiled part: everything else about the package stands in pyproject.toml."""

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NATIVE = Path("fl/_native")


class BuildKernel(build_ext):
    """Builds the kernel where the compiler can: it is written in the vector extensions of GCC and Clang."""

    def build_extensions(self) -> None:
        """Build, or say why not."""
        if self.compiler.compiler_type == "msvc":
            self.warn("Microsoft's compiler cannot build flmarket's kernel; models are trained by plain PyTorch")
            self.extensions = []
        super().build_extensions()


setup(
    cmdclass={"build_ext": BuildKernel},
    ext_modules=[
        Extension(
            "fl._fused",
            sources=sorted(str(path) for path in NATIVE.glob("*.cpp")),
            depends=sorted(str(path) for pattern in ("*.h", "*.inl") for path in NATIVE.glob(pattern)),
            language="c++",
            # No liberties: the same floats from every compiler. The source says where a fused multiply-add is meant.
            extra_compile_args=[
                "-std=c++17",
                "-O3",
                "-ffp-contract=off",
                "-fno-predictive-commoning",  # else gcc carries loads from iteration to iteration, and spills them
                "-fno-math-errno",
                "-Wno-uninitialized",  # gcc 12 warns of its own header for AVX-512, a thousand lines of it
                "-Wno-maybe-uninitialized",
                "-Wno-psabi",  # vectors are passed between functions of one unit alone
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
