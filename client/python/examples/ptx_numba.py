"""PTX as Numba makes it: a Python kernel compiled on the client, without a GPU there, and run by the service.

    python ptx_numba.py

If Numba with its CUDA target is installed it compiles `scaled_sum`; otherwise the text below, with the same
interface, is used."""

import numpy as np

import stride as st
from stride import abi

# Each array is seven parameters: Numba's own two, elements, bytes of one, data, extent, distance in bytes.
PTX = """
.version 7.0
.target sm_70
.address_size 64

.visible .entry scaled_sum(
    .param .u64 x_meminfo, .param .u64 x_parent, .param .u64 x_nitems, .param .u64 x_itemsize,
    .param .u64 x_data, .param .u64 x_shape0, .param .u64 x_stride0,
    .param .u64 y_meminfo, .param .u64 y_parent, .param .u64 y_nitems, .param .u64 y_itemsize,
    .param .u64 y_data, .param .u64 y_shape0, .param .u64 y_stride0,
    .param .f32 factor)
{
    .reg .pred %outside;
    .reg .f32 %f<4>;
    .reg .b32 %r<4>;
    .reg .b64 %d<12>;

    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.s32 %r3, %r0, %r1, %r2;
    cvt.s64.s32 %d0, %r3;
    ld.param.u64 %d1, [y_shape0];
    setp.ge.s64 %outside, %d0, %d1;
    @%outside bra DONE;

    ld.param.u64 %d2, [x_data];
    ld.param.u64 %d3, [x_stride0];
    cvta.to.global.u64 %d2, %d2;
    mad.lo.s64 %d4, %d0, %d3, %d2;
    ld.param.u64 %d5, [y_data];
    ld.param.u64 %d6, [y_stride0];
    cvta.to.global.u64 %d5, %d5;
    mad.lo.s64 %d7, %d0, %d6, %d5;
    ld.param.f32 %f0, [factor];
    ld.global.f32 %f1, [%d4];
    ld.global.f32 %f2, [%d7];
    fma.rn.f32 %f3, %f0, %f1, %f2;
    st.global.f32 [%d7], %f3;
DONE:
    ret;
}
"""


def scaled_sum(x, y, factor):
    i = cuda.grid(1)  # noqa: F821  (Numba's, where it is installed)
    if i < y.size:
        y[i] = factor * x[i] + y[i]


def made_by_numba():
    """PTX by Numba, or None if Numba is not available."""
    try:
        from numba import cuda, float32

        globals()["cuda"] = cuda
        return cuda.compile_ptx(scaled_sum, (float32[::1], float32[::1], float32), device=False, cc=(7, 0))[0]
    except Exception as why:  # noqa: BLE001  (not installed, or without NVVM)
        print(f"Numba makes no PTX here ({type(why).__name__}); using the stored text")
        return None


with st.connect() as session:
    ptx = made_by_numba() or PTX
    kernel = st.RawKernel(ptx, abi.entries(ptx)[0], ptx=True)
    x, y = st.arange(1000, dtype=st.float32), st.ones(1000, dtype=st.float32)
    try:
        kernel((8,), (128,), [*abi.numba_array(x), *abi.numba_array(y), np.float32(2.5)])
        np.testing.assert_array_equal(np.asarray(y), 2.5 * np.arange(1000, dtype=np.float32) + 1)
        print("Numba's kernel: right")
    except st.Unimplemented as error:
        print("refused, as PTX needs a CUDA device:", error)
