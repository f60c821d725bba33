"""Reads from asyncio."""

import asyncio

import numpy as np

import client_case
import stride as st
from stride import aio


class AsyncioTest(client_case.ClientCase):
    def test_reads_at_once(self):
        async def run():
            arrays = [st.ones(100) * i for i in range(20)]
            return await asyncio.gather(*map(aio.fetch, arrays))

        for i, values in enumerate(asyncio.run(run())):
            np.testing.assert_array_equal(values, np.full(100, float(i)))

    def test_cancelled_read_returns_at_once(self):
        slow = st.RawKernel(
            'extern "C" __global__ void f(float* x) { for (volatile int i = 0; i < 1 << 26; ++i) ; x[0] = 1; }', "f"
        )
        out = st.zeros(1, dtype=st.float32)
        slow(1, 1, (out,))

        async def run():
            reading = asyncio.create_task(aio.fetch(out))
            await asyncio.sleep(0)
            reading.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await reading

        asyncio.run(run())
        self.assertEqual(len(self.session._stream._watched), 1)  # no answer yet
        self.assertEqual(float(out[0]), 1)

    def test_large(self):
        host = np.arange(1_000_000.0)
        np.testing.assert_array_equal(asyncio.run(aio.fetch(st.asarray(host) + 1)), host + 1)

    def test_errors(self):
        with self.assertRaises(st.NotFound) as raised:
            asyncio.run(aio.fetch(st.ones(3).to_device("cuda:7")))
        self.assertIn("aio_test.py", raised.exception.origin)

    def test_session(self):
        async def run():
            async with await aio.connect(self.daemon.address, local=client_case.LOCAL) as session:
                total = st.sum(st.ones(10))
                self.assertIs(total.session, session)
                rounds = [samples async for samples in aio.watch_devices(session, 0.05, max_samples=2)]
                self.assertEqual(len(rounds), 2)
                await aio.synchronize(session)
                return float(await aio.fetch(total)), session

        total, session = asyncio.run(run())
        self.assertEqual(total, 10)
        self.assertTrue(session.closed)

    def test_job(self):
        st.save("waited-for", st.arange(4))
        self.assertEqual(
            asyncio.run(aio.wait(st.submit(lambda x: x + 1, "waited-for", results=["waited"]), 60)).state, "SUCCEEDED"
        )
        np.testing.assert_array_equal(st.load("waited"), [1, 2, 3, 4])
        failing = st.submit(lambda x: st.take(x, st.asarray([9]) + 0), "waited-for", results=["never"])
        with self.assertRaises(IndexError):
            asyncio.run(aio.wait(failing))
        st.delete_array("waited-for")
        st.delete_array("waited")


if __name__ == "__main__":
    client_case.main()
