"""Exclusions of tests of Numba's CUDA target, each rule with its reason, and the replacement of its imports.
Difficulty is never a reason: a rule names a part of Numba's compiler, of the driver's bindings or of a GPU's address
space, or a feature outside the service's contract."""

import importlib
import re
import types

FOLDERS = ("numba/cuda/tests/doc_examples", "numba/cuda/tests/cudapy", "numba/cuda/tests/cudadrv")
# Its tests are methods: functions of modules with this prefix are kernels.
PYTEST = ("-c", "/dev/null", "--rootdir=.", "--import-mode=importlib", "-o", "python_functions=no_function_is_a_test")
ROOTS = ("numba",)

_COMPILER = "Numba's compiler (IR, PTX, linking, caching, overloads, extensions)"
_DRIVER = "bindings of the driver and its contexts, and memory's addresses"
_TYPES = "records, dates and strings in arrays"
_CPU = "functions that Numba compiles for the host"
_PRINT = "print in a kernel, which is in the log of the worker"
_PROCESS = "a process of its own that imports Numba"

# The first glob that a file matches decides: its reason excludes the file whole, "" counts it.
FILES = tuple(
    (f"numba/cuda/tests/{one}.py", reason)
    for reason, files in {
        _COMPILER: """cudapy/test_caching cudapy/test_compiler cudapy/test_debug cudapy/test_debuginfo
            cudapy/test_inspect cudapy/test_lineinfo cudapy/test_extending cudapy/test_overload cudapy/test_serialize
            cudapy/test_optimization cudapy/test_fastmath cudapy/test_gufunc_scheduling cudapy/test_cffi
            cudapy/test_const_string cudapy/test_enums cudapy/test_warning cudapy/test_dispatcher cudapy/test_errors
            cudadrv/test_linker cudadrv/test_nvvm_driver cudadrv/test_inline_ptx cudadrv/test_mvc
            cudadrv/test_is_fp16 doc_examples/test_ffi""",
        _DRIVER: """cudapy/test_ipc cudapy/test_multigpu cudapy/test_multiprocessing cudapy/test_cuda_array_interface
            cudadrv/test_context_stack cudadrv/test_cuda_auto_context cudadrv/test_cuda_driver
            cudadrv/test_cuda_libraries cudadrv/test_cuda_memory cudadrv/test_deallocations cudadrv/test_detect
            cudadrv/test_emm_plugins cudadrv/test_init cudadrv/test_managed_alloc cudadrv/test_profiler
            cudadrv/test_ptds cudadrv/test_reset_device cudadrv/test_runtime cudadrv/test_host_alloc""",
        _TYPES: """cudapy/test_record_dtype cudapy/test_datetime cudadrv/test_cuda_devicerecord""",
        _PRINT: "cudapy/test_print",
    }.items()
    for one in files.split()
)

_MODULES = (
    (r"numba\.cuda\.(compiler|codegen|descriptor|cudaimpl|cudadecl|args|target|dispatcher|libdevicefuncs|deviceufunc|"
     r"simulator|cuda_paths|intrinsic_wrapper|nvvmutils|initialize)(\..*)?", _COMPILER),
    (r"numba\.cuda\.cudadrv(\..*)?", _DRIVER),
    (r"numba\.cuda\.kernels(\..*)?", "Numba's own kernels"),
    (r"numba\.core\.(?!types|errors|config)\w+(\..*)?", _COMPILER),
    (r"numba\.(extending|misc|pycc|typed|experimental|parfors|np|runtests|_dispatcher|dispatcher|testing)(\..*)?",
     _COMPILER),
    (r"numba\.tests\.(?!support)\w+(\..*)?", "tests of Numba's host compiler"),
    (r"numba\.cuda\.tests\.cudapy\.(cache|extensions|recursion)\w*", _COMPILER),
)  # fmt: skip

_TEXT = (
    (r"inspect_(llvm|asm|sass|types)|compile_ptx|\.ptx\b|get_(regs|const_mem|shared_mem|max_threads|local_mem)|"
     r"_type_annotation|_codelibrary|struct_model_type|"
     r"\.(definition|_func|nopython_signatures|extensions|specialized|specialize|stats)\b",
     _COMPILER),
    (r"run_in_(new|sub)process|subprocess", _PROCESS),
    (r"device_ctypes_pointer|device_pointer|gpu_data|_numba_type_|\.ctypes\b|__cuda_array_interface__|"
     r"_devptr|device_memset|is_f_contiguous\(\)|dummyarray", _DRIVER),
    (r"np\.(datetime64|timedelta64)|recarray|np\.rec\b|records?_?dtype|Record|'[SU]\d+'", _TYPES),
    (r"captured_cuda_stdout", _PRINT),
)  # fmt: skip
_IDS = (
    (r"TestRetrieveAutoconvertedArrays", _COMPILER),
    (r"async_done", "futures of asyncio for streams"),
)  # fmt: skip


_CONFIG = types.SimpleNamespace(
    ENABLE_CUDASIM=False, CUDA_LOW_OCCUPANCY_WARNINGS=0, CUDA_WARN_ON_IMPLICIT_COPY=0, CUDA_ENABLE_PYNVJITLINK=False,
    CUDA_MEMORY_MANAGER="default", CUDA_ENABLE_MINOR_VERSION_COMPATIBILITY=0, CUDA_INCLUDE_PATH="/nowhere",
    CUDA_USE_NVIDIA_BINDING=0, MACHINE_BITS=64, IS_32BITS=False, CUDA_DEBUGINFO_DEFAULT=0, OPT=3,
)  # fmt: skip


def _capability():
    """Skips that ask for a device's compute capability: kernels here are CUDA C++ of any."""
    device = types.SimpleNamespace(compute_capability=(9, 0))
    return types.SimpleNamespace(get_context=lambda: types.SimpleNamespace(device=device), reset=lambda: None)


def _from_dtype(dtype):
    from stride import numba

    return numba.from_dtype(dtype)


def _mark(*_, **__):
    """A decorator of Numba's extensions, which registers nothing here."""
    return lambda marked: marked


KNOWN = {
    # Functions that the suite's own helpers call while they are loaded.
    "numba.core.compiler.Flags": types.SimpleNamespace,
    "numba.core.extending.overload_method": _mark,
    "numba.core.extending.register_model": _mark,
    "numba.core.extending.typeof_impl": types.SimpleNamespace(register=_mark),
    "numba.core.extending.unbox": _mark,
    "numba.testing.make_tag_decorator": lambda *_: lambda *_: lambda marked: marked,
    "numba.testing": types.SimpleNamespace(make_tag_decorator=lambda *_: lambda *_: lambda marked: marked),
    "numba.config": _CONFIG,
    "numba.core.config": _CONFIG,
    "numba.cuda.cudadrv.devices": _capability(),
    "numba.cuda.cudadrv.libs.get_cudalib": lambda *_, **__: "",
    "numba.cuda.cudadrv.libs.check_static_lib": lambda *_: None,
    "numba.cuda.cudadrv.driver.USE_NV_BINDING": False,
    "numba.np.numpy_support.from_dtype": _from_dtype,
    "numba.np.numpy_support.numpy_version": (2, 4),
    "numba.core.utils.PYVERSION": (3, 11),
    "numba.core.utils.IS_NUMPY_2": True,
}

_modules = [(re.compile(pattern), reason) for pattern, reason in _MODULES]
_ids = [(re.compile(pattern), reason) for pattern, reason in _IDS]
_text = [(re.compile(pattern), reason) for pattern, reason in _TEXT]


def paths(suite):
    """Folders of modules that the tests import."""
    return []


def internal_module(name):
    """The reason for which a module is a placeholder; None for all others."""
    return next((reason for pattern, reason in _modules if pattern.fullmatch(name)), None)


def from_suite(name):
    """Whether a module is the suite's own copy."""
    if internal_module(name) is not None:
        return False
    return name in ("numba.cuda.testing", "numba.tests", "numba.tests.support") or name.startswith("numba.cuda.tests")


def excluded(nodeid, source):
    """The reason that excludes a test, by its id and the text of its function; None where it counts."""
    for rules, text in ((_ids, nodeid), (_text, source)):
        for pattern, reason in rules:
            if pattern.search(text):
                return reason
    return None


def loaded(module):
    """Completes an alias."""


def prepare():
    """Before a file is collected: pytest would load the packages above it from their files. Helpers of the suite look
    into compiled code, and exclude the tests that call them."""
    from replaced_imports import exclude
    from stride._python_kernel import Kernel

    for name in ("inspect_asm", "inspect_llvm", "inspect_sass"):
        setattr(Kernel, name, lambda *_, **__: exclude(_COMPILER))
    tests = (f"numba.cuda.tests{one}" for one in ("", ".doc_examples", ".cudapy", ".cudadrv"))
    for name in ("numba", "numba.cuda", *tests):
        importlib.import_module(name)
