"""PTX as CUDA.jl generates it: arrays by value, as a struct with a pointer, after the state that newer
versions pass to every kernel.

    python ptx_julia.py

The text has the interface that CUDA.jl 4 and later give to

    function row_scale(out, x, factor)          # x is a matrix: one row of it a block
        i = threadIdx().x
        if i <= size(x, 1)
            @inbounds out[i, blockIdx().x] = factor * x[i, blockIdx().x]
        end
        return
    end
"""

import numpy as np

import stride as st
from stride import abi

# The state: 16 bytes. A matrix: data, bytes, two extents (the first axis is contiguous), elements.
PTX = """
.version 7.0
.target sm_70
.address_size 64

.visible .entry row_scale(
    .param .align 8 .b8 state[16],
    .param .align 8 .b8 out[40],
    .param .align 8 .b8 x[40],
    .param .f32 factor)
{
    .reg .pred %outside;
    .reg .f32 %f<3>;
    .reg .b32 %r<2>;
    .reg .b64 %d<10>;

    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    cvt.u64.u32 %d0, %r0;
    cvt.u64.u32 %d1, %r1;
    ld.param.u64 %d2, [x+16];
    setp.ge.s64 %outside, %d0, %d2;
    @%outside bra DONE;

    mad.lo.s64 %d3, %d1, %d2, %d0;
    shl.b64 %d3, %d3, 2;
    ld.param.u64 %d4, [x];
    cvta.to.global.u64 %d4, %d4;
    add.s64 %d5, %d4, %d3;
    ld.param.u64 %d6, [out];
    cvta.to.global.u64 %d6, %d6;
    add.s64 %d7, %d6, %d3;
    ld.param.f32 %f0, [factor];
    ld.global.f32 %f1, [%d5];
    mul.rn.f32 %f2, %f0, %f1;
    st.global.f32 [%d7], %f2;
DONE:
    ret;
}
"""

with st.connect() as session:
    kernel = st.RawKernel(PTX, "row_scale", ptx=True)
    host = np.arange(60, dtype=np.float32).reshape(6, 10)  # to Julia a 10x6 matrix
    x, out = st.asarray(host), st.zeros((6, 10), dtype=st.float32)
    try:
        kernel((6,), (32,), [abi.julia_state(), abi.julia_array(out), abi.julia_array(x), np.float32(3)])
        np.testing.assert_array_equal(np.asarray(out), 3 * host)
        print("CUDA.jl's kernel: right")
    except st.Unimplemented as error:
        print("refused, as PTX needs a CUDA device:", error)
