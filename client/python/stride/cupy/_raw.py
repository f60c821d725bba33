"""RawKernel and RawModule, called as CuPy's."""

import functools
import os
import re
from typing import Dict, List, Optional, Sequence

import numpy as np

from stride import _errors, _kernel, _launch, _module
from stride._execution import refused
from stride.cupy._text import own_headers

# Options of a local compiler, or that the daemon decides: the target, debug information, warnings.
_NEEDLESS = re.compile(
    r"-default-device|--?device-debug|-G|-g|--?generate-line-info|--?lineinfo|-lineinfo|-w|--?restrict|"
    r"--?gpu-architecture=.*|-arch=.*|--?ptxas-options=.*|-Xptxas.*|--?device-int128|--?extra-device-vectorization|"
    r"--?relocatable-device-code=.*|-rdc=.*|"
    r"--?diag-.*|--?ftz=.*|--?prec-.*|--?expt-.*|-ewp|-I.*|--?include-path=.*"
)


def compiler_options(options: Sequence[str]) -> List[str]:
    """Those of a user's that the service's compilers take; a path to headers is dropped, and a header that is missing
    then is the compiler's error."""
    made = []
    for one in options:
        if not isinstance(one, str):
            raise TypeError(f"options are strings, not {type(one).__name__}")
        one = one.strip()
        if one and not _NEEDLESS.fullmatch(one):
            made.append("--std=c++14" if one in ("--std=c++03", "-std=c++03") else one)
    return made


def _argument(value):
    """As the service takes it: NumPy's structs by their bytes."""
    if isinstance(value, np.void) or isinstance(value, np.ndarray) and value.dtype.kind == "V":
        return value.tobytes()
    return getattr(value, "_as_kernel_argument", value)


class RawKernel:
    """A kernel in CUDA C++, compiled by the daemon: `kernel(grid, block, args, shared_mem=0)`.

    `args` are arrays (whose type must be what the parameter points to), numbers (converted to the parameter's
    type) and NumPy's structs. `options` are the compiler's; those that name a target, debug information or paths
    are dropped. `backend` and `jitify` change nothing.

    Parameters
        code: CUDA C++.
        name: the kernel's name in the code.
        options: the compiler's.
        backend: accepted.
        translate_cucomplex: whether `cuCadd` and the like take both precisions.
        enable_cooperative_groups: whether all blocks run at once and may meet.
        jitify: accepted.
    Raises
        CompileError at the first launch for what does not compile.
    Example
        >>> import stride.cupy as cp
        >>> source = 'extern "C" __global__ void count(long long* y) { y[threadIdx.x] = threadIdx.x; }'
        >>> y = cp.zeros(3, cp.int64)
        >>> cp.RawKernel(source, "count")((1,), (3,), (y,))
        >>> y.tolist()
        [0, 1, 2]
    """

    def __init__(
        self,
        code: str,
        name: str,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        *,
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        jitify: bool = False,
    ):
        self.code, self.name, self.options, self.backend = code, name, tuple(options), backend
        self.enable_cooperative_groups = enable_cooperative_groups
        self._module: Optional["RawModule"] = None
        self._text = own_headers(code, translate_cucomplex)
        self._raw = _kernel.RawKernel(self._text, name, compiler_options(options))

    @classmethod
    def _of(cls, module: "RawModule", name: str, raw) -> "RawKernel":
        made = cls.__new__(cls)
        made.code, made.name, made.options, made.backend = module.code, name, module.options, module.backend
        made.enable_cooperative_groups, made._module, made._raw = module.enable_cooperative_groups, module, raw
        return made

    def __repr__(self) -> str:
        return f"<stride.cupy.RawKernel {self.name}>"

    def __call__(self, grid, block, args=(), *, shared_mem: int = 0, stream=None) -> None:
        """Launches it: `grid` blocks of `block` threads, each one to three numbers. `stream` is accepted, since
        operations run in order."""
        constants = None if self._module is None else self._module._constants()
        self._raw(
            grid,
            block,
            [one if type(one) in _launch.PLAIN_TYPES else _argument(one) for one in args],
            shared_memory_bytes=shared_mem,
            constants=constants,
            cooperative=self.enable_cooperative_groups,
        )

    def compile(self, log_stream=None) -> None:
        """Compiles the kernel now.

        Parameters
            log_stream: an open file for warnings, or None.
        Returns
            None.
        Raises
            CompileError for what does not compile.
        Example
            >>> import stride.cupy as cp
            >>> source = 'extern "C" __global__ void count(long long* y) { y[threadIdx.x] = threadIdx.x; }'
            >>> cp.RawKernel(source, "count").compile()
        """
        made = self._info_module().compile()
        if log_stream is not None:
            log_stream.write(made.log())

    def _info_module(self) -> _module.RawModule:
        if self._module is not None:
            return self._module._for(self.name)
        return _module.RawModule(self._text, options=compiler_options(self.options), entries=[self.name])

    @functools.cached_property
    def attributes(self) -> Dict[str, int]:
        """The compiler's numbers for the kernel; 0 where the device kind has no such number.

        Example
            >>> import stride.cupy as cp
            >>> source = 'extern "C" __global__ void count(long long* y) { y[threadIdx.x] = threadIdx.x; }'
            >>> sorted(cp.RawKernel(source, "count").attributes)[:2]
            ['binary_version', 'cache_mode_ca']
        """
        infos = [one for one in self._info_module()._there(None).kernels if one.entry == self.name] or list(
            self._info_module()._there(None).kernels
        )
        info = infos[0]
        digits = re.search(r"sm_(\d+)", info.target)
        version = int(digits[1]) if digits else 0
        return {
            "max_threads_per_block": info.max_threads_per_block,
            "shared_size_bytes": info.shared_bytes,
            "const_size_bytes": info.constant_bytes,
            "local_size_bytes": info.local_bytes,
            "num_regs": info.registers,
            "ptx_version": version,
            "binary_version": version,
            "cache_mode_ca": 0,
            "max_dynamic_shared_size_bytes": self.max_dynamic_shared_size_bytes,
            "preferred_shared_memory_carveout": -1,
        }

    # A launch requests its shared memory itself.
    max_dynamic_shared_size_bytes = 48 << 10
    preferred_shared_memory_carveout = -1

    def __getattr__(self, name: str):
        if name in (
            "max_threads_per_block",
            "shared_size_bytes",
            "const_size_bytes",
            "local_size_bytes",
            "num_regs",
            "ptx_version",
            "binary_version",
            "cache_mode_ca",
        ):
            return self.attributes[name]
        if name == "kernel":
            refused("RawKernel.kernel", "the compiled function is the daemon's; call the RawKernel itself")
        raise AttributeError(f"a RawKernel has no {name}")


class GlobalVariable:
    """A variable of a module. `set` gives it a value, which is part of every later launch of the module's kernels."""

    def __init__(self, module: "RawModule", name: str):
        self.module, self.name = module, name

    def __repr__(self) -> str:
        return f"<stride.cupy global {self.name}>"

    def set(self, values) -> None:
        """An array of the service or of the host, or a number."""
        self.module._values[self.name] = values

    copy_from = copy_from_host = copy_from_device = set

    @property
    def nbytes(self) -> int:
        """As the compiler says."""
        return self.module._for(None, self.name).get_globals(self.name)[0].nbytes

    size = nbytes


class RawModule:
    """A module of CUDA C++, with `code` or the file at `path`; or a cubin or PTX file, which runs on GPUs alone.

    `name_expressions` are templates' instances that `get_function` then finds. `get_global(name).set(values)`
    gives a variable its value for all later launches.

    Parameters
        code: CUDA C++.
        path: in place of `code`, a file.
        options: the compiler's.
        backend: accepted.
        translate_cucomplex: whether `cuCadd` and the like take both precisions.
        enable_cooperative_groups: whether all blocks run at once and may meet.
        name_expressions: instances of templates, such as `scale<float>`.
        jitify: accepted.
    Raises
        TypeError unless one of `code` and `path` is given; CompileError at the first launch for what does not compile.
    Example
        >>> import stride.cupy as cp
        >>> source = 'extern "C" __global__ void count(long long* y) { y[threadIdx.x] = threadIdx.x; }'
        >>> y = cp.zeros(3, cp.int64)
        >>> cp.RawModule(code=source).get_function("count")((1,), (3,), (y,))
        >>> y.tolist()
        [0, 1, 2]
    """

    def __init__(
        self,
        *,
        code: Optional[str] = None,
        path: Optional[str] = None,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Optional[Sequence[str]] = None,
        jitify: bool = False,
    ):
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        if path is not None and name_expressions is not None:
            raise ValueError("name_expressions are of code, not of a file that is compiled")
        self.code, self.file_path, self.options, self.backend = code, path, tuple(options), backend
        self.enable_cooperative_groups, self._translates = enable_cooperative_groups, translate_cucomplex
        self.name_expressions = None if name_expressions is None else tuple(name_expressions)
        self._values: Dict[str, object] = {}
        self._names: set = set()
        self._made: Dict[tuple, _module.RawModule] = {}

    def __repr__(self) -> str:
        return "<stride.cupy.RawModule>"

    def _constants(self) -> Optional[dict]:
        return dict(self._values) or None

    def _text(self):
        if self.file_path is not None:
            with open(os.fspath(self.file_path), "rb") as file:
                data = file.read()
            return (data.decode(), True) if self.file_path.endswith(".ptx") else (data, False)
        return own_headers(self.code, self._translates), False

    def _for(self, entry: Optional[str], variable: Optional[str] = None) -> _module.RawModule:
        """The service's module with this kernel and every requested variable."""
        if variable is not None:
            self._names.add(variable)
        is_template = entry is not None and self.name_expressions is not None and entry in self.name_expressions
        entries = self.name_expressions if is_template else ()
        key = (entries, frozenset(self._names))
        if key not in self._made:
            text, is_ptx = self._text()
            self._made[key] = _module.RawModule(
                text,
                options=compiler_options(self.options),
                entries=entries or (),
                globals=sorted(self._names),
                ptx=is_ptx,
            )
        return self._made[key]

    def get_function(self, name: str) -> RawKernel:
        """The kernel of this name, or of this name expression.

        Parameters
            name: the kernel's name, or a name expression.
        Returns
            A RawKernel.
        Example
            >>> import stride.cupy as cp
            >>> source = 'extern "C" __global__ void count(long long* y) { y[threadIdx.x] = threadIdx.x; }'
            >>> callable(cp.RawModule(code=source).get_function("count"))
            True
        """
        return RawKernel._of(self, name, _LateKernel(self, name))

    def get_global(self, name: str) -> GlobalVariable:
        """The variable of this name; `set` gives it a value.

        Parameters
            name: the variable's name.
        Returns
            A GlobalVariable.
        Example
            >>> import stride.cupy as cp
            >>> source = 'extern "C" __global__ void count(long long* y) { y[threadIdx.x] = threadIdx.x; }'
            >>> cp.RawModule(code="__constant__ float table[4];" + source).get_global("table") is not None
            True
        """
        self._names.add(name)
        return GlobalVariable(self, name)

    def compile(self, log_stream=None) -> None:
        """Compiles the module now.

        Parameters
            log_stream: an open file for warnings, or None.
        Returns
            None.
        Raises
            CompileError for what does not compile.
        Example
            >>> import stride.cupy as cp
            >>> source = 'extern "C" __global__ void count(long long* y) { y[threadIdx.x] = threadIdx.x; }'
            >>> cp.RawModule(code=source).compile()
        """
        made = self._for(self.name_expressions[0] if self.name_expressions else None).compile()
        if log_stream is not None:
            log_stream.write(made.log())


class _LateKernel:
    """A kernel of a module whose variables may be requested later."""

    def __init__(self, module: RawModule, name: str):
        self._module, self._name = module, name

    def __call__(self, grid, block, arguments, **options) -> None:
        self._module._for(self._name).get_function(self._name)(grid, block, arguments, **options)


def compile_with_cache(*_, **__):
    """Refused: RawModule compiles, and the daemon keeps what it compiled.

    Returns
        Nothing: it raises.
    Raises
        Unimplemented.
    Example
        >>> import stride.cupy as cp
        >>> try:
        ...     cp.cuda.compile_with_cache("")
        ... except st.Unimplemented:
        ...     print("refused")
        ...
        refused
    """
    raise _errors.Unimplemented(
        "compile_with_cache is not there: the daemon compiles and keeps its code; use RawModule",
        reason="NOT_IMPLEMENTED",
        metadata={"feature": "compile_with_cache"},
    )
