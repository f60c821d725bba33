"""The commands of a session: values recorded for later, and messages that several launches share."""

import threading
import time
import weakref
from typing import Optional

from stride import _errors, _local, _origin
from stride._flush import Flush
from stride._graph import MAX_WEIGHT, Node

# Launches at shorter intervals than this share a message, up to this many: a message costs more than a
# launch.
_HOLD_SECONDS = 1e-4
# Longest time to hold long operations after a message: the device may be idle by then.
_HOLD_LONG_SECONDS = 2e-4
_MAX_HELD = 32
# A batch of values of at least this many bytes each is sent in parts of 1, 2, 4, 8, ... values: the device
# works while the rest is encoded, and messages are few. An H100 moves such a value with its inputs in about 3
# us.
_PART_BYTES = 4 << 20
# Largest number of values in a part, of any size: the daemon plans a part while the next one is encoded.
_MAX_PART_NODES = 128
# Number of recorded nodes at which dead references are removed.
_SWEEP_AFTER = 2_000
# Interval at which the sending thread looks whether its session still exists.
_CHECK_SECONDS = 200.0


class Sending:
    """A part of Session. Its lock guards `_held`, `_recorded` and the order of messages."""

    _held: Optional[Flush] = None  # commands to send with the next ones
    _sent_launch = 0.0  # time of the last launch, sent or held
    _sent_message = 0.0  # time of the last message with commands
    _sender: Optional[threading.Thread] = None  # sends held commands when none follow

    def _record(self, node: Node) -> None:
        recorded = self._recorded
        recorded.append(weakref.ref(node))
        if node.weight > MAX_WEIGHT:
            if not node.shape and not self._is_trace:
                _local.mark(node)
            self._flush([one for one in node.inputs if type(one) is Node and one.deferred])
            node.weight = 1
        if len(recorded) > _SWEEP_AFTER:
            self._sweep()

    def _sweep(self) -> None:
        """Removes references to recorded nodes that are dead or sent, and sends the rest if there are many."""
        with self._lock:
            recorded = self._recorded
            known = recorded[:]
            left = [one for one in known if (node := one()) is not None and node.op is not None]
            recorded[:len(known)] = left  # other threads append at the end
            self._num_taken += 1
            if len(left) > _SWEEP_AFTER // 2:
                self._settle()

    def _send_early(self, node: Node) -> None:
        """Sends the commands of a node before any read needs it. Raises nothing: a node that cannot be sent
        stays deferred, and its read raises the error."""
        if self._is_trace:
            return
        try:
            self._flush((node,), Flush.note_long, may_hold=True)
        except Exception:
            pass  # also what builders raise

    def _flush(self, nodes, then=None, may_hold: bool = False) -> None:
        """Sends the commands of these nodes; `then(flush)` may add commands. `may_hold`: holds them for a
        message with commands that follow soon."""
        with self._lock:
            self._check_open()
            flush, self._held = self._held or self._flush_type(self), None
            flush_ok = False
            try:
                if len(nodes) > 1 and not self._is_trace:
                    self._materialise_in_parts(flush, nodes)
                else:
                    for node in nodes:
                        flush.materialise(node)
                if then is not None:
                    then(flush)
                flush_ok = True
            finally:
                # Nodes have handles by now, so the commands must be sent even after an error.
                if may_hold and flush_ok and self._holds(flush):
                    self._held = flush
                elif flush_ok or flush:
                    self._finish(flush)
                    if may_hold:
                        self._sent_launch = time.monotonic()  # as in _launch

    def _materialise_in_parts(self, flush: Flush, nodes) -> None:
        """Makes the commands of these nodes. If they keep a device busy or are many, sends the first ones
        while the others are made. Commands of the last nodes stay in `flush`. Caller holds the session's
        lock."""
        last = nodes[-1]
        num_nodes, part = 0, 1
        for node in nodes:
            num_nodes += 1
            if num_nodes < part:
                flush.materialise(node)
                continue
            is_long = node.op is not None and _is_long(node)
            flush.materialise(node)
            part = min(2 * num_nodes, _MAX_PART_NODES)
            if (is_long or num_nodes >= _MAX_PART_NODES) and node is not last:
                self._finish(flush)
                num_nodes = 0

    def _finish(self, flush: Flush) -> None:
        flush.finish()
        if flush:
            self._stream.send(*flush.take())
            self._sent_message = time.monotonic()

    def _launch(self, add) -> None:
        """Sends all held recorded values, since a kernel may write arrays that they read, then the launch or
        write in place that `add(flush)` adds, which may share a message with later ones."""
        with self._lock:
            if self._recorded:
                self._settle(add, may_hold=True)
                return
            if self._closed.is_set():
                self._check_open()
            flush = self._held
            if flush is None:
                flush = self._flush_type(self)
            is_held = False
            try:
                add(flush)
                is_held = self._holds(flush)
            finally:
                self._held = flush if is_held else None
                if not is_held:  # also after an error, as in _flush
                    self._finish(flush)
                    # The duration of a send is not a pause: otherwise the launch after a slow send would be
                    # sent alone too.
                    self._sent_launch = time.monotonic()

    def _holds(self, flush: Flush) -> bool:
        """Whether to hold launches for later ones. Caller holds the session's lock."""
        now = time.monotonic()
        last, self._sent_launch = self._sent_launch, now
        if self._is_trace or flush.is_urgent or flush.num_launches >= _MAX_HELD or now - last > _HOLD_SECONDS:
            return False
        if flush.has_long and now - self._sent_message > _HOLD_LONG_SECONDS:
            return False
        if not self._send_soon.is_set():
            if self._sender is None:
                self._sender = threading.Thread(
                    target=_send_held, args=(weakref.ref(self), self._send_soon), daemon=True, name="stride-sender"
                )
                self._sender.start()
            self._send_soon.set()
        return True

    def _send_held(self) -> None:
        """Sends held commands, if any."""
        if self._held is not None:
            try:
                self._flush(())
            except _errors.StrideError:
                pass  # the connection has ended: the next use reports it

    def _settle(self, then=None, may_hold: bool = False) -> None:
        """Sends all recorded values that are still referenced, since a write to their inputs must come after
        them; `then` as in flush."""
        with self._lock:
            recorded = self._recorded[:]
            del self._recorded[:len(recorded)]  # other threads append at the end
            self._num_taken += 1
            nodes = [node for one in recorded if (node := one()) is not None and node.deferred and node.held]
            if nodes or then is not None:
                self._flush(nodes, then, may_hold)

    def _foreign(self, node: Node) -> int:
        """Raises for a node of another session, which has no handle here."""
        if node.session._is_trace:
            raise _errors.TracingError(
                "an array of a function that is traced (by jit or vmap) cannot be used outside it",
                origin=_origin.describe(node.origin),
            )
        raise ValueError("arrays of different sessions cannot meet; download one and upload it again")


def _is_long(node: Node) -> bool:
    """Whether a value is worth a message: the value, or the first input if the operation is not elementwise,
    has many bytes."""
    if node.nbytes >= _PART_BYTES:
        return True
    return type(node.op) is not str and bool(node.inputs) and type(node.inputs[0]) is Node and \
        node.inputs[0].nbytes >= _PART_BYTES


def _send_held(session, send_soon: threading.Event) -> None:
    """The sending thread: holds the session only weakly."""
    while True:
        is_asked = send_soon.wait(_CHECK_SECONDS)
        if is_asked:
            time.sleep(_HOLD_SECONDS)
        alive = session()
        if alive is None or alive.closed:
            return
        # Launches in quick succession are sent when they are many: sending some of them here would cost more
        # messages.
        if is_asked and time.monotonic() - alive._sent_launch >= _HOLD_SECONDS:
            with alive._lock:
                send_soon.clear()
                alive._send_held()
        del alive
