"""Reading values from asyncio programs: recording never waits, so only reads need to be awaited.

    import stride as st, stride.aio as aio
    async with await aio.connect() as session:
        total = st.sum(st.ones(1000))
        print(await aio.fetch(total))
        async for samples in aio.watch_devices(session, interval=0.5): ..."""

import asyncio
import functools
from typing import AsyncIterator, List, Optional

import numpy as np

from stride import _jobs, _session, _session_reading
from stride._array import Array
from stride._metrics import DeviceSample

__all__ = ["AsyncSession", "connect", "fetch", "synchronize", "wait", "watch_devices"]


class AsyncSession:
    """A Session whose lifetime is an `async with` block; `session` is the session itself.

    Parameters
        session: the session.
    Example
        >>> import asyncio
        >>> async def main(address):
        ...     async with await st.aio.connect(address):
        ...         return (await st.aio.fetch(st.arange(3))).tolist()
        ...
        >>> asyncio.run(main(st.current_session().address))
        [0, 1, 2]
    """

    def __init__(self, session: _session.Session):
        self.session = session

    async def __aenter__(self) -> _session.Session:
        return self.session.__enter__()

    async def __aexit__(self, *_) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.session.close)


async def connect(address: Optional[str] = None, **options) -> AsyncSession:
    """Connects to a daemon, as `stride.connect` does, without blocking the event loop.

    Parameters
        address: `unix:/path`, `host:7433`, or None for the usual places.
        options: `token`, `tls_ca`, `tls_cert`, `tls_key`, `tls_server_name`, `device`, `timeout`, `num_bulk_channels`
            and `local`.
    Returns
        An AsyncSession.
    Raises
        Unavailable where no daemon is reached.
    Example
        >>> import asyncio
        >>> async def main(address):
        ...     async with await st.aio.connect(address) as session:
        ...         return session.closed
        ...
        >>> asyncio.run(main(st.current_session().address))
        False
    """
    loop = asyncio.get_running_loop()
    return AsyncSession(await loop.run_in_executor(None, functools.partial(_session.connect, address, **options)))


async def fetch(array: Array) -> np.ndarray:
    """The elements of an array, on the host. Several fetches may wait at once; a cancelled one ends at once.

    Parameters
        array: an array of the service.
    Returns
        A numpy.ndarray.
    Raises
        The error of the operation that computes the array.
    Example
        >>> import asyncio
        >>> asyncio.run(st.aio.fetch(st.arange(3)))
        array([0, 1, 2])
    """
    node = array._node
    host = node.cached()
    if host is not None:
        return np.array(host)
    session = node.session
    if node.nbytes > _session_reading.FETCH_INLINE_BYTES:
        return await asyncio.get_running_loop().run_in_executor(None, session._read, node)
    future = asyncio.wrap_future(session._fetch_future(node))
    try:
        result = await asyncio.wait_for(future, session.timeout)
    except asyncio.TimeoutError:
        raise session._late() from None
    return np.array(session._accept(node, result))


async def wait(job: "_jobs.Job", timeout: Optional[float] = None) -> "_jobs.Job":
    """Waits until a submitted job has ended; raises its error when it did not succeed.

    Parameters
        job: the job.
        timeout: seconds after which DeadlineExceeded is raised; None waits without an end.
    Returns
        The job.
    Raises
        The job's error; DeadlineExceeded after `timeout`.
    Example
        >>> import asyncio
        >>> _ = st.save("doc_left", st.ones(2), overwrite=True)
        >>> asyncio.run(st.aio.wait(st.submit(st.negative, "doc_left", results=["doc_sum89"]))).state
        'SUCCEEDED'
    """
    return await asyncio.get_running_loop().run_in_executor(None, job.wait, timeout)


async def synchronize(session: _session.Session) -> None:
    """Sends everything recorded and waits until it has been computed.

    Parameters
        session: the session.
    Returns
        None.
    Raises
        The first error of a launch that never ran, or of a kernel that faulted.
    Example
        >>> import asyncio
        >>> asyncio.run(st.aio.synchronize(st.current_session()))
    """
    await asyncio.get_running_loop().run_in_executor(None, session.synchronize)


async def watch_devices(
    session: _session.Session, interval: float = 1.0, **options
) -> AsyncIterator[List[DeviceSample]]:
    """Samples of every device, the first at once.

    Parameters
        session: the session; None for the current one.
        interval: seconds between two samples.
        options: `names` and `max_samples` of `Session.watch_devices`.
    Returns
        An asynchronous iterator of lists of DeviceSample.
    Raises
        NotFound for a device that there is not.
    Example
        >>> import asyncio
        >>> async def count(session):
        ...     return len([one async for one in st.aio.watch_devices(session, 0.05, max_samples=2)])
        ...
        >>> asyncio.run(count(st.current_session()))
        2
    """
    loop = asyncio.get_running_loop()
    samples = session.watch_devices(interval, **options)
    end = object()
    try:
        while True:
            moment = await loop.run_in_executor(None, next, samples, end)
            if moment is end:
                return
            yield moment
    finally:
        await loop.run_in_executor(None, samples.close)
