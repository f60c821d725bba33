"""Modules: code that the daemon compiles once and keeps by name (KernelService)."""

import weakref
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

from stride import _launch, _printed
from stride._kernel import RawKernel
from stride._session import Session, current_session
from stride.v1 import kernel_service_pb2 as proto, kernel_service_pb2_grpc

__all__ = ["Global", "RawModule"]


class Global(NamedTuple):
    """A variable of a module on one device kind; `dtype` is None where the compiler does not report it.

    Parameters
        name: the variable's name in the source.
        target: what it was compiled for.
        nbytes: its bytes.
        constant: whether it is in constant memory.
        dtype: the type of its elements, or None.
    Example
        >>> source = "__constant__ float table[4];" 'extern "C" __global__ void nothing() {}'
        >>> st.RawModule(source, globals=["table"]).get_globals()[0].nbytes
        16
    """

    name: str
    target: str
    nbytes: int
    constant: bool
    dtype: Optional[np.dtype]


class RawModule:
    """Kernels of one source, compiled once, before their first launch or by `compile`.

        module = stride.RawModule(source, globals=["table"])
        module.constants["table"] = values           # part of every launch from here on
        module.get_function("apply")((30,), (128,), (x, y))

    `entries` are kernels or, of templates, name expressions (`scale<float>`); without them it has every kernel that
    is no template. `globals` are the variables that launches may set. `device_kind` ("cuda" or "cpu") compiles for
    these devices alone; the kernels then run on no other.

    Parameters
        code: CUDA C++, or with `ptx` the text of PTX.
        options: the compiler's, such as `-DSTEP=5`.
        entries: kernels, or name expressions such as `scale<float>`; empty for every kernel that is no template.
        globals: the variables that launches may set.
        ptx: whether the code is PTX.
        device_kind: `cuda` or `cpu` to compile for these devices alone.
        module_id: a name under which the daemon keeps the module; empty for none.
    Raises
        CompileError at the first launch, or by `compile`.
    Example
        >>> module = st.RawModule('extern "C" __global__ void count(long long* y) { y[threadIdx.x] = threadIdx.x; }')
        >>> y = st.zeros(3, st.int64)
        >>> module.get_function("count")((1,), (3,), (y,))
        >>> y.tolist()
        [0, 1, 2]
    """

    def __init__(
        self,
        code: Union[str, bytes],
        *,
        options: Sequence[str] = (),
        entries: Sequence[str] = (),
        globals: Sequence[str] = (),  # noqa: A002
        ptx: bool = False,
        device_kind: str = "",
        module_id: str = "",
    ):
        _printed.note_code(code)
        self._module = proto.Module(options=options, entries=entries, globals=globals)
        setattr(self._module, "ptx" if ptx else "binary" if isinstance(code, bytes) else "source", code)
        self._device_kind, self._id = device_kind, module_id
        self._made: "weakref.WeakKeyDictionary[Session, proto.Module]" = weakref.WeakKeyDictionary()
        self.constants: Dict[str, object] = {}

    def __repr__(self) -> str:
        return f"<stride.RawModule {self._id or 'by content'}>"

    def compile(self, *, session: Optional[Session] = None) -> "RawModule":
        """Compiles the code now.

        Parameters
            session: the session; None for the current one.
        Returns
            The module.
        Raises
            CompileError for what is wrong with the code.
        Example
            >>> st.RawModule('extern "C" __global__ void nothing() {}').compile() is not None
            True
        """
        self._there(session)
        return self

    def _there(self, session: Optional[Session]) -> proto.Module:
        session = session or current_session()
        while session._is_trace:
            session = session.outer
        made = self._made.get(session)
        if made is None:
            stub = kernel_service_pb2_grpc.KernelServiceStub(session._channels.control)
            request = proto.CreateModuleRequest(module=self._module, module_id=self._id, device_kind=self._device_kind)
            made = session._call(stub.CreateModule, request).module
            self._made[session] = made
        return made

    def get_function(self, name: str) -> RawKernel:
        """The kernel of a name.

        Parameters
            name: the kernel's name, or a name expression of `entries`.
        Returns
            A RawKernel.
        Raises
            CompileError at the launch for a name that the code lacks.
        Example
            >>> callable(st.RawModule('extern "C" __global__ void nothing() {}').get_function("nothing"))
            True
        """
        return _ModuleKernel(self, name)

    def get_globals(self, name: Optional[str] = None, *, session: Optional[Session] = None) -> List[Global]:
        """The compiled variables of each device kind: all, or the one of that name.

        Parameters
            name: the variable's name; None for all of `globals`.
            session: the session; None for the current one.
        Returns
            A list of Global.
        Raises
            CompileError for what is wrong with the code.
        Example
            >>> source = "__constant__ float table[4];" 'extern "C" __global__ void nothing() {}'
            >>> st.RawModule(source, globals=["table"]).get_globals("table")[0].name
            'table'
        """
        infos = self._there(session).global_infos
        return [
            Global(one.name, one.target, one.size_bytes, one.constant, _launch.dtype_of_global(one.data_type))
            for one in infos
            if name is None or one.name == name
        ]

    def log(self, *, session: Optional[Session] = None) -> str:
        r"""The compilers' warnings about the code.

        Parameters
            session: the session; None for the current one.
        Returns
            A str.
        Raises
            CompileError for what is wrong with the code.
        Example
            >>> st.RawModule('extern "C" __global__ void nothing() {}').log()
            '\n'
        """
        return self._there(session).log

    def delete(self, *, session: Optional[Session] = None) -> None:
        """Deletes the module from the daemon; the next launch makes it again.

        Parameters
            session: the session; None for the current one.
        Returns
            None.
        Example
            >>> st.RawModule('extern "C" __global__ void nothing() {}').compile().delete()
        """
        session = session or current_session()
        made = self._made.pop(session, None)
        if made is not None:
            stub = kernel_service_pb2_grpc.KernelServiceStub(session._channels.control)
            session._call(stub.DeleteModule, proto.DeleteModuleRequest(name=made.name))


class _ModuleKernel(RawKernel):
    def __init__(self, module: RawModule, name: str):
        super().__init__("", name, module="a module")
        self._of = module

    def _code_for(self, session) -> str:
        return self._of._there(session).name

    def _constants(self) -> Optional[Mapping[str, object]]:
        return self._of.constants
