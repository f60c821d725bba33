"""Commands that a session sends, their times, and the reports of errors."""

import contextlib
import functools
import gc
import itertools
import operator
import os
import pathlib
import threading
import time
import unittest.mock
import weakref

import numpy as np

import client_case
import stride as st
from client_case import Sent
from stride import _array, _encoding, _flush, _graph, _session_sending
from stride.v1 import compute_service_pb2


def line_of(mark):
    lines = pathlib.Path(__file__).read_text().split("\n")
    return next(i for i, text in enumerate(lines, 1) if text.endswith("# " + mark))


def tree(values):
    while len(values) > 1:
        values = [a + b for a, b in zip(values[::2], values[1::2])] + values[len(values) // 2 * 2:]
    return values[0]


def renumbered(commands):
    """The commands with handles in the order in which they appear."""
    numbers = {}

    def visit(message):
        for field, value in message.ListFields():
            if field.name == "handle":
                message.handle = numbers.setdefault(value, len(numbers) + 1)
            elif field.name == "handles":
                message.handles[:] = [numbers.setdefault(one, len(numbers) + 1) for one in value]
            elif field.message_type is not None:
                is_map = field.message_type.GetOptions().map_entry
                parts = [value[key] for key in sorted(value)] if is_map and hasattr(value, "keys") else value
                for part in parts if is_map or hasattr(parts, "add") else [parts]:
                    if hasattr(part, "ListFields"):
                        visit(part)

    for command in commands:
        visit(command)
    return commands


DEVICE = f"devices/{client_case.DEVICE_KIND}:0"


class LazyTest(client_case.ClientCase):
    def test_nothing_is_sent_before_a_read(self):
        with Sent(self.session) as sent:
            x = st.arange(1000.0)
            y = st.cos(x) ** 2 + st.sin(x) ** 2
            total = st.sum(y)
            self.assertEqual(sent.num_messages, 0)
            self.assertAlmostEqual(float(total), 1000)
            self.assertEqual(sent.num_messages, 1)
        # x and y are held, so both exist; the four values between them are in one expression.
        self.assertEqual(sent.kinds, ["creation", "expression", "reduction"])

    def test_synchronize_shares_a_message_with_pending_commands(self):
        with Sent(self.session) as sent:
            x, y = st.arange(10.0) + 1, st.zeros(3)
            self.session.synchronize()
            self.assertEqual(sent.num_messages, 1)
        self.assertEqual(sum(command.HasField("synchronize") for command in sent.commands), 1)
        self.assertEqual(float(x[0] + y[0]), 1)

    def test_long_values_are_sent_in_growing_parts(self):
        x = (st.asarray(np.arange(2_000_000.0)) + 0).block_until_ready()
        self.session.synchronize()  # which sends releases
        with Sent(self.session) as sent:
            results = [x + i for i in range(20)]
            self.assertEqual(sent.num_messages, 0)
            self.session.synchronize()
        self.assertEqual(sent.sizes, [1, 2, 4, 8, 5 + 1])  # the last has the synchronize
        order = [command.operation.outputs[0].handle for command in sent.commands[:-1]]
        self.assertEqual(order, [one._node.handle for one in results])
        for i in (0, 1, 7, 19):
            self.same(results[i][:3], np.arange(3.0) + i)

    def test_small_values_are_sent_in_parts_where_they_are_many(self):
        x = (st.asarray(np.arange(1000.0)) + 0).block_until_ready()
        for count, sizes in ((16, [16 + 1]), (128, [128 + 1]), (300, [128, 128, 44 + 1])):
            results = []
            self.session.synchronize()  # which sends releases
            with self.subTest(count=count), Sent(self.session) as sent:
                results = [x + i for i in range(count)]
                self.session.synchronize()
                self.assertEqual(sent.sizes[-len(sizes):], sizes)
                self.same(results[-1], np.arange(1000.0) + count - 1)
                self.assertLessEqual(sent.num_messages, len(sizes) + 2)

    def test_values_of_a_part_use_those_of_the_parts_before(self):
        x = (st.asarray(np.arange(1_000_000.0)) + 0).block_until_ready()
        results, expected = [x], np.arange(1_000_000.0)
        for i in range(40):
            results.append(results[-1] * 2 - results[len(results) // 2])
        self.session.synchronize()
        expected = [expected]
        for i in range(40):
            expected.append(expected[-1] * 2 - expected[len(expected) // 2])
        self.same(results[40], expected[40])
        self.same(results[3], expected[3])

    def test_an_error_between_parts_leaves_each_value_sent_once(self):
        x = (st.asarray(np.arange(2_000_000.0)) + 0).block_until_ready()

        def build(flush, node, operands):
            raise RuntimeError("cannot be built")

        before = [x + 1, x + 2]
        bad = _array.wrap(_graph.defer(self.session, (3,), np.dtype(float), build, ()))
        after = [x + 3, x + 4]
        with Sent(self.session) as sent:
            with self.assertRaisesRegex(RuntimeError, "cannot be built"):
                self.session.synchronize()
            handles = [command.operation.outputs[0].handle for command in sent.commands
                       if command.HasField("operation")]
            self.assertEqual(handles, [one._node.handle for one in before])
            del bad
            for one, number in zip(before + after, (1, 2, 3, 4)):
                self.same(one[:2], np.arange(2.0) + number)
        made = [one.operation.outputs[0].handle for one in sent.commands if one.operation.HasField("ufunc")]
        self.assertEqual(len(made), len(set(made)))

    def test_an_interrupt_between_parts_sends_no_command_twice(self):
        x = (st.asarray(np.arange(2_000_000.0)) + 0).block_until_ready()
        results = [x + i for i in range(4)]
        sent, send = [], self.session._stream.send

        def interrupted(request, notes, pieces=()):
            sent.extend(notes)
            send(request, notes, pieces)
            if len(sent) == 1:
                raise KeyboardInterrupt

        with unittest.mock.patch.object(self.session._stream, "send", interrupted):
            with self.assertRaises(KeyboardInterrupt):
                self.session.synchronize()
            for i, one in enumerate(results):
                self.same(one[:2], np.arange(2.0) + i)
        self.assertEqual(len(sent), len(set(sent)))

    def encoded(self, make, as_messages):
        """The commands of the values that `make` records: serialised at once, or as messages."""
        self.session.synchronize()
        made = make()
        values = made if isinstance(made, (list, tuple)) else [made]
        with self.session._lock, unittest.mock.patch.object(
            self.session, "_next_id", itertools.count(1 << 20).__next__
        ):
            flush = _flush.Flush(self.session)
            flush._as_messages = as_messages
            for value in values:
                flush.materialise(value._node)
            flush.finish()
            if not as_messages:
                self.assertFalse(flush.commands, "a command was added as a message")
            flush.seal()
        commands = []
        for piece, count in flush.pieces:
            request = compute_service_pb2.ExecuteRequest.FromString(piece)
            self.assertEqual(len(request.commands), count)
            self.assertEqual(request.ByteSize(), len(piece))  # with the shortest numbers
            commands += request.commands
        for note in flush.notes.values():
            if note.has_operation:
                self.assertIn(note.operation, [one.operation for one in commands])
        return renumbered(commands)

    def test_serialised_commands_equal_messages(self):
        rng = np.random.default_rng(3)
        a, b = ((st.asarray(rng.standard_normal((6, 5))) + 0).block_until_ready() for _ in range(2))
        v, w = ((st.asarray(rng.standard_normal(12)) + 0).block_until_ready() for _ in range(2))
        c = (st.asarray(np.arange(4) * 1j) + 0).block_until_ready()
        index = (st.asarray(rng.integers(0, 5, 7)) + 0).block_until_ready()
        mask = (v > 0).block_until_ready()
        int(st.count_nonzero(mask)), v[mask].block_until_ready()
        host = np.arange(5.0)
        numbers = [0.0, -0.0, 1, -3, 2**40, True, 1.5, float("nan"), float("inf"), np.float32(2), np.int8(3),
                   np.uint64(2**63), np.float64(-0.0), np.complex64(complex(1, -0.0)), complex(1, 0.0),
                   complex(1, -0.0), complex(-0.0, 1)]
        makers = {
            "two arrays": lambda: a + b,
            "three arrays": lambda: st.where(mask, v, w),
            "a name with %": lambda: a % b,
            "numbers": lambda: [st.multiply(c if isinstance(n, (complex, np.complexfloating)) else v.astype("f8"), n)
                                for n in numbers if not isinstance(n, np.uint64)],
            "a large number": lambda: st.asarray(np.uint64([1, 2])) + np.uint64(2**63),
            "an array of the host": lambda: a + st.asarray(host),
            "an expression": lambda: st.cos(a) ** 2 + st.sin(b) ** 2 * 3 - st.asarray(host),
            "an expression of many": lambda: functools.reduce(operator.add, [a * i for i in range(12)]),
            "reductions": lambda: [a.sum(), a.sum(axis=0), a.max(axis=1, keepdims=True), a.argmin(axis=0),
                                   st.mean(a, dtype=st.float32), st.any(mask)],
            "a reduction of an expression": lambda: [st.sum(a * b + 1), st.var(a, axis=0)],
            "views": lambda: [a[1:, ::2] + 0, a[:, None] + 0, a.T + 0, v[::-1][2:5] + 0, a[2] + 0,
                              st.broadcast_to(v, (3, 12)) + 0, v.reshape(3, 4)],
            "a product": lambda: [a @ b.T, v @ w],
            "a conversion": lambda: a.astype(st.float32),
            "stacks": lambda: [st.stack([v, w]), st.concatenate([v, w]), st.stack([a, b, a], axis=1)],
            "a stack of expressions": lambda: st.stack([v * 2, w + v]),
            "pads": lambda: [st.pad(v, 2), st.pad(a, 1, constant_values=-0.0), st.diag(v)],
            "a roll": lambda: [st.roll(v, 5), st.roll(a, 2, axis=1)],
            "sorts": lambda: [st.sort(v), st.argsort(a, axis=0), st.lexsort([v, w]), st.partition(v, 3)],
            "indices": lambda: [v[index], a[:, index], st.take_along_axis(a, st.argsort(a), 1), v[mask]],
            "searches": lambda: [st.searchsorted(v, w), st.digitize(v, np.linspace(-1, 1, 5)), st.median(a, axis=0)],
            "creations": lambda: [st.zeros((2, 3)), st.full(3, -0.0), st.arange(5), st.tril(a, -1), st.eye(3)],
            "a transform": lambda: [st.fft.rfft(v), st.cumsum(v)],
        }
        for device in ("", DEVICE):
            with unittest.mock.patch.object(self.session, "device", device):
                for name, make in makers.items():
                    with self.subTest(name=name, device=device):
                        for _ in range(2):  # encoded first, and copied then
                            serialised, messages = self.encoded(make, False), self.encoded(make, True)
                            self.assertEqual(len(serialised), len(messages))
                            for one, other in zip(serialised, messages):
                                self.assertEqual(one, other)

    def test_handles_of_every_length(self):
        template = _encoding.ufunc_templates["add"]
        for handle in (1, 127, 128, 2**14 - 1, 2**14, 2**21, 2**35, 2**63):
            inputs = b"".join(_encoding.UFUNC_INPUT + _encoding.handle_operand(handle + i) for i in range(2))
            for existing in (False, True):
                number = _encoding.varint(handle)
                piece = template.command(number, inputs, number, DEVICE, existing)
                (command,) = compute_service_pb2.ExecuteRequest.FromString(piece).commands
                self.assertEqual(command.id, handle)
                operation = command.operation
                self.assertEqual([one.handle for one in operation.ufunc.inputs], [handle, handle + 1])
                self.assertEqual((operation.outputs[0].handle, operation.outputs[0].existing), (handle, existing))
                self.assertEqual((operation.ufunc.function, operation.device), ("add", DEVICE))
                self.assertEqual(command.ByteSize() + 1 + len(_encoding.varint(command.ByteSize())), len(piece))

    def test_many_serialised_commands_keep_the_limits_of_a_message(self):
        x, big = st.zeros(8), [np.full(2000, float(i)) for i in range(100)]
        with unittest.mock.patch.object(_session_sending, "_MAX_PART_NODES", 10_000), Sent(self.session) as sent:
            results = [x + i for i in range(1500)]
            sums = [st.asarray(one) + 1 for one in big]
            self.session.synchronize()
        self.assertEqual(sent.num_messages, 1)
        for i in (0, 899, 900, 1499):
            self.same(results[i], np.full(8, float(i)))
        for i, one in enumerate(sums):
            self.same(one[:2], np.full(2, i + 1.0))

    def test_a_mask_is_counted_once_until_it_is_written(self):
        host = np.arange(3000.0) - 1000
        x = (st.asarray(host) + 0).block_until_ready()
        mask, expected = (x > 0).block_until_ready(), host > 0
        self.same(x[mask], host[expected])
        with Sent(self.session) as sent:
            again, places = x[mask], st.nonzero(mask)
            self.assertEqual(sent.num_messages, 0)
        self.same(again, host[expected])
        self.same(places[0], np.nonzero(expected)[0])

        def element():
            mask[5] = expected[5] = True

        def part():
            view = mask[:40]
            view[...] = True
            expected[:40] = True

        def in_place():
            st.logical_not(mask, out=mask)
            np.logical_not(expected, out=expected)

        def kernel():
            source = 'extern "C" __global__ void f(bool* m, int n) { if (threadIdx.x == 0) m[n] = !m[n]; }'
            st.RawKernel(source, "f")(1, 32, (mask, np.int32(77)))
            expected[77] = not expected[77]

        for write in (element, part, in_place, kernel, element, in_place):
            with self.subTest(write=write.__name__):
                self.same(x[mask], host[expected])
                write()
                self.same(x[mask], host[expected])
                self.same(st.nonzero(mask)[0], np.nonzero(expected)[0])

    def test_an_index_array_alone_needs_no_view(self):
        host = np.arange(60.0).reshape(12, 5)
        places = np.array([[3, -1], [0, 11]])
        x, index = (st.asarray(host) + 0).block_until_ready(), (st.asarray(places) + 0).block_until_ready()
        with Sent(self.session) as sent:
            self.same(x[index], host[places])
            x[index] = st.asarray(np.arange(5.0))
            host[places] = np.arange(5.0)
            self.same(x, host)
        self.assertNotIn("view", sent.kinds)
        for wrong in ([12], [-13]):
            with self.assertRaises(IndexError):
                x[st.asarray(wrong)]
            with self.assertRaises(IndexError):
                x[st.asarray(wrong)] = 1
        with self.assertRaises(st.ShapeMismatch):
            x[index] = st.zeros(4)
        self.same(x[st.asarray(np.zeros(0, int))], host[np.zeros(0, int)])
        frozen = st.broadcast_to(st.arange(3), (4, 3))
        with self.assertRaisesRegex(ValueError, "read-only"):
            frozen[index[0, :1]] = 1

    def test_consecutive_writes_share_a_message(self):
        x, index = st.zeros(2000), (st.asarray(np.arange(1000)) + 0).block_until_ready()
        values = [(st.asarray(np.arange(1000.0)) + i).block_until_ready() for i in range(20)]
        x.block_until_ready()
        with unittest.mock.patch.object(_session_sending, "_HOLD_SECONDS", 10), \
                unittest.mock.patch.object(_session_sending, "_HOLD_LONG_SECONDS", 10), Sent(self.session) as sent:
            before = x + 1
            for one in values:
                x[index] = one
                x[1000:] = one
            self.assertLessEqual(sent.num_messages, 2)
            self.same(before[-3:], np.ones(3))
            self.same(x, np.tile(np.arange(1000.0) + 19, 2))
        self.assertEqual(sent.kinds.count("scatter"), 20)

    def test_a_held_write_is_sent_when_nothing_follows(self):
        x, y = st.zeros(2000), st.zeros(2000)
        index = (st.asarray(np.arange(1000)) + 0).block_until_ready()
        with Sent(self.session) as sent:
            for array in (x, y):
                array[index] = 1
            deadline = time.monotonic() + 30
            while sent.kinds.count("scatter") < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
        self.assertEqual(sent.kinds.count("scatter"), 2)

    def test_unreferenced_intermediates_are_fused(self):
        x = st.asarray(np.arange(5.0))
        with Sent(self.session) as sent:
            result = (x + 1) * 2 - x
            self.same(result, (np.arange(5.0) + 1) * 2 - np.arange(5.0))
        self.assertEqual(sent.kinds, ["expression"])  # the elements travel within it

    def test_number_returns_with_the_command_that_computes_it(self):
        x = (st.asarray(np.arange(5.0)) + 0).block_until_ready()
        with Sent(self.session) as sent:
            total = st.sum(x)
            self.assertEqual(float(total), 10)
            self.assertEqual(float(total), 10)  # the host knows it
            self.assertEqual(float(st.max(x) * 2), 8)
            self.assertTrue(total == 10)
        returned = [
            command.operation.outputs[0].inline_result for command in sent.commands if command.HasField("operation")
        ]
        # The last one contains the known number.
        self.assertEqual(sent.kinds, ["reduction", "reduction", "ufunc", "ufunc"])
        self.assertEqual(returned, [True, False, True, True])
        self.assertFalse(any(command.HasField("fetch") for command in sent.commands))
        # It is still an ordinary array: the service gets it when needed.
        self.same(x / total, np.arange(5.0) / 10)
        self.assertEqual(total.shape, ())
        total += 1
        self.assertEqual(float(total), 11)
        self.assertEqual(total.to_numpy().dtype, np.float64)
        # A view's number has no separate command, and an array keeps its device.
        self.assertEqual(float(x[3]), 3)
        first, second = st.asarray(7), st.asarray(2)
        self.assertEqual([int(one) for one in divmod(first + 0, second)], [3, 1])

    def test_small_host_arrays_travel_in_the_command_that_reads_them(self):
        host = np.arange(1000, dtype=np.float32)
        for make in (
            lambda: st.asarray(host) + st.asarray(host),
            lambda: st.asarray(host) * 2 + st.cos(st.asarray(host)),
        ):
            with Sent(self.session) as sent:
                values = make().to_numpy()
            self.assertEqual((sent.num_messages, len(sent.kinds)), (1, 1))
            self.assertFalse(any(command.HasField("fetch") for command in sent.commands))
        np.testing.assert_allclose(values, host * 2 + np.cos(host), rtol=1e-6)

    def test_an_array_used_often_is_uploaded_once(self):
        host = np.arange(100.0)
        x = st.asarray(host)
        with Sent(self.session) as sent:
            for i in range(10):
                np.testing.assert_array_equal((x + i).to_numpy(), host + i)
        self.assertEqual(sent.kinds.count("copy"), 1)
        self.assertGreater(x._node.handle, 0)

    def test_a_small_result_is_used_again(self):
        x = st.arange(100.0) * 2
        expected = np.arange(100.0) * 2
        for _ in range(5):
            np.testing.assert_array_equal(x.to_numpy(), expected)
            self.same(x + 1, expected + 1)
        x += 1
        self.same(x, expected + 1)
        view = x[10:20]
        view[...] = 0
        expected = expected + 1
        expected[10:20] = 0
        self.same(x, expected)

    def test_a_result_that_others_read_keeps_its_handle(self):
        x = st.arange(100.0) + 1
        y = x * 2
        with Sent(self.session) as sent:
            np.testing.assert_array_equal(x.to_numpy(), np.arange(100.0) + 1)
            np.testing.assert_array_equal(y.to_numpy(), (np.arange(100.0) + 1) * 2)
        self.assertEqual(sent.kinds.count("copy"), 0)

    def test_threads_read_one_value_at_once(self):
        host = np.arange(500.0)
        for _ in range(20):
            x = st.asarray(host) * 3
            y = x + 1
            start, failures = threading.Barrier(4), []

            def read(array, expected):
                try:
                    start.wait()
                    np.testing.assert_array_equal(array.to_numpy(), expected)
                except BaseException as error:  # noqa: B036, reported below
                    failures.append(error)

            threads = [threading.Thread(target=read, args=one) for one in ((x, host * 3), (y, host * 3 + 1)) * 2]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])

    def test_a_number_that_could_not_be_computed_is_tried_again(self):
        x = st.asarray(np.arange(5.0)) + 0
        index = st.asarray(np.array([7])) + 0
        wrong = st.sum(st.take(x, index))  # wrong number
        for _ in range(2):
            with self.assertRaises(IndexError) as raised:
                float(wrong)
            self.assertIn(f":{line_of('wrong number')}", raised.exception.origin)
        with self.assertRaises(IndexError):
            self.same(x + wrong, x)

    def test_referenced_value_is_computed_once(self):
        x = st.asarray(np.arange(5.0)) + 0
        np.asarray(x)
        with Sent(self.session) as sent:
            held = st.exp(x)
            first, second = held + 1, held + 2
            np.asarray(first)
            np.asarray(second)
        self.assertEqual(sent.kinds, ["ufunc", "ufunc", "ufunc"])
        self.same(held, np.exp(np.arange(5.0)), rtol=1e-14)

    def test_unread_values_are_never_sent(self):
        with Sent(self.session) as sent:
            st.exp(st.ones(100))
            kept = st.ones(3) + 1
            np.asarray(kept)
        self.assertEqual(sent.kinds, ["creation", "ufunc"])

    def test_a_long_chain_costs_few_commands(self):
        x = st.zeros(10)
        with Sent(self.session) as sent:
            for i in range(1000):
                x = x + i
            self.same(x, np.full(10, 499500.0))
        self.assertLess(len(sent.kinds), 40)

    def test_more_arrays_than_a_kernel_may_read(self):
        def bush(arrays, where):
            result = arrays[0]
            for one, other in zip(arrays[1::2], arrays[2::2]):
                result = where(result > one, result * 0.5 + other, one - result)
            return result

        rng = np.random.default_rng(3)
        for count in (63, 64, 65, 300):
            for dtype in (np.float64, np.float16):
                hosts = [rng.normal(size=1000).astype(dtype) for _ in range(count)]
                arrays = [st.asarray(one) for one in hosts]
                with Sent(self.session) as sent:
                    self.same(functools.reduce(operator.add, arrays), functools.reduce(operator.add, hosts))
                    self.same(tree(arrays), tree(hosts))
                self.assertLess(sum(kind in ("expression", "ufunc") for kind in sent.kinds), 4 + count // 16)
                self.same(bush(arrays, st.where), bush(hosts, np.where))

    def test_a_value_used_often_is_not_repeated_without_end(self):
        x = st.full(4, 1.0)
        with Sent(self.session) as sent:
            for _ in range(40):
                x = x * 0.5 + x * 0.5
            self.same(x, np.ones(4))
        self.assertLess(sum(len(c.operation.expression.text) for c in sent.commands), 20_000)

    def test_handles_are_released(self):
        before = len(self.session.list_arrays())
        for i in range(50):
            np.asarray(st.ones(1000) * i)
        gc.collect()
        np.asarray(st.ones(2) + 1)
        self.session.synchronize()
        self.assertLess(len(self.session.list_arrays()), before + 5)

    def test_small_values_are_cached(self):
        x = st.arange(10.0) * 2
        np.asarray(x)
        with Sent(self.session) as sent:
            self.assertEqual([float(x[i]) for i in range(10)], [2.0 * i for i in range(10)])
            self.assertEqual(x[::-1].tolist(), (np.arange(10.0) * 2)[::-1].tolist())
            self.assertEqual(st.asarray([1, 2, 3]).tolist(), [1, 2, 3])
        self.assertEqual(sent.num_messages, 0)

    def test_errors_name_the_line_that_recorded_the_operation(self):
        x = st.zeros(10, dtype=st.float32)
        far = st.ones(3)
        wrong = far.to_device("cuda:5")  # this line
        later = wrong * 2 + 1
        with self.assertRaises(st.NotFound) as raised:
            later.to_numpy()
        line = line_of("this line")
        self.assertEqual(raised.exception.origin, f"{os.path.abspath(__file__)}:{line}")
        self.assertIn(f"lazy_test.py:{line}", str(raised.exception))
        # The same mistake on another line reports that line, whichever array is read first.
        again = far.to_device("cuda:5")[1:]  # that line
        with self.assertRaises(st.NotFound) as raised:
            (again + x[0]).to_numpy()
        self.assertEqual(raised.exception.origin, f"{os.path.abspath(__file__)}:{line_of('that line')}")
        # Other arrays are unaffected, and a second read reports the same error.
        self.same(x + 1, np.ones(10, np.float32))
        with self.assertRaises(st.NotFound):
            wrong.to_numpy()

    def test_recording_many_without_reading(self):
        kept = [st.zeros(3) + i for i in range(5000)]
        self.same(kept[4999], np.full(3, 4999.0))
        self.same(kept[0], np.zeros(3))

    def test_a_value_recorded_while_another_thread_sends(self):
        """A value that a thread records between two steps of another's `_settle` is sent by the next one."""
        x = (st.asarray(np.arange(3.0)) + 0).block_until_ready()
        weak = weakref.ref

        def settle_first(node):
            self.session._settle()
            return weak(node)

        with unittest.mock.patch.object(_session_sending.weakref, "ref", settle_first):
            y = x + 1
        self.session._settle()
        self.assertGreater(y._node.handle, 0)
        # While the sweep looks through what is recorded, as well.
        kept = [x + i for i in range(10)]

        class Recorded(list):
            def __getitem__(self, key):
                taken = super().__getitem__(key)
                if type(key) is slice:
                    kept.append(x + 100)  # as of another thread
                return taken

        with unittest.mock.patch.object(self.session, "_recorded", Recorded(self.session._recorded)):
            self.session._sweep()
            self.assertEqual(len(kept), 11)
            self.assertEqual(sum(one() is not None for one in self.session._recorded), 11)
            self.session._settle()
        self.assertTrue(all(one._node.handle for one in kept[:11]))

    def test_threads_record_while_others_write(self):
        """Each write comes after what its thread recorded before it."""
        wrong = []

        def work(seed):
            x = st.zeros(4)
            for i in range(150):
                before = x + 1
                x[:] = i + seed
                if float(before[0]) != (i - 1 + seed if i else 0) + 1:
                    wrong.append((seed, i))

        threads = [threading.Thread(target=work, args=(1000 * k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_released_handles_precede_new_arrays(self):
        """A loop that replaces an array needs memory for two only."""
        x = st.zeros(10)
        x.block_until_ready()
        with Sent(self.session) as sent:
            for i in range(3):
                x = st.cumulative_sum(x + i)
                x.block_until_ready()
        num_in_front = 0
        for end, size in zip(itertools.accumulate(sent.sizes), sent.sizes):
            kinds = [command.WhichOneof("kind") for command in sent.commands[end - size:end]]
            if "release" in kinds and "operation" in kinds:
                self.assertEqual(kinds[0], "release")
                num_in_front += 1
        self.assertGreaterEqual(num_in_front, 1)

    def test_weight_and_inline_uses_are_counted_separately(self):
        """The number of inline uses of a host value does not count in the weight of its readers."""
        x = st.asarray(np.arange(5.0))
        for i in range(2):
            (x + i).to_numpy()
        self.assertEqual((x._node.weight, x._node.num_inline), (1, 2))

    def test_parts_are_computed_in_their_places(self):
        x = (st.asarray(np.arange(6.0).reshape(2, 3)) + 0).block_until_ready()
        host = np.arange(6.0).reshape(2, 3)
        with Sent(self.session) as sent:
            joined = st.concat([x * 2, x + 1, x])
            self.same(joined, np.concatenate([host * 2, host + 1, host]))
        self.assertEqual(sent.kinds, ["creation", "view", "ufunc", "view", "ufunc", "view", "copy"])
        held = x * 3
        with Sent(self.session) as sent:
            twice = x - 1
            joined = st.stack([held, twice, twice])
            self.same(joined, np.stack([host * 3, host - 1, host - 1]))
        self.assertEqual(sent.kinds.count("ufunc"), 2)
        self.assertEqual(sent.kinds.count("copy"), 3)
        # Values of another type are converted.
        self.same(st.concat([x * 2, st.asarray(np.arange(3)).reshape(1, 3) + 1]),
                  np.concatenate([host * 2, np.arange(3).reshape(1, 3) + 1]))

    def test_a_part_that_cannot_be_sent_leaves_nothing(self):
        x = (st.asarray(np.arange(6.0)) + 0).block_until_ready()
        before = len(self.session.list_arrays())
        with unittest.mock.patch.object(_flush.Flush, "_elementwise", side_effect=RuntimeError("no command")):
            joined = st.concat([x * 2, x + 1])
            for _ in range(3):
                with self.assertRaises(RuntimeError):
                    joined.to_numpy()
        self.same(joined, np.concatenate([np.arange(6.0) * 2, np.arange(6.0) + 1]))
        del joined
        gc.collect()
        self.session.synchronize()
        self.assertLessEqual(len(self.session.list_arrays()), before)

    def test_numbers_that_belong_together_are_read_together(self):
        x = (st.asarray(np.arange(20.0)) + 0).block_until_ready()
        with Sent(self.session) as sent:
            counts, edges = st.histogram(x, bins=4)
            self.assertEqual(sent.num_messages, 1)
            number = st.bincount(st.asarray(np.arange(20)) % 5)
            self.assertEqual(sent.num_messages, 2)
        self.same(counts, np.histogram(np.arange(20.0), bins=4)[0])
        self.same(edges, np.histogram(np.arange(20.0), bins=4)[1])
        self.same(number, np.bincount(np.arange(20) % 5))

    def test_synchronize(self):
        x = st.ones(3) + 1
        with Sent(self.session) as sent:
            self.session.synchronize()
        self.assertIn("ufunc", sent.kinds)
        self.same(x, np.full(3, 2.0))

    # --- operations that are sent before a read ---

    @contextlib.contextmanager
    def long_from(self, num_bytes):
        """Operations that move `num_bytes` are long; each travels alone, also right after another one."""
        with (
            unittest.mock.patch.object(_graph, "LONG_BYTES", num_bytes),
            unittest.mock.patch.object(_session_sending, "_HOLD_SECONDS", 0),
        ):
            yield

    def matrix(self, n):
        host = np.random.default_rng(n).normal(size=(n, n))
        return (st.asarray(host) + 0).block_until_ready(), host

    def test_a_long_operation_is_sent_as_it_is_recorded(self):
        x, host = self.matrix(32)
        with self.long_from(8192), Sent(self.session) as sent:
            product = x @ x
            self.assertEqual(sent.kinds, ["matmul"])
            total = st.sum(x, axis=0)
            running = st.cumulative_sum(x, axis=0)
            q, _ = st.linalg.qr(x)
            st.fft.fft(x)
            self.assertEqual(sent.kinds, ["matmul", "reduction", "accumulation", "linalg", "fft"])
            self.assertEqual(sent.num_messages, 5)
        for ours, numpys in (
            (product, host @ host),
            (total, host.sum(0)),
            (running, host.cumsum(0)),
            (q, np.linalg.qr(host)[0]),
        ):
            self.same(ours, numpys, rtol=1e-10)

    def test_long_operation_runs_without_a_read(self):
        x, _ = self.matrix(32)
        with self.long_from(8192):
            product = x @ x
        name = f"{self.session.name}/arrays/{product._node.handle}"
        deadline = time.monotonic() + 60
        while not any(one["name"] == name for one in self.session.list_arrays()):
            self.assertLess(time.monotonic(), deadline, "the product is not at the daemon")

    def test_a_short_operation_waits_for_a_read(self):
        x, host = self.matrix(32)
        with Sent(self.session) as sent:
            total = st.sum(x @ x)
            self.assertEqual(sent.num_messages, 0)
            self.assertAlmostEqual(float(total), (host @ host).sum())
            self.assertEqual(sent.num_messages, 1)

    def test_long_products_are_judged_by_their_arithmetic(self):
        x, host = self.matrix(64)
        moved = 3 * x.nbytes
        with self.long_from(moved + 1), Sent(self.session) as sent:
            product = x @ x
            self.assertEqual(sent.num_messages, 0)
        with (
            self.long_from(moved + 1),
            unittest.mock.patch.object(_graph, "_BYTES_PER_PRODUCT", 1),
            Sent(self.session) as sent,
        ):
            other = x @ x
            st.linalg.inv(x)
            self.assertEqual(sent.kinds, ["matmul", "linalg"])
        self.same(product, host @ host, rtol=1e-10)
        self.same(other, host @ host, rtol=1e-10)

    def test_elementwise_functions_and_views_wait_however_long_they_are(self):
        x, host = self.matrix(32)
        with self.long_from(1), Sent(self.session) as sent:
            y = (st.exp(x) + x) * 2
            part = y.T[1:]
            self.assertEqual(sent.num_messages, 0)
            # The sum's command computes its elements; values that only y needs are separate.
            total = st.sum(st.cos(x) * x + 1, axis=0)
            self.assertEqual(sent.num_messages, 0)  # the argument is held as yet
            part_of_total = total[0].to_numpy()
            self.assertEqual(sent.kinds[:2], ["reduction", "view"])
            self.assertEqual(sent.num_messages, 1)
        self.assertEqual(part_of_total, total.to_numpy()[0])
        self.same(part, ((np.exp(host) + host) * 2).T[1:], rtol=1e-12)
        self.same(total, (np.cos(host) * host + 1).sum(0), rtol=1e-12)

    def test_referenced_fusible_value_is_not_materialised(self):
        x, host = self.matrix(32)

        def squares(x):
            centred = x - 1
            total = st.sum(centred * 2)  # centred is held as yet
            return total

        with self.long_from(1024), Sent(self.session) as sent:
            total = squares(x)
            self.assertEqual(sent.num_messages, 0)
            self.assertAlmostEqual(float(total), ((host - 1) * 2).sum())
            self.assertEqual(sent.kinds, ["reduction"])

    def test_reductions_compute_elements_that_nothing_else_reads(self):
        x, host = self.matrix(96)  # too large for loops on the host (decision 0043)
        y = (x[0] + 0).block_until_ready()
        for reduce in (st.sum, st.prod, st.min, st.max, st.mean, st.any, st.all, st.argmin, st.argmax, st.norm,
                       st.count_nonzero):
            for axis in (None, 0, 1):
                with Sent(self.session) as sent:
                    computed = reduce((x - y) * 0.5, axis=axis).to_numpy()
                self.assertEqual(sent.kinds, ["reduction"], reduce.__name__)
                elements = (x - y) * 0.5
                with Sent(self.session) as sent:
                    apart = reduce(elements, axis=axis).to_numpy()
                self.assertEqual(sent.kinds, ["expression", "reduction"])  # `elements` is an array that may be read
                self.assertEqual(computed.tobytes(), apart.tobytes(), f"{reduce.__name__} {axis}")
                self.same(elements, (host - host[0]) * 0.5, rtol=1e-12)

    def test_a_spread_is_one_reduction(self):
        x, host = self.matrix(32)
        with Sent(self.session) as sent:
            self.same(st.var(x, axis=0), host.var(0), rtol=1e-12)
            self.same(st.std(x, axis=1, ddof=1), host.std(1, ddof=1), rtol=1e-12)
        self.assertEqual(sent.kinds, ["reduction", "reduction"])

    def test_shared_elements_are_an_array(self):
        x, host = self.matrix(32)
        with Sent(self.session) as sent:
            exponents = st.exp(x - 1)
            shares = exponents / st.sum(exponents, axis=1, keepdims=True)
            self.same(shares, np.exp(host - 1) / np.exp(host - 1).sum(1, keepdims=True), rtol=1e-12)
        self.assertEqual(sent.kinds, ["expression", "reduction", "ufunc"])
        with Sent(self.session) as sent:
            def of_both(exponents):
                return st.sum(exponents) + st.max(exponents)

            total = of_both(st.exp(x - 1))
            self.assertAlmostEqual(float(total), np.exp(host - 1).sum() + np.exp(host - 1).max())
        self.assertEqual(sent.kinds, ["expression", "reduction", "reduction", "ufunc"])

    def test_a_reduction_of_more_arrays_than_a_kernel_may_read(self):
        hosts = [np.full(20, i, np.float64) for i in range(80)]
        arrays = [(st.asarray(one) + 0).block_until_ready() for one in hosts]
        with Sent(self.session) as sent:
            self.assertEqual(float(st.sum(tree(arrays))), np.sum(hosts))
        self.assertEqual(sent.kinds[-1], "reduction")
        self.assertGreater(len(sent.kinds), 1)

    def test_errors_of_computed_elements_name_the_line(self):
        bad = st.ones(3).to_device("cuda:5")  # no such device
        total = st.sum(bad * 2 + 1)
        with self.assertRaisesRegex(st.NotFound, f"lazy_test.py:{line_of('no such device')}"):
            float(total)

    def test_shared_inputs_are_visited_once(self):
        # A walk along every path from a result to its inputs would take 2**48 steps.
        x, host = self.matrix(4)
        power = (x / np.abs(np.linalg.eigvals(host)).max()) + 0
        for _ in range(48):
            power = power @ power
        wide = st.asarray(np.ones((4, 64)))
        np.asarray(wide)
        with self.long_from(1024):
            power @ wide

    def test_few_elements_of_a_long_array_are_short(self):
        table, host = self.matrix(64)
        where = st.asarray(np.array([5, 3]))
        with self.long_from(8192), Sent(self.session) as sent:
            rows = st.take(table, where, axis=0)
            self.assertEqual(sent.num_messages, 0)
            every = st.take(table, np.arange(64)[::-1], axis=0)
            self.assertEqual(sent.num_messages, 1)
        self.same(rows, host[[5, 3]])
        self.same(every, host[::-1])

    def test_sent_operation_reads_values_before_a_later_write(self):
        x, host = self.matrix(32)
        with self.long_from(8192):
            before = x @ x
            x[0] = 7.0
            after = x @ x
        changed = host.copy()
        changed[0] = 7
        self.same(before, host @ host, rtol=1e-10)
        self.same(after, changed @ changed, rtol=1e-10)

    def test_errors_of_sent_operations_are_raised_by_reads(self):
        x, _ = self.matrix(32)
        with self.long_from(1):
            wrong = x.to_device("cuda:5")  # sent line
            later = wrong @ x
        for one in (later, wrong):
            with self.assertRaises(st.NotFound) as raised:
                one.to_numpy()
            self.assertEqual(raised.exception.origin, f"{os.path.abspath(__file__)}:{line_of('sent line')}")

    def test_read_after_close_raises_cancelled(self):
        with st.connect(self.daemon.address, timeout=120, local=client_case.LOCAL) as session:
            x = st.asarray(np.ones((32, 32)))
        self.assertTrue(session.closed)
        with self.long_from(1):
            product = x @ x
        with self.assertRaises(st.Cancelled):
            product.to_numpy()

    def test_failure_to_build_a_command_is_raised_by_each_result(self):
        x, _ = self.matrix(32)

        def build(flush, operands, handles, origin):
            raise ValueError("there is no such command")

        with self.long_from(1):
            nodes = _graph.record_several(self.session, [((2,), x.dtype)] * 2, build, (x._node,))
        for node in (*nodes, *nodes):
            with self.assertRaisesRegex(ValueError, "no such command"):
                self.session._read(node)

    def test_nothing_is_sent_while_a_function_is_traced(self):
        x, host = self.matrix(32)
        with self.long_from(1), Sent(self.session) as sent:
            traced = st.jit(lambda x: (x @ x) + st.sum(x))
            result = traced(x)
            # The replay is one operation, and long.
            self.assertEqual(sent.kinds, ["program_call"])
        self.same(result, host @ host + host.sum(), rtol=1e-10)


if __name__ == "__main__":
    client_case.main()
