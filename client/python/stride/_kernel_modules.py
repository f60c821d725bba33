"""Modules of kernels that outlive a session. They belong to the tenant."""

from typing import Dict, List, Optional, Sequence

from stride import _printed
from stride._kernel import RawKernel
from stride._session import Session, current_session
from stride.v1 import kernel_service_pb2, kernel_service_pb2_grpc

__all__ = ["Module", "modules"]


class Module:
    """Kernels compiled once and kept by the daemon, so that launches name them instead of carrying source.

    module = stride.Module(source, options=["-DSTEP=5"], name="steps") module["step"](1, 3, (x,))
    # as a RawKernel module.kernels["scale<float>"].registers                          # one KernelInfo a kernel;
    of several devices the first

    Parameters
        source: CUDA C++.
        ptx: in place of `source`, the text of PTX.
        binary: in place of `source`, a cubin.
        options: the compiler's, such as `-DSTEP=5`.
        entries: kernels, or name expressions such as `scale<float>`; empty for every kernel that is no template.
        name: the last part of the full name; empty for one that the daemon chooses.
        session: the session; None for the current one.
        _proto: the daemon's message of a module that exists.
    Raises
        ValueError unless the code is given in one form; CompileError for what does not compile; AlreadyExists for a
        name that is taken.
    Example
        >>> module = st.Module('extern "C" __global__ void count(long long* y) { y[threadIdx.x] = threadIdx.x; }')
        >>> y = st.zeros(3, st.int64)
        >>> module["count"](1, 3, (y,))
        >>> y.tolist()
        [0, 1, 2]
        >>> module.delete()
    """

    def __init__(
        self, source: str = "", *, ptx: str = "", binary: bytes = b"", options: Sequence[str] = (),
        entries: Sequence[str] = (), name: str = "", session: Optional[Session] = None,
        _proto: Optional[kernel_service_pb2.Module] = None,
    ):
        self._session = session or current_session()
        self._stub = kernel_service_pb2_grpc.KernelServiceStub(self._session._channels.control)
        if _proto is None:
            request = kernel_service_pb2.CreateModuleRequest(module_id=name)
            given = [(kind, code) for kind, code in (("source", source), ("ptx", ptx), ("binary", binary)) if code]
            if len(given) != 1:
                raise ValueError("a module is made of source, of PTX or of a binary")
            setattr(request.module, *given[0])
            request.module.options.extend(options)
            request.module.entries.extend(entries)
            _proto = self._session._call(self._stub.CreateModule, request).module
        self._proto = _proto

    def __repr__(self) -> str:
        return f"<stride.Module {self.name}>"

    @property
    def name(self) -> str:
        """The full name.

        Example
            >>> module = st.Module('extern "C" __global__ void nothing() {}', name="doc-name")
            >>> module.name
            'tenants/default/modules/doc-name'
            >>> module.delete()
        """
        return self._proto.name

    @property
    def log(self) -> str:
        r"""The compiler's warnings.

        Example
            >>> module = st.Module('extern "C" __global__ void nothing() {}', name="doc-log")
            >>> module.log
            '\n'
            >>> module.delete()
        """
        return self._proto.log

    @property
    def kernels(self) -> Dict[str, kernel_service_pb2.KernelInfo]:
        """The kernels by name: registers, shared memory and parameters of each.

        Example
            >>> module = st.Module('extern "C" __global__ void nothing() {}', name="doc-kernels")
            >>> list(module.kernels)
            ['nothing']
            >>> module.delete()
        """
        return {one.entry: one for one in reversed(self._proto.kernels)}

    def __getitem__(self, entry: str) -> RawKernel:
        code = self._proto.source or self._proto.ptx or self._proto.binary
        if code:
            _printed.note_code(code)
        else:  # too long for an answer
            _printed.expect()
        return RawKernel("", entry, module=self.name)

    def delete(self) -> None:
        """Deletes the module from the daemon.

        Returns
            None.
        Raises
            NotFound for a module that was deleted.
        Example
            >>> st.Module('extern "C" __global__ void nothing() {}').delete()
        """
        self._session._call(self._stub.DeleteModule, kernel_service_pb2.DeleteModuleRequest(name=self.name))


def modules(*, session: Optional[Session] = None) -> List[Module]:
    """The tenant's modules of kernels.

    Parameters
        session: the session; None for the current one.
    Returns
        A list of Module.
    Example
        >>> module = st.Module('extern "C" __global__ void nothing() {}', name="doc-listed")
        >>> [one.name for one in st.modules() if one.name.endswith("doc-listed")]
        ['tenants/default/modules/doc-listed']
        >>> module.delete()
    """
    session = session or current_session()
    stub = kernel_service_pb2_grpc.KernelServiceStub(session._channels.control)
    replies = session._pages(stub.ListModules, kernel_service_pb2.ListModulesRequest(parent=session.tenant))
    return [Module(session=session, _proto=one) for reply in replies for one in reply.modules]
