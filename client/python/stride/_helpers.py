"""Threads that help the one that calls to move bytes."""

import queue
import threading
import time
from typing import Callable, Iterator, List, Sequence, TypeVar

Caller = TypeVar("Caller")
Part = TypeVar("Part")
_LOOK_SECONDS = 0.001


class Helpers:
    """Threads that wait for something to do, each at a queue of its own: all wake at once, and none for another. Belongs to one session; any thread may
    call, and who finds them busy does all himself."""

    def __init__(self):
        self._lock = threading.Lock()
        self._queues: List[queue.SimpleQueue] = []

    def run(
        self, work: Callable[[Caller, Iterator[Part]], None], callers: Sequence[Caller], parts: Sequence[Part]
    ) -> None:
        """Calls `work(caller, parts)` for the first caller here and for each other in a helper; all take parts from the same iterator, so that who comes late
        finds less to do, or nothing. Returns when nobody is at work any more, also after an interrupt, unless there comes a second one. After an exception
        of one nobody takes another part; it is raised here, this thread's own first."""
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
            while len(ended) < len(begun):  # who begins from now on finds nothing
                bell.get()
        except BaseException:
            _exhaust(left)
            while len(ended) < len(begun):  # an interrupt may have taken a bell
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
        """The threads end, once they have nothing to do."""
        with self._lock:
            queues, self._queues = self._queues, []
        for waiting in queues:
            waiting.put(None)

    __del__ = close


def _wait(waiting: queue.SimpleQueue) -> None:
    while (job := waiting.get()) is not None:
        function, caller = job
        function(caller)
        del job, function, caller  # what they hold is not kept until the next


def _exhaust(parts: Iterator) -> None:
    for _ in parts:
        pass
