"""A session: the connection to a daemon and everything recorded for it."""

import atexit
import contextvars
import itertools
import os
import threading
import weakref
from collections import deque
from typing import Any, Dict, Iterator, List, Optional, Tuple

import grpc
import numpy as np

from stride import _address, _daemon, _dtypes, _encoding, _errors, _origin, _printed, _reach, _shared, _transfer
from stride._copies import Copies
from stride._channels import Channels, make_credentials
from stride._flush import Flush
from stride._graph import Node, spec_of
from stride._helpers import Helpers
from stride._metrics import Device, DeviceSample
from stride._local_connection import LocalConnections
from stride._session_reading import Reading
from stride._session_sending import Sending
from stride._stream import Answer, CommandStream
from stride.v1 import array_pb2, array_service_pb2, array_service_pb2_grpc, compute_service_pb2_grpc, \
    device_service_pb2, device_service_pb2_grpc, session_service_pb2, session_service_pb2_grpc, tenant_service_pb2, \
    tenant_service_pb2_grpc

# Bytes up to this size travel inside commands, larger ones on separate connections.
INLINE_BYTES = 64 << 10
_CONNECT_SECONDS = 5.0
_CALL_SECONDS = 60.0  # for calls that wait for no device
_TTL_SECONDS = 600

# Open sessions of the process that were entered, or connected first. The last one is used by a thread that
# entered none.
_default: List["Session"] = []
# The sessions that this thread, or asyncio's task, has entered, innermost last.
_entered: "contextvars.ContextVar[Tuple[Session, ...]]" = contextvars.ContextVar("stride_sessions", default=())


class _Tracing(threading.local):
    """The thread's active traces, innermost last. Creation functions make arrays of the innermost."""

    def __init__(self):
        self.traces: list = []


_tracing = _Tracing()
_live: "weakref.WeakSet[Session]" = weakref.WeakSet()


def connect(
    address: Optional[str] = None, *, token: Optional[str] = None, tls_ca: Optional[str] = None,
    tls_cert: Optional[str] = None, tls_key: Optional[str] = None, tls_server_name: Optional[str] = None,
    device: Optional[str] = None, timeout: Optional[float] = None, num_bulk_channels: int = 0,
    local: bool = True,
) -> "Session":
    """Connects to a daemon: at `address` (`unix:/path`, `host:7433`), else STRIDE_ADDRESS, else the machine's
    socket, else a private daemon, which ends with the session, where `strided` is found (STRIDE_DAEMON, PATH).

    The first session becomes the one that creation functions use; `with` makes it so for a block, in this thread
    or task, and closes it. `device` is where operations run (`cuda:0`; default: where they are expected to end
    first), `timeout` the seconds that a read may take. Without `local` commands travel by gRPC even where the
    daemon has a faster connection for its own host (`Session.transport`).

    Parameters
        address: `unix:/path`, `host:7433` or None.
        token: the tenant's token; None for STRIDE_TOKEN.
        tls_ca: a file with the certificates to trust.
        tls_cert: a file with the client's certificate.
        tls_key: a file with the client's key.
        tls_server_name: the name that the daemon's certificate has.
        device: where operations run, such as `cuda:0`; None leaves it to the daemon.
        timeout: the seconds that a read may take; None for no limit.
        num_bulk_channels: connections for large transfers; 0 for a usual number.
        local: whether commands may travel by the daemon's own connection for its host.
    Returns
        A Session.
    Raises
        Unavailable where no daemon is reached; Unauthenticated for a wrong token.
    Example
        >>> with st.connect(st.current_session().address) as session:
        ...     st.arange(3).session is session
        ...
        True
    """
    daemon = None
    address = address or _address.default_address()
    if address is None:
        executable = _daemon.find_daemon()
        if executable is None:
            raise _errors.Unavailable(
                "No strided was found to start a private daemon, and no daemon listens on this machine: put strided "
                "into PATH, or name it by STRIDE_DAEMON, or name a daemon by STRIDE_ADDRESS"
            )
        daemon = _daemon.PrivateDaemon(executable, cache=_daemon.user_cache())
        address = daemon.address
    try:
        target = _address.target_of(address)
        credentials = make_credentials(target, token, tls_ca, tls_cert, tls_key)
        num_bulk = num_bulk_channels or max(2, min(8, (os.cpu_count() or 2) // 2))
        refused = _reach.refused(target)
        if refused is not None:
            raise refused
        channels = Channels(target, credentials, tls_server_name, num_bulk)
        try:
            grpc.channel_ready_future(channels.control).result(_CONNECT_SECONDS)
        except grpc.FutureTimeoutError:
            error = _reach.why_unreachable(address, target, tls_ca, tls_cert, channels.control)
            channels.close()
            raise error from None
        session = Session(address, channels, daemon, device, timeout, local)
    except BaseException:
        if daemon is not None:
            daemon.stop()
        raise
    if not _default:
        _default.append(session)
    return session


def current_session() -> "Session":
    """The session that creation functions use: the innermost that this thread, or task, is within by `with`, else the
    process's, which the first call
    connects.

    Returns
        A Session.
    Raises
        Unavailable where no daemon is reached.
    Example
        >>> st.current_session() is st.current_session()
        True
    """
    if _tracing.traces:
        return _tracing.traces[-1]
    for session in reversed(_entered.get()):
        if not session.closed:
            return session
    if not _default:
        connect()
    return _default[-1]


class Session(Sending, Reading):
    """A connection to a daemon, which owns arrays. `connect` makes it; `close` or a `with` block ends it.

    Several threads may use a session, though each array belongs to one thread at a time.

    Parameters
        address: the daemon's address.
        channels: the connections to it.
        daemon: the private daemon, or None.
        device: the device that operations run on; None leaves it to the daemon.
        timeout: the seconds that a read may take; None for no limit.
        local: whether commands may travel by the daemon's own connection for its host.
    Example
        >>> st.current_session().closed
        False
    """

    _is_trace = False
    _weak: Any = None  # for traces: nodes that take the type of the other operand
    _depth = 0
    _flush_type = Flush
    _inherited = False  # by a forked process
    _has_sharded = False  # an array of the session is spread over devices

    def __init__(self, address: str, channels: Channels, daemon, device: Optional[str], timeout: Optional[float],
                 local: bool):
        self.address = address
        self.timeout = timeout
        self._tenant_name = ""  # after the first request
        self.device = _device_name(device)
        self._channels = channels
        self._daemon = daemon
        self._ids = itertools.count(1)
        self._next_id = self._ids.__next__
        self._released: deque = deque()  # handles without a Python object
        self._reported: set = set()  # messages of errors raised since the last synchronize
        # Weak references to nodes that may still be deferred. Threads append without the lock: the list stays the same
        # object, and is shortened from its front, with the lock.
        self._recorded: list = []
        self._num_taken = 0  # number of removals
        self._lock = threading.RLock()
        self._send_soon = threading.Event()  # wakes the sender
        self._copies = Copies()  # copies on the host of arrays that the program reads and writes by element
        # Places of the program that make the arrays of a loop of the host (`_local.mark`).
        self._host_places: set = set()
        self._places: dict = {}  # number of waits for a number, by place of the program (`_elements.py`)
        self._closed = threading.Event()
        self._programs = None  # jit's programs, once there are some
        self._gpu = None  # whether the daemon has one, after the first query
        self._devices = device_service_pb2_grpc.DeviceServiceStub(channels.control)
        self._arrays = array_service_pb2_grpc.ArrayServiceStub(channels.control)
        self._sessions = session_service_pb2_grpc.SessionServiceStub(channels.control)
        self._helpers = Helpers()
        request = session_service_pb2.CreateSessionRequest()
        request.ttl.seconds = _TTL_SECONDS
        try:
            self.name = self._call(self._sessions.CreateSession, request, _CONNECT_SECONDS).session.name
        except BaseException:
            channels.close()
            raise
        connections = LocalConnections(channels) if _address.is_unix(channels.target) else None
        self._shared = _shared.SharedMemory(channels, self.name, connections, transfers=local)
        self._stream = CommandStream(
            compute_service_pb2_grpc.ComputeServiceStub(channels.control), self.name, connections if local else None
        )
        threading.Thread(
            target=_renew,
            args=(weakref.ref(self), self._closed, self._sessions, self.name),
            name="stride-renewal",
            daemon=True,
        ).start()
        _live.add(self)

    # --- lifetime ---

    def __enter__(self) -> "Session":
        self._check_open()
        _default.append(self)
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *_) -> None:
        self.close()
        _entered.set(tuple(one for one in _entered.get() if one is not self))

    def __repr__(self) -> str:
        return f"<stride.Session {self.name} at {self.address}{', closed' if self.closed else ''}>"

    @property
    def closed(self) -> bool:
        """Whether the session has ended.

        Example
            >>> st.current_session().closed
            False
        """
        return self._closed.is_set()

    @property
    def tenant(self) -> str:
        """The tenant's name, such as `tenants/default`. The first call asks the daemon.

        Example
            >>> st.current_session().tenant
            'tenants/default'
        """
        if not self._tenant_name:
            stub = tenant_service_pb2_grpc.TenantServiceStub(self._channels.control)
            self._tenant_name = self._call(stub.GetUsage, tenant_service_pb2.GetUsageRequest()).usage.tenant
        return self._tenant_name

    @property
    def transport(self) -> str:
        """The transport of commands: `local`, the daemon's connection for clients of its host, or `grpc`.

        Example
            >>> st.current_session().transport in ("local", "grpc")
            True
        """
        self._check_open()
        return self._stream.transport

    def close(self) -> None:
        """Ends the session with all its arrays, and the private daemon.

        Returns
            None.
        Example
            >>> with st.connect(st.current_session().address) as session:
            ...     session.close()
            ...
        """
        with self._lock:
            if self.closed:
                return
            self._send_held()
            self._closed.set()
            self._copies.close()
        self._send_soon.set()
        while self in _default:
            _default.remove(self)
        self._stream.close()
        self._shared.close()
        try:
            self._sessions.DeleteSession(session_service_pb2.DeleteSessionRequest(name=self.name), timeout=5)
        except grpc.RpcError:
            pass  # it ends by itself when it is idle
        self._helpers.close()
        self._channels.close()
        if self._daemon is not None:
            self._daemon.stop()

    def _check_open(self) -> None:
        if self._closed.is_set():
            if self._inherited:
                raise _errors.FailedPrecondition(
                    "The session belongs to the parent of this forked process; connect again"
                )
            raise _errors.Cancelled("The session is closed; make another with stride.connect()")

    # --- waiting ---

    def synchronize(self) -> None:
        """Sends everything recorded and waits until it has been computed. Arrays report their own errors. This call
        raises errors of launches that never ran and faults of kernels, unless a read of an array has raised them.
        Text that kernels printed is written to sys.stdout, as it is by reads of arrays.

        Returns
            None.
        Raises
            The first error of a launch that never ran, or of a kernel that faulted.
        Example
            >>> st.current_session().synchronize()
        """
        answer = Answer()

        def add(flush):
            flush.ask(_encoding.SYNCHRONIZE, answer)

        self._settle(add)
        result = self._wait(answer)
        _printed.show(self)
        reported, self._reported = self._reported, set()
        self._tell(self._stream.take_failure(any_=True))
        # A kernel that writes no array leaves its fault in none.
        if result.HasField("status") and result.status.code and result.status.message not in reported:
            error = _errors.from_status(result.status)
            if error.reason == "KERNEL_FAULT":
                raise error

    # --- bytes in ---

    def _upload(self, values: np.ndarray, device: Optional[str] = None, progress=None, sharding=None) -> Node:
        """A node with a copy of these elements: kept on the host when they are few, else uploaded now."""
        self._check_open()
        dtype = _dtypes.dtype_of(values.dtype)
        node = Node(self, values.shape, dtype, None, (), _origin.caller())
        device = _device_name(device) if device is not None else self.device if sharding is None else ""
        if sharding is not None:
            self._has_sharded = True
        if values.nbytes <= INLINE_BYTES and not device and sharding is None:
            host = np.array(values, dtype, order="C", copy=True)
            host.setflags(write=False)
            node.keep(host)
            if not host.ndim:
                node.strides = ()  # an array in NumPy too, where what is computed is a scalar: `isscalar` sees it
            return node
        values = np.ascontiguousarray(values, dtype).reshape(values.shape)
        if self._released:
            # A program that only uploads sends no other commands, and this array may reuse the last one's
            # memory.
            self._flush(())
        handle = self._next_id()
        _transfer.put(
            self._channels, self._shared, self._helpers, self.name, str(handle), spec_of(node), values,
            device=device, progress=progress, timeout=self.timeout,
            sharding=None if sharding is None else sharding.to_proto(),
        )
        node.handle = handle
        node.device = device
        return node

    def empty_shared(self, shape, dtype=np.float64) -> np.ndarray:
        """A NumPy array of zeros in memory that the daemon shares: made into an array of the service, its elements
        are not copied on this side, and on a GPU go by DMA. It outlives the session. Unimplemented unless the
        daemon is on this machine, reached by its Unix socket.

        Parameters
            shape: an integer or a sequence of integers.
            dtype: the element type.
        Returns
            A numpy.ndarray.
        Raises
            Unimplemented unless the daemon is on this machine, reached by its Unix socket.
        Example
            >>> try:
            ...     st.current_session().empty_shared(3)
            ... except st.Unimplemented:
            ...     np.zeros(3)
            ...
            array([0., 0., 0.])
        """
        self._check_open()
        return self._shared.empty(shape, np.dtype(dtype))

    def _describe(self, node: Node) -> array_pb2.Array:
        """The daemon's description of a value that is, or will be, on its devices."""
        self._await_acceptance(node)
        request = array_service_pb2.GetArrayRequest(name=f"{self.name}/arrays/{node.handle}")
        return self._call(self._arrays.GetArray, request).array

    # --- devices ---

    def devices(self) -> List[Device]:
        """The daemon's devices.

        Returns
            A list of Device.
        Example
            >>> [one.kind for one in st.current_session().devices()]
            ['cpu']
        """
        reply = self._call(self._devices.ListDevices, device_service_pb2.ListDevicesRequest())
        return [Device.from_proto(device) for device in reply.devices]

    def _has_gpu(self) -> bool:
        """Whether the daemon has a device that is not a CPU device. The first call asks the daemon."""
        if self._gpu is None:
            self._gpu = any(device.kind != "cpu" for device in self.devices())
        return self._gpu

    def watch_devices(
        self, interval: float = 1.0, *, names: Optional[List[str]] = None, max_samples: int = 0
    ) -> Iterator[List[DeviceSample]]:
        """Samples of every device, the first at once; ends after `max_samples`, or when the iterator is closed.

        Parameters
            interval: seconds between two samples.
            names: the devices; None for all.
            max_samples: how many times all are sampled; 0 for no end.
        Returns
            An iterator of lists of DeviceSample.
        Raises
            NotFound for an unknown device.
        Example
            >>> len(list(st.current_session().watch_devices(0.05, max_samples=2)))
            2
        """
        request = device_service_pb2.WatchDevicesRequest(names=names or [], max_samples=max_samples)
        request.interval.FromNanoseconds(int(interval * 1e9))
        call = self._devices.WatchDevices(request)
        try:
            for reply in _errors.replies(call):
                yield [DeviceSample.from_proto(sample) for sample in reply.samples]
        finally:
            call.cancel()

    # --- named arrays ---

    def array(self, name: str):
        """The array that was saved under a name, as `stride.load` gives it.

        Parameters
            name: the array's name.
        Returns
            An array.
        Raises
            NotFound for an unknown name.
        Example
            >>> _ = st.save("doc_saved", st.arange(3), overwrite=True)
            >>> st.current_session().array("doc_saved").tolist()
            [0, 1, 2]
        """
        from stride import _named

        return _named.load(name, session=self)

    def list_arrays(self, parent: str = "") -> List[Dict]:
        """The arrays of this session, or of a tenant, as the daemon sees them; `dtype` is None for an array that
        failed before it had a type.

        Parameters
            parent: a tenant's name; empty for this session.
        Returns
            A list of dicts with the keys `name`, `dtype`, `shape` and `bytes`.
        Example
            >>> _ = st.save("doc_saved", st.arange(3), overwrite=True)
            >>> any(one["name"].endswith("doc_saved") for one in st.current_session().list_arrays("tenants/default"))
            True
        """
        replies = self._pages(self._arrays.ListArrays, array_service_pb2.ListArraysRequest(parent=parent or self.name))
        return [
            {
                "name": a.name,
                "dtype": _dtypes.dtype_numbered(a.data_type) if a.data_type else None,
                "shape": tuple(a.shape),
                "nbytes": a.size_bytes,
            }
            for reply in replies
            for a in reply.arrays
        ]

    def _pages(self, method, request):
        """The replies of a listing, one a page."""
        while True:
            reply = self._call(method, request)
            yield reply
            request.page_token = reply.next_page_token
            if not request.page_token:
                return

    def _call(self, method, request, timeout: Optional[float] = None):
        self._check_open()
        return _errors.call(method, request, timeout=timeout or self.timeout or _CALL_SECONDS)


def _device_name(device: Optional[str]) -> str:
    if not device or device == "auto":
        return ""
    return device if device.startswith("devices/") else "devices/" + device


def _renew(session, closed, stub, name) -> None:
    """The renewing thread: holds the session only weakly."""
    while not closed.wait(_TTL_SECONDS / 3):
        alive = session()
        if alive is None:
            return
        alive._shared.rest()
        del alive
        try:
            stub.RenewSession(session_service_pb2.RenewSessionRequest(name=name), timeout=30)
        except grpc.RpcError:
            pass  # the next use of the session reports it


@atexit.register
def _close_all() -> None:
    for session in list(_live):
        session.close()


def _leave_to_parent() -> None:
    """In a forked child: sessions belong to the parent, which keeps using them. Its threads, and the locks
    that they held, do not exist here."""
    _default.clear()
    for session in list(_live):
        session._inherited = True
        session._lock, session._closed = threading.RLock(), threading.Event()
        session._closed.set()
        session._copies.close()
        session._held = None
        session._stream.leave_to_parent()
        session._shared.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)
