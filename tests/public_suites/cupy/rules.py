"""Which of CuPy's tests are not counted, each rule with its reason. Nothing is here because it is hard: a rule names
what is a part of CuPy's implementation or of a GPU's address space, or what the service's contract does not have."""

import re

EXCLUDED = "excluded by a rule: "

_CORE = "CuPy's implementation (cupy._core and other private modules)"
_DRIVER = "bindings of the driver, the runtime and the toolkit's libraries (cupy.cuda.*, cupy_backends)"
_MEMORY = "memory's addresses in the client (data.ptr, MemoryPointer, allocators and their hooks)"
_SPARSE = "sparse matrices"
_SCIPY = "SciPy's own namespaces (ndimage, signal, interpolate, stats and others)"
_SELF = "CuPy's own test helpers, which are taken from the suite"
_TYPES = "structured, string, object and date types"
_COMPILER = "CuPy's compiler (jitify, its cache, its headers)"
_NCCL = "NCCL and several GPUs in one process"

# The first glob that a file below tests/ matches decides: its reason excludes the file whole, "" counts it.
FILES = (
    ("cupy_tests/_gcp*", _SELF),
    ("cupy_tests/testing_tests/*", _SELF),
    ("cupy_tests/test_cublas.py", _DRIVER),
    ("cupy_tests/test_typing.py", "annotations of CuPy's stubs"),
    ("cupy_tests/core_tests/test_internal.py", _CORE),
    ("cupy_tests/core_tests/test_scan.py", _CORE),
    ("cupy_tests/core_tests/test_cub_reduction.py", _CORE),
    ("cupy_tests/core_tests/test_include.py", _COMPILER),
    ("cupy_tests/core_tests/test_mdspan.py", _COMPILER),
    ("cupy_tests/core_tests/test_carray.py", _COMPILER),
    ("cupy_tests/core_tests/test_structured.py", _TYPES),
    ("cupy_tests/core_tests/test_dlpack.py", "DLPack of device memory"),
    ("cupy_tests/core_tests/test_ndarray_cuda_array_interface.py", _MEMORY),
    ("cupy_tests/core_tests/fusion_tests/test_kernel_cache.py", _CORE),
    ("cupy_tests/core_tests/fusion_tests/test_optimization.py", _CORE),
    ("cupy_tests/cuda_tests/memory_hooks_tests/*", _MEMORY),
    ("cupy_tests/cuda_tests/test_cublas.py", _DRIVER),
    ("cupy_tests/cuda_tests/test_cufft.py", _DRIVER),
    ("cupy_tests/cuda_tests/test_curand.py", _DRIVER),
    ("cupy_tests/cuda_tests/test_cusolver.py", _DRIVER),
    ("cupy_tests/cuda_tests/test_cusparse.py", _DRIVER),
    ("cupy_tests/cuda_tests/test_cutensor.py", _DRIVER),
    ("cupy_tests/cuda_tests/test_driver.py", _DRIVER),
    ("cupy_tests/cuda_tests/test_nvrtc.py", _DRIVER),
    ("cupy_tests/cuda_tests/test_texture.py", _DRIVER),
    ("cupy_tests/cuda_tests/test_graph.py", _DRIVER),
    ("cupy_tests/cuda_tests/test_compiler*.py", _COMPILER),
    ("cupy_tests/cuda_tests/test_memory*.py", _MEMORY),
    ("cupy_tests/cuda_tests/test_pinned_memory.py", _MEMORY),
    ("cupy_tests/cuda_tests/test_nccl.py", _NCCL),
    ("cupy_tests/fft_tests/test_callback.py", "callbacks of cuFFT"),
    ("cupy_tests/fft_tests/test_cache.py", "the cache of cuFFT's plans"),
    ("cupyx_tests/distributed_tests/*", _NCCL),
    ("cupyx_tests/linalg_tests/sparse_tests/*", _SPARSE),
    ("cupyx_tests/scipy_tests/sparse_tests/*", _SPARSE),
    ("cupyx_tests/scipy_tests/special_tests/*", ""),
    ("cupyx_tests/scipy_tests/fft_tests/test_fftlog.py", _SCIPY),
    ("cupyx_tests/scipy_tests/fft_tests/test_realtransforms.py", _SCIPY),
    ("cupyx_tests/scipy_tests/fft_tests/*", ""),
    ("cupyx_tests/scipy_tests/test_get_array_module.py", ""),
    ("cupyx_tests/scipy_tests/*", _SCIPY),
    ("cupyx_tests/signal_tests/*", _SCIPY),
    ("cupyx_tests/test_cusolver.py", _DRIVER),
    ("cupyx_tests/test_cusparse.py", _DRIVER),
    ("cupyx_tests/test_cutensor.py", _DRIVER),
    ("cupyx_tests/test_lapack.py", _DRIVER),
    ("cupyx_tests/test_optimize.py", "the tuning of CuPy's launches"),
    ("cupyx_tests/tools_tests/*", "the installer of CuPy's libraries"),
    ("cupyx_tests/jit_tests/test_thrust.py", "Thrust in kernels of Python"),
)

# Modules that load as placeholders: what calls into them is excluded.
_MODULES = (
    (r"cupy\._(?!_|version)\w+.*", _CORE),
    (r"cupy\.(random|fft|linalg|lib|cuda)\._(?!_).*", _CORE),
    (r"cupy\.cuda\.(driver|nvrtc|cublas|cufft|curand|cusolver|cusparse|cutensor|cusparselt|cub|jitify|thrust)(\..*)?",
     _DRIVER),
    (r"cupy\.cuda\.(texture|nccl|graph)(\..*)?", _DRIVER),
    (r"cupy\.cuda\.compiler(\..*)?", _COMPILER),
    (r"cupy\.cuda\.(memory_hooks?|pinned_memory)(\..*)?", _MEMORY),
    (r"cupy\.(cublas|cusolver|cutensor)(\..*)?", _DRIVER),
    (r"cupy_backends(\..*)?", _DRIVER),
    (r"cupyx\.scipy\.sparse(\..*)?", _SPARSE),
    (r"cupyx\.(cusolver|cusparse|cutensor|lapack)(\..*)?", _DRIVER),
    (r"cupyx\.distributed(\..*)?", _NCCL),
)  # fmt: skip

# What the text of a test may say, and the reason that excludes it then.
_TEXT = (
    (r"\bcupy\._(?!version)\w+|\b_core\.|\b_accelerator\b|\bfusion_utils\.FusionTestBase\b", _CORE),
    (r"\.data\.ptr\b|\.data\.mem\b|\.data\.device|MemoryPointer|UnownedMemory|\.memory\.alloc\b|memptr", _MEMORY),
    (r"\._(index_32_bits|c_contiguous|f_contiguous)\b", "private attributes of CuPy's arrays"),
    (r"\b(runtime|driver|nvrtc|cublas|cusolver|cufft)\.(?!is_hip|getDeviceCount|CUDARuntimeError)\w+\(", _DRIVER),
    (r"scipy\.sparse|\bsparse\.|sp_name|scipy_sparse", _SPARSE),
    (r"\bjitify\b", _COMPILER),
    (r"get_fft_plan|cufft\.", _DRIVER),
    (r"multi_gpu\b", _NCCL),
)

_IDS = (
    (r"jitify=True|jitify-", _COMPILER),
)  # fmt: skip


def _prod(values):
    product = 1
    for one in values:
        product *= one
    return product


# The few internal names that the suite's own helpers call.
KNOWN = {"cupy._core.internal.prod": _prod}

_modules = [(re.compile(pattern), reason) for pattern, reason in _MODULES]
_text = [(re.compile(pattern), reason) for pattern, reason in _TEXT]
_ids = [(re.compile(pattern), reason) for pattern, reason in _IDS]


def internal_module(name):
    """The reason for which a module is a placeholder; None for all others."""
    return next((reason for pattern, reason in _modules if pattern.fullmatch(name)), None)


def excluded(nodeid, source):
    """The reason that excludes a test, by its id and the text of its function; None where it counts."""
    for rules, text in ((_ids, nodeid), (_text, source)):
        for pattern, reason in rules:
            if pattern.search(text):
                return reason
    return None
