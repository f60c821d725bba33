"""Exclusions of CuPy's tests, each rule with its reason. Difficulty is never a reason: a rule names
a part of CuPy's implementation or of a GPU's address space, or a feature outside the service's contract."""

import re
import sys
import types

from stride import _errors

FOLDERS = ("tests/cupy_tests", "tests/cupyx_tests")
PYTEST = ()
ROOTS = ("cupy", "cupyx", "cupy_backends")

_CORE = "CuPy's implementation (cupy._core and other private modules)"
_DRIVER = "bindings of the driver, the runtime and the toolkit's libraries (cupy.cuda.*, cupy_backends)"
_MEMORY = "memory's addresses in the client (data.ptr, MemoryPointer, allocators and their hooks)"
_SPARSE = "sparse matrices"
_SCIPY = "SciPy's own namespaces (ndimage, signal, interpolate, stats and others)"
_SELF = "CuPy's own test helpers, which are taken from the suite"
_TYPES = "structured, string, object and date types"
_COMPILER = "CuPy's compiler (jitify, its cache, its headers)"
_NCCL = "NCCL and several GPUs in one process"

# The first glob that a file matches decides: its reason excludes the file whole, "" counts it.
FILES = (
    ("tests/cupy_tests/_gcp*", _SELF),
    ("tests/cupy_tests/testing_tests/*", _SELF),
    ("tests/cupy_tests/test_cublas.py", _DRIVER),
    ("tests/cupy_tests/test_typing.py", "annotations of CuPy's stubs"),
    ("tests/cupy_tests/core_tests/test_internal.py", _CORE),
    ("tests/cupy_tests/core_tests/test_scan.py", _CORE),
    ("tests/cupy_tests/core_tests/test_cub_reduction.py", _CORE),
    ("tests/cupy_tests/core_tests/test_include.py", _COMPILER),
    ("tests/cupy_tests/core_tests/test_mdspan.py", _COMPILER),
    ("tests/cupy_tests/core_tests/test_carray.py", _COMPILER),
    ("tests/cupy_tests/core_tests/test_structured.py", _TYPES),
    ("tests/cupy_tests/core_tests/test_dlpack.py", "DLPack of device memory"),
    ("tests/cupy_tests/core_tests/test_ndarray_cuda_array_interface.py", _MEMORY),
    ("tests/cupy_tests/core_tests/fusion_tests/test_kernel_cache.py", _CORE),
    ("tests/cupy_tests/core_tests/fusion_tests/test_optimization.py", _CORE),
    ("tests/cupy_tests/cuda_tests/memory_hooks_tests/*", _MEMORY),
    ("tests/cupy_tests/cuda_tests/test_cublas.py", _DRIVER),
    ("tests/cupy_tests/cuda_tests/test_cufft.py", _DRIVER),
    ("tests/cupy_tests/cuda_tests/test_curand.py", _DRIVER),
    ("tests/cupy_tests/cuda_tests/test_cusolver.py", _DRIVER),
    ("tests/cupy_tests/cuda_tests/test_cusparse.py", _DRIVER),
    ("tests/cupy_tests/cuda_tests/test_cutensor.py", _DRIVER),
    ("tests/cupy_tests/cuda_tests/test_driver.py", _DRIVER),
    ("tests/cupy_tests/cuda_tests/test_nvrtc.py", _DRIVER),
    ("tests/cupy_tests/cuda_tests/test_graph.py", _DRIVER),
    ("tests/cupy_tests/cuda_tests/test_compiler*.py", _COMPILER),
    ("tests/cupy_tests/cuda_tests/test_memory*.py", _MEMORY),
    ("tests/cupy_tests/cuda_tests/test_pinned_memory.py", _MEMORY),
    ("tests/cupy_tests/cuda_tests/test_nccl.py", _NCCL),
    ("tests/cupy_tests/fft_tests/test_callback.py", "callbacks of cuFFT"),
    ("tests/cupy_tests/fft_tests/test_cache.py", "the cache of cuFFT's plans"),
    ("tests/cupyx_tests/distributed_tests/*", _NCCL),
    ("tests/cupyx_tests/linalg_tests/sparse_tests/*", _SPARSE),
    ("tests/cupyx_tests/scipy_tests/sparse_tests/*", _SPARSE),
    ("tests/cupyx_tests/scipy_tests/special_tests/*", ""),
    ("tests/cupyx_tests/scipy_tests/fft_tests/test_fftlog.py", _SCIPY),
    ("tests/cupyx_tests/scipy_tests/fft_tests/test_realtransforms.py", _SCIPY),
    ("tests/cupyx_tests/scipy_tests/fft_tests/*", ""),
    ("tests/cupyx_tests/scipy_tests/test_get_array_module.py", ""),
    ("tests/cupyx_tests/scipy_tests/*", _SCIPY),
    ("tests/cupyx_tests/signal_tests/*", _SCIPY),
    ("tests/cupyx_tests/test_pinned_array.py", "page-locked memory of the client"),
    ("tests/cupyx_tests/test_cusolver.py", _DRIVER),
    ("tests/cupyx_tests/test_cusparse.py", _DRIVER),
    ("tests/cupyx_tests/test_cutensor.py", _DRIVER),
    ("tests/cupyx_tests/test_lapack.py", _DRIVER),
    ("tests/cupyx_tests/test_optimize.py", "the tuning of CuPy's launches"),
    ("tests/cupyx_tests/tools_tests/*", "the installer of CuPy's libraries"),
    ("tests/cupyx_tests/jit_tests/test_thrust.py", "Thrust in kernels of Python"),
)

# Modules that load as placeholders: tests that call into them are excluded.
_MODULES = (
    (r"cupy\._(?!_|version)\w+.*", _CORE),
    (r"cupy\.(random|fft|linalg|lib|cuda)\._(?!_).*", _CORE),
    (r"cupy\.cuda\.(driver|nvrtc|cublas|cufft|curand|cusolver|cusparse|cutensor|cusparselt|cub|jitify|thrust)(\..*)?",
     _DRIVER),
    (r"cupy\.cuda\.(nccl|graph)(\..*)?", _DRIVER),
    (r"cupy\.cuda\.compiler(\..*)?", _COMPILER),
    (r"cupy\.cuda\.(memory_hooks?|pinned_memory)(\..*)?", _MEMORY),
    (r"cupy\.(cublas|cusolver|cutensor)(\..*)?", _DRIVER),
    (r"cupy_backends(\..*)?", _DRIVER),
    (r"cupyx\.scipy\.sparse(\..*)?", _SPARSE),
    (r"cupyx\.(cusolver|cusparse|cutensor|lapack)(\..*)?", _DRIVER),
    (r"cupyx\.distributed(\..*)?", _NCCL),
)  # fmt: skip

# Patterns in the text of a test, each with the reason that excludes the test.
_TEXT = (
    (r"\bcupy\._(?!version)\w+|\b_core\.|\b_accelerator\b|\bfusion_utils\.FusionTestBase\b", _CORE),
    (r"\.data\.ptr\b|\.data\.mem\b|\.data\.device|MemoryPointer|UnownedMemory|\.memory\.alloc\b|memptr", _MEMORY),
    (r"\._(index_32_bits|c_contiguous|f_contiguous)\b", "private attributes of CuPy's arrays"),
    (r"\b(runtime|driver|nvrtc|cublas|cusolver|cufft)\."
     r"(?!is_hip|getDeviceCount|CUDARuntimeError|check_availability)\w+\(", _DRIVER),
    (r"scipy\.sparse|\bsparse\.|sp_name|scipy_sparse", _SPARSE),
    (r"jitify=True", _COMPILER),
    (r"get_fft_plan|cufft\.", _DRIVER),
    (r"multi_gpu\b", _NCCL),
    (r"\bpoly1d\b", "polynomials as objects"),
)

_IDS = (
    (r"jitify=True|(?<!no-)jitify\)", _COMPILER),
    (r"CountingCache|cache_payload", _COMPILER),
    (r"TestCUDAStreamProtocol|TestExternalStream", _DRIVER),
    (r"CudaArrayInterface|CuPyGetNDArray|CuPyLike|cupy_like|cuda_array_interface", _MEMORY),
    (r"structured|void_dtype", _TYPES),
    (r"MultiGpu", _NCCL),
)  # fmt: skip


def _prod(values):
    product = 1
    for one in values:
        product *= one
    return product


def _size(size):
    return () if size is None else (size,) if isinstance(size, int) else tuple(size)


class _Cache:
    """Replaces CuPy's cache of kernels; tests of kernels create one in a separate folder."""

    def __init__(self, *_):
        pass


# The few internal names that the suite's own helpers call.
KNOWN = {
    "cupy._core.internal.prod": _prod,
    # Any toolkit: the daemon compiles.
    "cupy.cuda.get_nvcc_path": lambda: "nvcc",
    "cupy.cuda.compiler._run_cc": lambda *_: "release 12.8",
    "cupy.cuda.runtime._getLocalRuntimeVersion": lambda: 12080,
    "cupy.cuda.compiler.CompileException": _errors.CompileError,
    "cupy.cuda._compiler_cache.DiskKernelCacheBackend": _Cache,
    "cupy._util.clear_memo": lambda: None,
    # Queries of a library's version, by which tests of users' functions are skipped.
    "cupyx.cusolver.check_availability": lambda *_: True,
    "cupy.cublas.get_batched_gesv_limit": lambda: 0,
    "cupy.cublas.set_batched_gesv_limit": lambda *_: None,
    "cupy._core.get_size": _size,
    "cupy._core.internal.get_size": _size,
}

_modules = [(re.compile(pattern), reason) for pattern, reason in _MODULES]
_text = [(re.compile(pattern), reason) for pattern, reason in _TEXT]
_ids = [(re.compile(pattern), reason) for pattern, reason in _IDS]


def paths(suite):
    """Folders of modules that the tests import."""
    return [f"{suite}/tests"]


def internal_module(name):
    """The reason for which a module is a placeholder; None for all others."""
    return next((reason for pattern, reason in _modules if pattern.fullmatch(name)), None)


def from_suite(name):
    """Whether a module is the suite's own copy."""
    return name == "cupy.testing" or name.startswith("cupy.testing.")


def excluded(nodeid, source):
    """The reason that excludes a test, by its id and the text of its function; None where it counts."""
    for rules, text in ((_ids, nodeid), (_text, source)):
        for pattern, reason in rules:
            if pattern.search(text):
                return reason
    return None


def loaded(module):
    """Completes an alias."""
    if module.__name__ == "cupy":
        module.get_array_module = lambda *values: _array_module(module, values)
    if module.__name__ == "cupy.random":
        _random_states(module)


def _array_module(module, values):
    import numpy

    found = module._target.get_array_module(*values)
    return numpy if found is numpy else module


def _random_states(module):
    """`cupy.testing` resets CuPy's own table of states for each device."""
    generator = types.ModuleType("cupy.random._generator")
    generator._random_states = {}
    for name in ("RandomState", "get_random_state", "set_random_state"):
        setattr(generator, name, getattr(module._target, name))
    reset = module._target.reset_states

    def reset_states():
        generator._random_states = {}
        reset()

    generator.reset_states = reset_states
    module.__dict__.update(_generator=generator, _bit_generator=module._target, reset_states=reset_states)
    sys.modules["cupy.random._generator"] = generator


def prepare():
    """Before a file is collected. The suite compares the classes of errors: where NumPy raises TypeError, an error here
    may be of more classes (DataTypeMismatch is a TypeError and a ValueError), so that a handler for NumPy's class
    catches it."""
    from cupy.testing import _loops

    def compatible(ours, theirs):
        return all(isinstance(ours, one) for one in _loops._numpy_errors if isinstance(theirs, one))

    _loops._check_numpy_cupy_error_compatible = compatible
