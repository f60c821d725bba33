"""Arrays spread over several devices, compared with NumPy."""

import itertools
import os
import pathlib
import signal
import time
import unittest

import grpc
import numpy as np

import client_case
import stride as st
from stride._daemon import PrivateDaemon
from stride.v1 import (
    array_pb2, array_service_pb2, array_service_pb2_grpc, compute_service_pb2, compute_service_pb2_grpc,
    device_service_pb2, device_service_pb2_grpc, operation_pb2 as pb, session_service_pb2,
    session_service_pb2_grpc,
)

_FLAGS = {"cpu": ["--no-cuda", "--cpu-devices=4x1"], "cuda": []}
_INEXACT = {"e": 2e-2, "f": 1e-5, "d": 1e-12, "F": 1e-5, "D": 1e-12}


class ShardingTest(client_case.ClientCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = PrivateDaemon(client_case.strided(), _FLAGS[client_case.DEVICE_KIND])
        cls.addClassCleanup(cls.daemon.stop)
        cls.session = st.connect(cls.daemon.address, timeout=120)
        cls.session.__enter__()
        cls.addClassCleanup(cls.session.close)
        cls.devices = [device.name.replace("devices/", "") for device in cls.session.devices()
                       if device.kind == client_case.DEVICE_KIND]
        if len(cls.devices) < 2:
            # ctest and ci/gpu search for this text.
            print(f"no device of kind {client_case.DEVICE_KIND} here beside the first")
            raise unittest.SkipTest("one device has nothing to spread over")

    def spread(self, host, axis=0, count=None, replicated=False):
        devices = self.devices[:count]
        return st.asarray(host, sharding=st.Sharding(axis=axis, devices=devices, replicated=replicated))

    def close(self, ours, numpys):
        kind = np.asarray(numpys).dtype.char
        tolerance = {"rtol": _INEXACT[kind]} if kind in _INEXACT else {}
        self.same(ours, numpys, **tolerance)

    def split_of(self, array):
        sharding = array.sharding
        return None if sharding is None else "replicated" if sharding.replicated else sharding.axis

    def fails(self, error, *texts):
        case = self

        class Fails:
            def __enter__(self):
                return self

            def __exit__(self, kind, value, _):
                case.assertIsNotNone(kind, f"it did not fail with {error}")
                case.assertTrue(issubclass(kind, error), repr(value))
                for text in texts:
                    case.assertIn(text, str(value))
                return True

        return Fails()

    # --- bytes in and out ---

    def test_reductions_of_expressions(self):
        """Inputs include numbers and whole arrays."""
        host = np.random.default_rng(5).normal(size=(23, 31))
        row = host[3].copy()
        for split in (0, 1):
            x = st.asarray(host, sharding=st.Sharding(axis=split, devices=self.devices))
            for axis in (None, 0, 1):
                for result, wanted in (
                        (st.sum((x - 0.5) ** 2, axis=axis), ((host - 0.5) ** 2).sum(axis)),
                        (st.mean(abs(x) * 2, axis=axis), (abs(host) * 2).mean(axis)),
                        (st.max(st.asarray(row) * x, axis=axis), (row * host).max(axis)),
                        (st.norm(x + 1, axis=axis), np.sqrt(((host + 1) ** 2).sum(axis))),
                        (st.argmin(x * 3, axis=axis), host.argmin(axis))):
                    np.testing.assert_allclose(result.to_numpy(), wanted, rtol=1e-12)

    def test_put_and_fetch(self):
        for shape in ((10,), (7, 5), (2, 3, 9), (3, 0), (1,), (2, 1)):
            host = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
            for axis in range(-len(shape), len(shape)):
                x = self.spread(host, axis)
                self.same(x, host)
                self.assertEqual(x.sharding, st.Sharding(axis % len(shape), tuple(self.devices)))
            self.same(self.spread(host, replicated=True), host)

    def test_large_by_several_streams(self):
        host = np.random.default_rng(1).integers(0, 255, (3000, 5000)).astype(np.int32)  # 60 MB: several ranges
        for axis in (0, 1):
            np.testing.assert_array_equal(self.spread(host, axis).to_numpy(), host)
        np.testing.assert_array_equal(self.spread(host, replicated=True).to_numpy(), host)

    def put(self, array_id, host, begin, end, sharding=None, overwrite=False):
        spec = array_pb2.ArraySpec(data_type=st._dtypes.NUMBERS[host.dtype], shape=host.shape)
        header = array_service_pb2.PutArrayRequest.Header(
            parent=self.session.name, array_id=array_id, spec=spec, overwrite=overwrite,
            sharding=None if sharding is None else sharding.to_proto(), range=array_pb2.ByteRange(begin=begin, end=end))
        messages = [array_service_pb2.PutArrayRequest(header=header)]
        data = host.tobytes()[begin:end]
        messages += [array_service_pb2.PutArrayRequest(data=data[i:i + 100]) for i in range(0, len(data), 100)]
        return self.session._arrays.PutArray(iter(messages)).array

    def fetch(self, name, begin, end):
        request = array_service_pb2.FetchArrayRequest(name=name, range=array_pb2.ByteRange(begin=begin, end=end))
        return b"".join(reply.data for reply in self.session._arrays.FetchArray(request))

    def test_ranges(self):
        host = np.arange(17 * 13, dtype=np.int16).reshape(17, 13)
        size = host.nbytes
        for axis, handle in ((0, 1 << 40), (1, (1 << 40) + 1)):
            sharding = st.Sharding(axis, self.devices)
            name = f"{self.session.name}/arrays/{handle}"
            cuts = [0, 7, 100, 101, 300, size]
            ranges = list(zip(cuts, cuts[1:]))
            for begin, end in reversed(ranges[1:]):
                array = self.put(str(handle), host, begin, end, sharding)
                self.assertEqual(array.state, array.STATE_PENDING)
            array = self.put(str(handle), host, 0, 4, sharding)
            if axis == 0:
                self.assertEqual([(r.begin, r.end) for r in array.received], [(0, 4), (7, size)])
            else:
                self.assertEqual(array.received[0].begin, 0)
                self.assertLessEqual(array.received[0].end, 7)
            array = self.put(str(handle), host, 4, 7)  # the first range's sharding holds
            self.assertEqual((array.state, list(array.shape), array.size_bytes), (array.STATE_READY, [17, 13], size))
            self.assertEqual(len(array.devices), len(self.devices))
            for begin, end in [(0, size), (3, 200), (size, size), (size - 1, size), (50, 51)]:
                self.assertEqual(self.fetch(name, begin, end), host.tobytes()[begin:end])
            # Overwrites existing arrays.
            other = host + 1000
            self.put(str(handle), other, 20, 333, overwrite=True)
            expected = host.tobytes()[:20] + other.tobytes()[20:333] + host.tobytes()[333:]
            self.assertEqual(self.fetch(name, 0, size), expected)

    def test_wrong_ranges_and_shardings(self):
        host = np.arange(10, dtype=np.int32)

        def refused(code, sharding, handle=str((1 << 40) + 99), **header):
            with self.assertRaises(grpc.RpcError) as caught:
                self.put(handle, host, 0, 40, sharding, **header)
            self.assertEqual(caught.exception.code(), code, caught.exception)
            return caught.exception.details()

        invalid = grpc.StatusCode.INVALID_ARGUMENT
        refused(invalid, st.Sharding(1, self.devices))
        refused(invalid, st.Sharding(0, [self.devices[0], self.devices[0]]))
        refused(grpc.StatusCode.NOT_FOUND, st.Sharding(0, ["nothing:7"]))
        handle = str((1 << 40) + 5)
        self.put(handle, host, 0, 20, st.Sharding(0, self.devices))
        refused(invalid, st.Sharding(0, self.devices[:1]), handle)

    def test_small_arrays_travel_in_commands(self):
        host = np.arange(6, dtype=np.float32)
        x = self.spread(host)
        self.assertEqual((x + 1).tolist(), (host + 1).tolist())  # read inline

    # --- elementwise ---

    def test_elementwise(self):
        random = np.random.default_rng(3)
        a, b = random.standard_normal((11, 6)), random.standard_normal((11, 6))
        row, column = random.standard_normal(6), random.standard_normal((11, 1))
        for axis in (0, 1):
            x, y = self.spread(a, axis), self.spread(b, axis)
            for ours, expected in (
                (x + y, a + b),
                (x * 2, a * 2),
                (np.float32(3) - x, np.float32(3) - a),
                (x + row, a + row),
                (column * x, column * a),
                (st.cos(x) ** 2 + st.sin(y) ** 2, np.cos(a) ** 2 + np.sin(b) ** 2),
                (x > y, a > b),
                (st.where(x > 0, x, row), np.where(a > 0, a, row)),
                (x + b, a + b),
            ):
                self.close(ours, expected)
                self.assertEqual(self.split_of(ours), axis)

    def test_more_devices_than_elements(self):
        host = np.arange(2, dtype=np.int64)
        x = self.spread(host)
        self.same(x * x + 1, host * host + 1)
        self.same(st.sum(x), host.sum())
        self.same(st.min(x), host.min())
        self.same(st.argmax(x), np.argmax(host))
        self.close(st.mean(x), host.mean())

    def test_replicated(self):
        host = np.random.default_rng(4).standard_normal((8, 5)).astype(np.float32)
        x = self.spread(host, replicated=True)
        self.assertEqual(self.split_of(x + 1), "replicated")
        self.close(x + 1, host + 1)
        self.close(st.sum(x, axis=1), host.sum(axis=1))
        self.same(st.sort(x, axis=1), np.sort(host, axis=1))
        split = self.spread(host * 2, 0)
        self.close(x + split, host * 3)
        self.assertEqual(self.split_of(x + split), 0)

    def operation(self, handle, existing=False, sharding=None, **kind):
        operation = pb.Operation(**kind)
        output = operation.outputs.add(handle=handle, existing=existing)
        if sharding is not None:
            output.sharding.CopyFrom(sharding.to_proto())
        return operation

    def run_operation(self, nodes, operation):
        self.session._run_and_wait(nodes, lambda flush: operation)

    def handle_of(self, array):
        self.session._flush((array._node,))
        return array._node.handle

    def test_existing_outputs_and_masks(self):
        a, b = np.arange(9.0), np.arange(9.0) * 10
        mask = a % 2 == 0
        x, y, m = self.spread(a), self.spread(b), self.spread(mask)
        handles = [self.handle_of(one) for one in (x, y, m)]
        ufunc = pb.Ufunc(
            function="add",
            inputs=[pb.Operand(handle=handles[0]), pb.Operand(scalar=array_pb2.Scalar(float_value=100))],
            where=pb.Operand(handle=handles[2]),
        )
        self.run_operation((), self.operation(handles[1], existing=True, ufunc=ufunc))
        self.assertEqual(y.to_numpy().tolist(), np.add(a, 100, out=b.copy(), where=mask).tolist())
        # In place over its own input.
        ufunc = pb.Ufunc(function="multiply", inputs=[pb.Operand(handle=handles[0])] * 2)
        self.run_operation((), self.operation(handles[0], existing=True, ufunc=ufunc))
        self.assertEqual(x.to_numpy().tolist(), (a * a).tolist())
        # The output of a reduction is a whole array on one device.
        total = st.zeros((), dtype=st.float64)
        reduction = pb.Reduction(function=pb.Reduction.FUNCTION_SUM, input=pb.Operand(handle=handles[0]))
        self.run_operation((total._node,), self.operation(self.handle_of(total), existing=True, reduction=reduction))
        self.assertEqual(total.to_numpy(), (a * a).sum())

    def test_in_place_operators(self):
        host = np.arange(10.0)
        x = self.spread(host)
        x += 5
        x *= x
        self.same(x, (host + 5) ** 2)

    # --- reductions ---

    def test_reductions(self):
        random = np.random.default_rng(5)
        functions = (
            "sum", "prod", "min", "max", "mean", "any", "all", "argmin", "argmax", "count_nonzero", "var", "std")
        for dtype in (np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64, np.complex64):
            host = random.integers(0, 2 if dtype is np.bool_ else 4, (5, 3, 7)).astype(dtype)
            for split in (0, 1, 2) if dtype is np.float32 else (0, 2):
                x = self.spread(host, split)
                for name in functions:
                    if np.dtype(dtype).kind in "bc" and name in ("argmin", "argmax", "min", "max", "mean"):
                        continue
                    single = name.startswith("arg")
                    for axis in (None, 0, 1, 2) if single else (None, 0, 1, 2, (0, 2)):
                        for keepdims in (False, True) if axis == 1 else (False,):
                            with self.subTest(dtype=dtype, split=split, name=name, axis=axis, keepdims=keepdims):
                                numpys = getattr(np, name)(host, axis=axis, keepdims=keepdims)
                                if single:
                                    numpys = np.asarray(numpys, np.int64)
                                ours = getattr(st, name)(x, axis=axis, keepdims=keepdims)
                                self.close(ours, np.asarray(numpys))

    def test_over_one_device(self):
        host = np.random.default_rng(9).standard_normal((6, 5))
        x = self.spread(host, 1, count=1)
        for name in ("sum", "argmin", "mean"):
            for axis in (None, 0, 1):
                self.close(getattr(st, name)(x, axis=axis), np.asarray(getattr(np, name)(host, axis=axis)))
        self.close(x @ self.spread(host.T.copy(), 0, count=1), host @ host.T)
        self.assertIsNone(self.split_of(st.sum(x, axis=1)))
        self.assertEqual(self.split_of(st.sum(x, axis=0)), 0)

    def test_where_results_are(self):
        x = self.spread(np.ones((8, 6)), 1)
        self.assertEqual(self.split_of(st.sum(x, axis=0)), 0)
        self.assertEqual(self.split_of(st.sum(x, axis=0, keepdims=True)), 1)
        self.assertIsNone(self.split_of(st.sum(x, axis=1)))
        self.assertIsNone(self.split_of(st.sum(x)))

    def test_first_winner_and_nan(self):
        nan = np.nan
        for values in (
            [3, 1, 1, 5, 1, 9, 9, 0.5, 0.5], [1, nan, 3, nan, 0, 0, 2, 2, 2], [nan] * 9, [5] * 9,
            [1, 2, 3, 4, 5, 6, 7, 8, nan], [0.0, -0.0, 0.0, -0.0, 1, 1, 1, 1, 1],
        ):
            host = np.array(values)
            x = self.spread(host)
            for name in ("argmin", "argmax", "min", "max", "sum"):
                self.same(getattr(st, name)(x), np.asarray(getattr(np, name)(host)))
            # The C order of all elements, split along the last axis.
            square = host.reshape(3, 3)
            for split in (0, 1):
                y = self.spread(square, split)
                for name in ("argmin", "argmax"):
                    self.same(getattr(st, name)(y), np.asarray(getattr(np, name)(square)))

    def reduce(self, x, function, where=None, initial=None, axes=(), data_type=0):
        handle = self.session._next_id()
        reduction = pb.Reduction(
            function=function, input=pb.Operand(handle=self.handle_of(x)), axes=axes, data_type=data_type
        )
        if where is not None:
            reduction.where.handle = self.handle_of(where)
        if initial is not None:
            reduction.initial.int_value = initial
        self.run_operation((), self.operation(handle, reduction=reduction))
        request = array_service_pb2.GetArrayRequest(name=f"{self.session.name}/arrays/{handle}")
        array = self.session._arrays.GetArray(request).array
        data = self.fetch(array.name, 0, array.size_bytes)
        return np.frombuffer(data, st._dtypes.dtype_numbered(array.data_type)).reshape(tuple(array.shape))

    def test_initial_and_where(self):
        host = np.arange(1, 22, dtype=np.float64).reshape(7, 3)
        mask = (host % 4) < 2
        for split in (0, 1):
            x, m = self.spread(host, split), self.spread(mask, split)
            f = pb.Reduction
            self.assertEqual(self.reduce(x, f.FUNCTION_SUM, initial=100), host.sum() + 100)
            self.assertEqual(self.reduce(x, f.FUNCTION_MIN, initial=-3), -3)
            self.assertEqual(self.reduce(x, f.FUNCTION_SUM, where=m), host.sum(where=mask))
            self.assertEqual(self.reduce(x, f.FUNCTION_MAX, where=m, initial=2), host.max(where=mask, initial=2))
            np.testing.assert_allclose(self.reduce(x, f.FUNCTION_MEAN, where=m), host.mean(where=mask))
            np.testing.assert_allclose(
                self.reduce(x, f.FUNCTION_MEAN, where=m, axes=[0]), host.mean(where=mask, axis=0)
            )
            np.testing.assert_allclose(self.reduce(x, f.FUNCTION_NORM), np.linalg.norm(host))
            np.testing.assert_allclose(self.reduce(x, f.FUNCTION_NORM, axes=[split]), np.linalg.norm(host, axis=split))
            for correction in (0, 0.5):
                for axis in (None, 0, 1):
                    ours = st.var(x, axis=axis, where=m, ddof=correction).to_numpy()
                    np.testing.assert_allclose(ours, host.var(axis=axis, where=mask, ddof=correction))
            row = st.asarray(mask[0])
            np.testing.assert_allclose(self.reduce(x, f.FUNCTION_MEAN, where=row), host.mean(where=mask[0]))

    def test_variances_of_parts_that_differ(self):
        """The parts' means differ and are large; one part has no element that counts."""
        host = np.random.default_rng(3).normal(size=(24, 50)) + 1e6 * (1 + np.arange(24)[:, None] // 6)
        for dtype, rtol in ((np.float64, 1e-14), (np.float32, 1e-6), (np.complex128, 1e-14)):
            whole = host.astype(dtype)
            for split in (0, 1):
                for axis in (None, 0, 1):
                    ours = st.std(self.spread(whole, split), axis=axis).to_numpy()
                    expected = whole.astype(np.clongdouble if dtype is np.complex128 else np.longdouble).std(axis)
                    np.testing.assert_allclose(ours, expected.astype(ours.dtype), rtol=rtol)
        host[:7, ::2] = np.nan
        host[-7:, 1::2] = np.nan
        for split in (0, 1):
            for axis in (None, 0, 1):
                ours = st.nanvar(self.spread(host, split), axis=axis, ddof=1).to_numpy()
                np.testing.assert_allclose(ours, np.nanvar(host, axis=axis, ddof=1), rtol=1e-12)

    def test_sums_of_halves_do_not_overflow_on_the_way(self):
        host = np.full(4000, 60000, np.float16)
        host[2000:] = -60000
        self.same(st.sum(self.spread(host)), np.float16(0))

    def test_empty(self):
        x = self.spread(np.zeros((0, 3), np.float32))
        self.same(st.sum(x, axis=0), np.zeros(3, np.float32))
        self.same(st.sum(x), np.float32(0))
        with self.fails(st.StrideError, "empty"):
            self.reduce(x, pb.Reduction.FUNCTION_MIN, axes=[0])

    # --- products ---

    def test_matmul(self):
        random = np.random.default_rng(6)
        for dtype in (np.float32, np.float64, np.int32, np.complex64):
            a, b = ((random.standard_normal(s) * 5).astype(dtype) for s in ((9, 6), (6, 7)))
            v = (random.standard_normal(6) * 5).astype(dtype)
            rtol = (
                {"rtol": 2e-5, "atol": 1e-3}
                if dtype in (np.float32, np.complex64)
                else {"rtol": 1e-12} if dtype is np.float64 else {}
            )
            rows, columns, inner = self.spread(a, 0), self.spread(b, 1), (self.spread(a, 1), self.spread(b, 0))
            for ours, expected, split in (
                (rows @ st.asarray(b), a @ b, 0), (rows @ self.spread(b, replicated=True), a @ b, 0),
                (st.asarray(a) @ columns, a @ b, 1), (inner[0] @ inner[1], a @ b, None),
                (rows @ st.asarray(v), a @ v, 0), (inner[0] @ st.asarray(v), a @ v, None),
                (inner[0] @ self.spread(v), a @ v, None), (st.asarray(v) @ columns, v @ b, 0),
                (self.spread(v) @ inner[1], v @ b, None),
            ):
                self.same(ours, expected, **rtol)
                self.assertEqual(self.split_of(ours), split)
        batch = random.standard_normal((5, 4, 3))
        self.close(
            self.spread(batch, 0) @ st.asarray(batch.transpose(0, 2, 1).copy()), batch @ batch.transpose(0, 2, 1)
        )
        with self.fails(st.StrideError, "matmul.right", "Copy"):
            (self.spread(a, 0) @ self.spread(b, 1)).to_numpy()

    # --- from one spread to another ---

    def test_reshard(self):
        host = np.arange(9 * 10, dtype=np.float32).reshape(9, 10)
        forms = [
            None, st.Sharding(0, self.devices), st.Sharding(1, self.devices), st.Sharding(1, self.devices[:1]),
            st.Sharding(0, self.devices[::-1]), st.Sharding(0, self.devices[:2]),
            st.Sharding(replicated=True, devices=self.devices),
        ]
        for first, second in itertools.product(forms, forms):
            with self.subTest(first=first, second=second):
                x = st.asarray(host, sharding=first) if first is not None else st.asarray(host)
                y = x.to_sharding(second)
                self.same(y, host)
                self.assertEqual(
                    y.sharding, None if second is None else st.Sharding(second.axis, second.devices, second.replicated)
                )
                self.same(x, host)

    def test_reshard_large(self):
        host = np.random.default_rng(8).standard_normal((1000, 999)).astype(np.float32)
        x = st.asarray(host)
        rows = x.to_sharding(st.Sharding(0, self.devices))
        columns = rows.to_sharding(st.Sharding(1, self.devices))
        np.testing.assert_array_equal((columns + 1).to_numpy(), host + 1)
        np.testing.assert_array_equal(columns.to_sharding(None).to_numpy(), host)
        # A whole operand is split on its device.
        np.testing.assert_array_equal((rows + x).to_numpy(), host + host)
        np.testing.assert_array_equal((rows + st.asarray(host)).to_numpy(), host + host)

    def test_copy_into_and_out_of_views(self):
        host = np.arange(24, dtype=np.int64).reshape(6, 4)
        x = self.spread(host, 0)
        target = st.zeros((6, 8), dtype=st.int64)
        target[:, 2:6] = x
        expected = np.zeros((6, 8), np.int64)
        expected[:, 2:6] = host
        self.same(target, expected)

    def test_views(self):
        host = np.arange(60, dtype=np.float64).reshape(6, 10)
        x = self.spread(host, 0)
        self.same(x[:, 2:9:3], host[:, 2:9:3])
        self.same(x[:, 4] * 2, host[:, 4] * 2)
        self.same(x.T, host.T)
        cube = np.arange(120).reshape(4, 5, 6)
        y = self.spread(cube, 1)
        for ours, expected, split in ((y[2], cube[2], 0), (y[..., -1], cube[..., -1], 1), (y[2].T, cube[2].T, 1),
                                      (st.permute_dims(y, (2, 0, 1))[3], cube.transpose(2, 0, 1)[3], 1)):
            self.same(ours, expected)
            self.assertEqual(self.split_of(ours), split)
        self.assertEqual(self.split_of(x.T), 1)
        self.close(st.sum(x.T, axis=1), host.T.sum(axis=1))
        with self.fails(NotImplementedError, "view.input"):
            x[1:3].to_numpy()
        with self.fails(NotImplementedError, "reshape"):
            x.reshape(60).to_numpy()

    def test_creation(self):
        sharding = st.Sharding(0, self.devices)
        spec = array_pb2.ArraySpec(data_type=array_pb2.DATA_TYPE_FLOAT32, shape=[10, 3])
        range_ = pb.Creation.Range(start=array_pb2.Scalar(float_value=0.1), stop=array_pb2.Scalar(float_value=77),
                                   step=array_pb2.Scalar(float_value=0.3))
        random = pb.Creation.Random(spec=spec, key=7, normal=pb.Creation.Random.Normal())
        linear = pb.Creation.LinearSpace(
            start=array_pb2.Scalar(float_value=1), stop=array_pb2.Scalar(float_value=2), count=11
        )
        for kind in (
            {"range": range_},
            {"random": random},
            {"linear_space": linear},
            {"fill": pb.Creation.Fill(spec=spec)},
            {"fill": pb.Creation.Fill(spec=spec, value=array_pb2.Scalar(float_value=2.5))},
        ):
            names = []
            for one in (None, sharding):
                handle = self.session._next_id()
                self.run_operation((), self.operation(handle, sharding=one, creation=pb.Creation(**kind)))
                names.append(f"{self.session.name}/arrays/{handle}")
            size = self.session._arrays.GetArray(array_service_pb2.GetArrayRequest(name=names[1])).array.size_bytes
            whole, parts = (self.fetch(name, 0, size) for name in names)
            self.assertEqual(whole, parts)
        array = self.session._arrays.CreateArray(array_service_pb2.CreateArrayRequest(
            parent=self.session.name, array_id=str(1 << 41), spec=spec, sharding=sharding.to_proto())).array
        self.assertEqual(array.sharding.axis, 0)
        self.assertEqual(self.fetch(array.name, 0, 120), bytes(120))

    # --- refusals and failures ---

    def test_refused(self):
        x = self.spread(np.arange(12.0).reshape(4, 3))
        other = self.spread(np.arange(12.0).reshape(4, 3), 1)
        with self.fails(NotImplementedError, "sort", "Copy"):
            st.sort(x).to_numpy()
        with self.fails(NotImplementedError, "accumulation.input"):
            st.cumulative_sum(x, axis=1).to_numpy()
        with self.fails(st.StrideError, "ufunc.inputs[1]", "Copy"):
            (x + other).to_numpy()
        with self.fails(st.StrideError, "ufunc.inputs[1]"):
            (x + self.spread(np.arange(12.0).reshape(4, 3), 0, 1)).to_numpy()

    def test_into_existing_ones(self):
        x = self.spread(np.arange(8.0))
        handle = self.handle_of(x)
        # A number, by a copy.
        copy = pb.Copy(input=pb.Operand(scalar=array_pb2.Scalar(float_value=7)))
        self.run_operation((), self.operation(handle, existing=True, copy=copy))
        self.assertEqual(x.to_numpy().tolist(), [7.0] * 8)
        refused = (
            {
                "creation": pb.Creation(
                    fill=pb.Creation.Fill(spec=array_pb2.ArraySpec(data_type=array_pb2.DATA_TYPE_FLOAT64, shape=[8]))
                )
            },
            {"view": pb.View(input=pb.Operand(handle=self.handle_of(st.zeros(8))))},
            {"view": pb.View(input=pb.Operand(handle=handle))},
            {"matmul": pb.Matmul(left=pb.Operand(handle=handle), right=pb.Operand(handle=handle))},
            {"sort": pb.Sort(input=pb.Operand(handle=self.handle_of(st.zeros(8))))},
            {"reduction": pb.Reduction(function=pb.Reduction.FUNCTION_SUM, input=pb.Operand(handle=handle))},
        )
        for kind in refused:
            with self.subTest(kind=kind), self.assertRaises((st.StrideError, NotImplementedError)):
                self.run_operation((), self.operation(handle, existing=True, **kind))
        # A result is spread as its inputs are.
        ufunc = pb.Ufunc(function="negative", inputs=[pb.Operand(handle=handle)])
        with self.assertRaises(NotImplementedError):
            self.run_operation((), self.operation(self.session._next_id(), sharding=st.Sharding(0), ufunc=ufunc))
        kernel = pb.KernelLaunch(
            source="__global__ void k(double* x) {}",
            entry="k",
            arguments=[pb.KernelArgument(array=pb.Operand(handle=handle))],
        )
        with self.assertRaises(NotImplementedError):
            self.run_operation((), pb.Operation(kernel_launch=kernel))
        self.assertEqual(x.to_numpy().tolist(), [7.0] * 8)

    def test_first_error_of_a_part_is_the_wholes(self):
        x = self.spread(np.arange(10))
        wrong = x + st.take(st.asarray(np.arange(10)), st.asarray(np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 99])) + 0)
        later = st.sum(wrong * 2)
        for one in (wrong, later):
            with self.fails(st.StrideError, "99"):
                one.to_numpy()
        name = f"{self.session.name}/arrays/{wrong._node.handle}"
        array = self.session._arrays.GetArray(array_service_pb2.GetArrayRequest(name=name)).array
        self.assertEqual(array.state, array.STATE_FAILED)
        self.same(x, np.arange(10))

    def test_release_gives_the_memory_back(self):
        def bytes_now():
            return sum(sample.array_bytes for sample in next(iter(self.session.watch_devices(max_samples=1))))

        self.session.synchronize()
        before = bytes_now()
        x = self.spread(np.zeros(1 << 23, np.float32))
        self.assertGreater(bytes_now() - before, 31 << 20)
        del x
        deadline = time.monotonic() + 20
        # A release is sent with the next command, and blocks are freed at the next allocation.
        while bytes_now() - before > 1 << 20:
            self.assertLess(time.monotonic(), deadline)
            self.session.synchronize()

    def test_listed_as_one(self):
        x = self.spread(np.zeros((5, 5)))
        name = f"{self.session.name}/arrays/{self.handle_of(x)}"
        listed = [one for one in self.session.list_arrays() if one["name"] == name]
        self.assertEqual(listed[0]["shape"], (5, 5))
        self.session._arrays.DeleteArray(array_service_pb2.DeleteArrayRequest(name=name))
        with self.assertRaises(grpc.RpcError):
            self.fetch(name, 0, 8)

    def test_named(self):
        tenant = "tenants/default"
        spec = array_pb2.ArraySpec(data_type=array_pb2.DATA_TYPE_FLOAT64, shape=[6])
        header = array_service_pb2.PutArrayRequest.Header(parent=tenant, array_id="spread", spec=spec,
                                                          sharding=st.Sharding(0, self.devices).to_proto())
        host = np.arange(6.0)
        self.session._arrays.PutArray(iter([array_service_pb2.PutArrayRequest(header=header),
                                            array_service_pb2.PutArrayRequest(data=host.tobytes())]))
        self.same(st.load("spread") * 3, host * 3)
        self.session._arrays.DeleteArray(array_service_pb2.DeleteArrayRequest(name=f"{tenant}/arrays/spread"))

    def test_small_results_of_an_array_that_another_client_spread(self):
        """They return with the command that computes them, and are spread at their next use."""
        host = np.arange(6.0)
        spec = array_pb2.ArraySpec(data_type=array_pb2.DATA_TYPE_FLOAT64, shape=[6])
        header = array_service_pb2.PutArrayRequest.Header(
            parent="tenants/default", array_id="spread_elsewhere", spec=spec,
            sharding=st.Sharding(0, self.devices).to_proto()
        )
        self.session._arrays.PutArray(iter([array_service_pb2.PutArrayRequest(header=header),
                                            array_service_pb2.PutArrayRequest(data=host.tobytes())]))
        for described in (True, False):  # False: it was spread after this client's request
            with st.connect(self.daemon.address, timeout=120) as other:
                x = other.array("spread_elsewhere")
                self.assertTrue(other._has_sharded)
                other._has_sharded = described
                y = x + 1
                self.same(y, host + 1)
                self.assertTrue(other._has_sharded)
                self.assertEqual(self.split_of(y), 0)
                self.same(y * 2, (host + 1) * 2)
                self.assertEqual(float(st.sum(y)), (host + 1).sum())
        name = "tenants/default/arrays/spread_elsewhere"
        self.session._arrays.DeleteArray(array_service_pb2.DeleteArrayRequest(name=name))

    def test_large_arrays_travel_through_shared_memory(self):
        x = np.random.default_rng(3).random((1201, 1003))
        for axis in (0, 1):
            spread = self.spread(x, axis)
            self.assertEqual(self.split_of(spread), axis)
            np.testing.assert_array_equal(np.asarray(spread), x)
        np.testing.assert_array_equal(np.asarray(self.spread(x, replicated=True)), x)
        self.assertIsNotNone(self.session._shared._bounce)


class RestartTest(unittest.TestCase):
    """The daemon dies; a spread array, an upload of one and the result of an operation are there afterwards."""

    def setUp(self):
        self.daemon = PrivateDaemon(client_case.strided(), _FLAGS[client_case.DEVICE_KIND] + ["--supervise"])
        self.addCleanup(self.daemon.stop)
        self.channel = grpc.insecure_channel(self.daemon.address)
        self.addCleanup(self.channel.close)
        self.arrays = array_service_pb2_grpc.ArrayServiceStub(self.channel)
        self.compute = compute_service_pb2_grpc.ComputeServiceStub(self.channel)
        sessions = session_service_pb2_grpc.SessionServiceStub(self.channel)
        self.session = self.patiently(sessions.CreateSession, session_service_pb2.CreateSessionRequest()).session.name
        devices = self.patiently(
            device_service_pb2_grpc.DeviceServiceStub(self.channel).ListDevices, device_service_pb2.ListDevicesRequest()
        ).devices
        if sum(device.kind == client_case.DEVICE_KIND for device in devices) < 2:
            raise unittest.SkipTest("one device has nothing to spread over")

    @staticmethod
    def patiently(call, request):
        deadline = time.monotonic() + 60
        while True:
            try:
                return call(request() if callable(request) else request, timeout=30)
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def kill(self):
        """The process that serves: the child of the one that was started."""
        for entry in pathlib.Path("/proc").iterdir():
            try:
                status = (entry / "status").read_text() if entry.name.isdigit() else ""
                command = (entry / "cmdline").read_bytes() if status else b""
            except OSError:
                continue
            if (
                f"\nPPid:\t{self.daemon._process.pid}\n" in status
                and b"--serve" not in command
                and b"--compile" not in command
            ):
                os.kill(int(entry.name), signal.SIGKILL)
                return
        self.fail("no process that serves")

    def put(self, array_id, host, begin, end, sharding):
        header = array_service_pb2.PutArrayRequest.Header(
            parent=self.session, array_id=array_id, sharding=sharding, range=array_pb2.ByteRange(begin=begin, end=end),
            spec=array_pb2.ArraySpec(data_type=array_pb2.DATA_TYPE_FLOAT32, shape=host.shape))
        messages = lambda: iter([array_service_pb2.PutArrayRequest(header=header),  # noqa: E731
                                 array_service_pb2.PutArrayRequest(data=host.tobytes()[begin:end])])
        return self.patiently(self.arrays.PutArray, messages).array

    def fetch(self, array_id):
        request = array_service_pb2.FetchArrayRequest(name=f"{self.session}/arrays/{array_id}")
        replies = self.patiently(lambda *a, **k: list(self.arrays.FetchArray(*a, **k)), request)
        return b"".join(reply.data for reply in replies)

    def add(self, left, right, output):
        operation = pb.Operation(
            ufunc=pb.Ufunc(function="add", inputs=[pb.Operand(handle=left), pb.Operand(handle=right)])
        )
        operation.outputs.add(handle=output)
        self.patiently(self.compute.Run, compute_service_pb2.RunRequest(session=self.session, operation=operation))

    def test_arrays_are_whole_after_recovery(self):
        host = np.arange(3 << 18, dtype=np.float32)
        split = array_pb2.Sharding(axis=0)
        self.put("1", host, 0, host.nbytes, split)
        self.put("2", host, 0, host.nbytes, array_pb2.Sharding(replicated=True))
        self.add(1, 1, 3)
        half = host.nbytes // 2 // 4 * 4
        self.put("4", host, 0, half, split)
        self.kill()
        for array_id in "12":
            self.assertEqual(self.fetch(array_id), host.tobytes())
        self.assertEqual(self.fetch("3"), (host + host).tobytes())
        described = self.arrays.GetArray(array_service_pb2.GetArrayRequest(name=f"{self.session}/arrays/1")).array
        self.assertEqual(described.state, described.STATE_READY)
        self.assertGreaterEqual(len(described.sharding.devices), 2)
        # The upload resumes at its position, and the arrays are usable.
        array = self.put("4", host, half, host.nbytes, split)
        self.assertEqual(array.state, array.STATE_READY)
        self.add(1, 4, 5)
        self.assertEqual(self.fetch("5"), (host + host).tobytes())
        self.add(1, 2, 6)
        self.assertEqual(self.fetch("6"), (host + host).tobytes())
        self.kill()
        self.assertEqual(self.fetch("5"), (host + host).tobytes())


if __name__ == "__main__":
    client_case.main()
