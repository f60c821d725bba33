"""PTX as OpenAI Triton generates it: grid x 32 * num_warps threads, and hidden pointers to scratch memory
after the kernel's own arguments.

    python ptx_triton.py

If Triton is installed it compiles `add` for the device of this machine; otherwise the text below, with the
same interface, is used."""

import numpy as np

import stride as st
from stride import abi

BLOCK = 256
NUM_WARPS = 4

# Two elements per thread. The last two parameters are scratch memory for the kernel and the profiler (Triton
# 3.4 and later).
PTX = """
.version 7.0
.target sm_70
.address_size 64

.visible .entry add(
    .param .u64 .ptr .global .align 1 add_param_0,
    .param .u64 .ptr .global .align 1 add_param_1,
    .param .u64 .ptr .global .align 1 add_param_2,
    .param .u32 add_param_3,
    .param .u64 .ptr .global .align 1 add_param_4,
    .param .u64 .ptr .global .align 1 add_param_5
)
.reqntid 128, 1, 1
{
    .reg .pred %p<2>;
    .reg .f32 %f<3>;
    .reg .b32 %r<6>;
    .reg .b64 %d<8>;

    ld.param.u64 %d0, [add_param_0];
    ld.param.u64 %d1, [add_param_1];
    ld.param.u64 %d2, [add_param_2];
    ld.param.u32 %r0, [add_param_3];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    shl.b32 %r1, %r1, 8;
    shl.b32 %r2, %r2, 1;
    add.s32 %r3, %r1, %r2;
    add.s32 %r4, %r3, 1;
    setp.lt.s32 %p0, %r3, %r0;
    setp.lt.s32 %p1, %r4, %r0;
    mul.wide.s32 %d3, %r3, 4;
    add.s64 %d4, %d0, %d3;
    add.s64 %d5, %d1, %d3;
    add.s64 %d6, %d2, %d3;
    @%p0 ld.global.f32 %f0, [%d4];
    @%p0 ld.global.f32 %f1, [%d5];
    @%p0 add.f32 %f2, %f0, %f1;
    @%p0 st.global.f32 [%d6], %f2;
    @%p1 ld.global.f32 %f0, [%d4+4];
    @%p1 ld.global.f32 %f1, [%d5+4];
    @%p1 add.f32 %f2, %f0, %f1;
    @%p1 st.global.f32 [%d6+4], %f2;
    ret;
}
"""


def made_by_triton():
    """PTX, the kernel's name, warps and shared memory, by Triton; None if Triton is not available."""
    try:
        import triton
        import triton.language as tl
        from triton.backends.compiler import GPUTarget

        # In a separate namespace, because Triton reads the names that a kernel uses from its module.
        globals().update(tl=tl)

        @triton.jit
        def add(x, y, out, n, block: tl.constexpr):
            at = tl.program_id(0) * block + tl.arange(0, block)
            inside = at < n
            tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)

        signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "block": "constexpr"}
        source = triton.compiler.ASTSource(fn=add, signature=signature, constexprs={"block": BLOCK})
        made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": NUM_WARPS})
        return made.asm["ptx"], made.metadata.name, made.metadata.num_warps, made.metadata.shared
    except Exception as why:  # noqa: BLE001  (not installed, or another interface)
        print(f"Triton makes no PTX here ({type(why).__name__}); using the stored text")
        return None


with st.connect() as session:
    ptx, name, num_warps, shared = made_by_triton() or (PTX, "add", NUM_WARPS, 0)
    kernel = st.RawKernel(ptx, name, ptx=True)
    n = 1001
    x, y, out = st.arange(n, dtype=st.float32), st.ones(n, dtype=st.float32), st.zeros(n, dtype=st.float32)
    try:
        arguments = abi.triton_arguments(ptx, name, [x, y, out, np.int32(n)])
        kernel((-(-n // BLOCK),), (32 * num_warps,), arguments, shared_memory_bytes=shared)
        np.testing.assert_array_equal(np.asarray(out), np.arange(n, dtype=np.float32) + 1)
        print("Triton's kernel: right")
    except st.Unimplemented as error:
        print("refused, as PTX needs a CUDA device:", error)
