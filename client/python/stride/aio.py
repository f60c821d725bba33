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

from stride import _named, _session
from stride._array import Array
from stride._metrics import DeviceSample


class AsyncSession:
    """A Session whose lifetime is an `async with` block; `session` is the session itself."""

    def __init__(self, session: _session.Session):
        self.session = session

    async def __aenter__(self) -> _session.Session:
        return self.session.__enter__()

    async def __aexit__(self, *_) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.session.close)


async def connect(address: Optional[str] = None, **options) -> AsyncSession:
    """As stride.connect."""
    loop = asyncio.get_running_loop()
    return AsyncSession(await loop.run_in_executor(None, functools.partial(_session.connect, address, **options)))


async def fetch(array: Array) -> np.ndarray:
    """The elements, on the host. Several fetches may be under way at once; a cancelled one is not waited for any more."""
    node = array._node
    host = node.cached()
    if host is not None:
        return np.array(host)
    session = node.session
    if node.nbytes > _session.FETCH_INLINE_BYTES:
        return await asyncio.get_running_loop().run_in_executor(None, session._read, node)
    future = asyncio.wrap_future(session._fetch_future(node))
    try:
        result = await asyncio.wait_for(future, session.timeout)
    except asyncio.TimeoutError:
        raise session._late() from None
    return np.array(session._accept(node, result))


async def wait(job: "_named.Job", timeout: Optional[float] = None) -> "_named.Job":
    """Until a submitted job has ended; raises its error when it did not succeed."""
    return await asyncio.get_running_loop().run_in_executor(None, job.wait, timeout)


async def synchronize(session: _session.Session) -> None:
    await asyncio.get_running_loop().run_in_executor(None, session.synchronize)


async def watch_devices(session: _session.Session, interval: float = 1.0, **options) -> AsyncIterator[List[DeviceSample]]:
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
