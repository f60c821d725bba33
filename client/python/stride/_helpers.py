"""Threads that move bytes for a calling thread."""

import queue
import threading
import time
from typing import Callable, Iterator, List, Sequence, TypeVar

Caller = TypeVar("Caller")
Part = TypeVar("Part")
_LOOK_SECONDS = 0.001


class Helpers:
    """Worker threads, each with its own queue, so that all wake at once. Belongs to one session; any thread
    may call. A caller that finds them busy does all the work itself."""

    def __init__(self):
        self._lock = threading.Lock()
        self._queues: List[queue.SimpleQueue] = []

    def run(
        self, work: Callable[[Caller, Iterator[Part]], None], callers: Sequence[Caller], parts: Sequence[Part]
    ) -> None:
        """Calls `work(caller, parts)`: for the first caller in this thread, for each other one in a helper.
        All take parts from one iterator, so that a late helper takes fewer or none. Returns when no thread
        works any more, also after one interrupt, but not after a second. After an exception no thread takes
        another part; the exception is raised here, this thread's own first."""
        left = iter(parts)
        if len(callers) == 1:
            work(callers[0], left)
            return
        begun: list = []
        ended: list = []
        bell: queue.SimpleQueue = queue.SimpleQueue()
        failures: List[BaseException] = []

        def help_(caller):
            begun.append(caller)
            try:
                work(caller, left)
            except BaseException as error:
                failures.append(error)
                _exhaust(left)
            ended.append(caller)
            bell.put(None)

        try:
            for waiting, caller in zip(self._waiting(len(callers) - 1), callers[1:]):
                waiting.put((help_, caller))
            work(callers[0], left)
            while len(ended) < len(begun):  # a helper that begins now finds no parts
                bell.get()
        except BaseException:
            _exhaust(left)
            while len(ended) < len(begun):  # an interrupt may have lost a wake-up
                time.sleep(_LOOK_SECONDS)
            raise
        if failures:
            raise failures[0]

    def _waiting(self, count: int) -> List[queue.SimpleQueue]:
        if len(self._queues) < count:
            with self._lock:
                while len(self._queues) < count:
                    waiting: queue.SimpleQueue = queue.SimpleQueue()
                    threading.Thread(target=_wait, args=(waiting,), name="stride-bulk", daemon=True).start()
                    self._queues.append(waiting)
        return self._queues

    def close(self) -> None:
        """Ends the threads once they are idle."""
        with self._lock:
            queues, self._queues = self._queues, []
        for waiting in queues:
            waiting.put(None)

    __del__ = close


def _wait(waiting: queue.SimpleQueue) -> None:
    while (job := waiting.get()) is not None:
        function, caller = job
        function(caller)
        del job, function, caller  # releases their references before the next job


def _exhaust(parts: Iterator) -> None:
    for _ in parts:
        pass
