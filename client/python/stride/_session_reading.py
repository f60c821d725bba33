"""The answers to a session's commands: elements, ends of operations, and errors."""

from concurrent.futures import Future
from typing import Tuple

import numpy as np

from stride import _encoding, _errors, _local, _origin, _printed, _transfer
from stride._graph import Node
from stride._stream import Answer, Note

FETCH_INLINE_BYTES = 1 << 20
# Downloads up to this size stay on the host, so that reading elements one by one costs one round trip.
_CACHE_BYTES = 64 << 10


class Reading:
    """A part of Session."""

    def _fetch_future(self, node: Node) -> Future:
        """Sends the commands of `node` and a fetch of its bytes; resolves to a CommandResult."""
        return self._stream.future_of(self._fetch(node))

    def _fetch(self, node: Node) -> Answer:
        answer = Answer()
        self._flush((node,), lambda flush: flush.fetch(node.handle, answer))
        return answer

    def _read(self, node: Node, progress=None, is_used: bool = True) -> np.ndarray:
        """The elements, read-only when they stay cached. Raises the error of their computation. `is_used`:
        the program uses the elements and does not only wait for them."""
        from stride import _elements

        host = node.cached()
        if host is not None:
            return host
        if node.nbytes > FETCH_INLINE_BYTES:
            return self._read_bulk(node, progress)
        if is_used and node.op is not None:
            if not node.shape:
                _elements.note_read(node)
            elif node.nbytes <= _local.MAX_BYTES:
                _elements.note_small(node)
        answer = Answer()
        self._flush((), lambda flush: flush.read(node, answer))
        return self._accept(node, self._wait(answer), answer.origin)

    def _read_several(self, nodes) -> list:
        """As `_read` of each, in one round trip where none is large."""
        if self._is_trace or any(node.cached() is not None or node.nbytes > FETCH_INLINE_BYTES for node in nodes):
            return [self._read(node) for node in nodes]
        answers = [Answer() for _ in nodes]

        def add(flush):
            for node, answer in zip(nodes, answers):
                flush.read(node, answer)

        self._flush((), add)
        return [self._accept(node, self._wait(answer), answer.origin) for node, answer in zip(nodes, answers)]

    def _read_own(self, node: Node, progress=None) -> np.ndarray:
        """The elements, in memory that is the caller's alone."""
        values = self._read(node, progress)
        return values if node.nbytes > FETCH_INLINE_BYTES and values is not node.host else np.array(values)

    def _accept(self, node: Node, result, origin=None) -> np.ndarray:
        """The elements from the answer to a fetch or to the command that computed them. `origin`: Answer's."""
        _printed.show(self)
        failure = self._stream.take_failure(node.buffer)
        if result.HasField("status") and result.status.code:
            raise self._error(result.status, node, origin)
        if failure is not None:
            self._tell(failure)
        returned = result.results[0]
        values = np.ndarray(node.shape, node.dtype, returned.inline_array.data)
        return self._keep_returned(node, returned)[0] if values.nbytes <= _CACHE_BYTES else values

    def _keep_returned(self, node: Node, returned) -> Tuple[np.ndarray, bool]:
        """Keeps the elements of an answer: a read-only copy of them, which can be handed over, and whether the value
        is spread over devices."""
        values = np.ndarray(node.shape, node.dtype, returned.inline_array.data).copy()
        values.setflags(write=False)
        is_sharded = returned.array.HasField("sharding")
        self._keep(node, values, is_sharded)
        return values, is_sharded

    def _keep(self, node: Node, values: np.ndarray, is_sharded: bool) -> None:
        """The elements of `node`, read-only, came back. Another thread may read or send it. `is_sharded`: the value is
        spread over devices, as that of an array that another client spread."""
        with self._lock:
            if node.handle:
                buffer = node.buffer
                if buffer is None or buffer.copy is None:
                    node.keep(values)
                elif not buffer.copy.dirty:  # it lacks these elements, which a write to it may concern
                    buffer.end_copy()
                    buffer.version += 1
                    node.keep(values)
            elif is_sharded:
                # Created again where it is used: an upload would be in one piece.
                self._has_sharded = True
                node.keep(values)
            elif node.op is not None:
                node.returned(values)

    def _may_hand_over(self, node: Node) -> bool:
        """Whether the host caches the elements after a read."""
        return node.nbytes <= _CACHE_BYTES

    def _hand_over(self, node: Node) -> np.ndarray:
        """The host's cached elements, of which the caller becomes the only owner: writes to them change no
        array of the service."""
        values = self._read(node)
        if not values.flags.owndata or node.buffer is not None and (node.buffer.num_nodes > 1 or node.buffer.parts):
            return np.array(values)  # a view's elements on the host are part of another array's
        self._flush((node,))  # the service must have them
        node.host = None
        values.setflags(write=True)
        return values

    def _read_bulk(self, node: Node, progress) -> np.ndarray:
        try:
            self._await_acceptance(node)
            self._tell(self._stream.take_failure(node.buffer))
            name = f"{self.name}/arrays/{node.handle}"
            values = _transfer.fetch(
                self._channels, self._shared, self._helpers, name, node.dtype, node.shape,
                progress=progress, timeout=self.timeout,
            )
            _printed.show(self)
            return values
        except _errors.StrideError as error:
            if not error.origin:
                error.origin = self._origin_of(node)
            raise

    def _run_and_wait(self, nodes, make) -> None:
        """Sends the commands of these nodes, then the operation `make(flush)`, and waits for its end."""
        answer = Answer()

        def add(flush):
            command = flush.commands.add(operation=make(flush), wait=True)
            command.id = flush.session._next_id()
            flush.notes[command.id] = Note(answer, _origin.caller(), command.operation)

        self._flush(nodes, add)
        result = self._wait(answer)
        _printed.show(self)
        if result.HasField("status") and result.status.code:
            raise _errors.from_status(result.status)

    def _await_acceptance(self, node: Node) -> None:
        """Sends the commands of `node` and waits until the daemon knows its name, because other calls travel
        on other connections than commands."""
        answer = Answer()

        def add(flush):
            flush.ask(_encoding.release(()), answer)

        with self._lock:
            self._check_open()
            copy = node.buffer.copy if node.buffer is not None else None
            is_old = copy is not None and copy.dirty
            if (
                node.session is self
                and node.handle
                and not is_old
                and self._held is None
                and self._stream.all_answered()
            ):
                return
            self._flush((node,), add)
        self._wait(answer)

    def _wait(self, answer: Answer):
        if not self._stream.wait(answer, self.timeout):
            raise self._late()
        if answer.error is not None:
            # Each raise needs a separate traceback.
            raise answer.error.with_traceback(None)
        return answer.result

    def _late(self) -> _errors.DeadlineExceeded:
        return _errors.DeadlineExceeded(f"The result was not there within {self.timeout:g} s")

    def _error(self, status, node: Node, origin=None) -> _errors.StrideError:
        error = _errors.from_status(status)
        self._reported.add(status.message)
        error.origin = _origin.describe(origin) if origin is not None else self._origin_of(node)
        return error

    def _tell(self, failure) -> None:
        if failure is not None:
            self._reported.add(failure.status.message)
            error = _errors.from_status(failure.status)
            # As in the errors that arrays carry, fields are the operation's.
            prefix = "operation."
            error.fields = [
                (path[len(prefix) :] if path.startswith(prefix) else path, text) for path, text in error.fields
            ]
            error.origin = _origin.describe(failure.origin)
            raise error

    def _origin_of(self, node: Node) -> str:
        return _origin.describe(self._stream.origin_of(node.handle) or node.origin)
