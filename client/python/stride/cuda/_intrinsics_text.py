"""Docstrings of the names that only kernels give a meaning, made of one row for each, without those of libdevice."""

import inspect
from typing import Dict, Tuple

from stride.cuda._libdevice_text import _LIBDEVICE, _described_libdevice, _libdevice_row, _text

# By name: parameters, a summary, what it gives, the statements of an example, and the elements of `out` after it.
INTRINSICS: Dict[str, Tuple[str, str, str, str, str]] = {
    "grid": (
        "ndim",
        "The place of the thread in the whole grid.",
        "An int64, or for two or three axes a tuple of them.",
        "out[cuda.grid(1)] = cuda.grid(1)",
        "[0, 1, 2, 3]",
    ),
    "gridsize": (
        "ndim",
        "The number of threads of the whole grid.",
        "An int64, or for two or three axes a tuple of them.",
        "out[cuda.grid(1)] = cuda.gridsize(1)",
        "[32, 32, 32, 32]",
    ),
    "syncthreads": (
        "",
        "A barrier for the threads of a block; writes to shared and global memory before it are seen after it.",
        "None.",
        "cuda.syncthreads()",
        "[0, 0, 0, 0]",
    ),
    "syncthreads_count": (
        "predicate",
        "A barrier for the threads of a block, which counts for how many of them a condition is true.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.syncthreads_count(cuda.grid(1) < 3)",
        "[3, 3, 3, 3]",
    ),
    "syncthreads_and": (
        "predicate",
        "A barrier for the threads of a block, which finds whether a condition is true for all of them.",
        "An int32, 0 or not.",
        "out[cuda.grid(1)] = cuda.syncthreads_and(cuda.grid(1) < 3) != 0",
        "[0, 0, 0, 0]",
    ),
    "syncthreads_or": (
        "predicate",
        "A barrier for the threads of a block, which finds whether a condition is true for any of them.",
        "An int32, 0 or not.",
        "out[cuda.grid(1)] = cuda.syncthreads_or(cuda.grid(1) < 3) != 0",
        "[1, 1, 1, 1]",
    ),
    "syncwarp": ("mask=4294967295", "A barrier for threads of a warp.", "None.", "cuda.syncwarp()", "[0, 0, 0, 0]"),
    "threadfence": (
        "",
        "Orders the thread's writes to memory, for all threads of the device.",
        "None.",
        "cuda.threadfence()",
        "[0, 0, 0, 0]",
    ),
    "threadfence_block": (
        "",
        "Orders the thread's writes to memory, for the threads of its block.",
        "None.",
        "cuda.threadfence_block()",
        "[0, 0, 0, 0]",
    ),
    "threadfence_system": (
        "",
        "Orders the thread's writes to memory, for all threads of the device and for the host.",
        "None.",
        "cuda.threadfence_system()",
        "[0, 0, 0, 0]",
    ),
    "laneid": (
        "",
        "The place of the thread in its warp, from 0 to 31; a value, which is not called.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.laneid",
        "[0, 1, 2, 3]",
    ),
    "warpsize": (
        "",
        "The number of threads of a warp; a value, which is not called.",
        "32.",
        "out[cuda.grid(1)] = cuda.warpsize",
        "[32, 32, 32, 32]",
    ),
    "shfl_sync": (
        "mask, value, src_lane",
        "A value that another thread of the warp has.",
        "A number of the value's type.",
        "out[cuda.grid(1)] = cuda.shfl_sync(0xFFFFFFFF, cuda.laneid, 3)",
        "[3, 3, 3, 3]",
    ),
    "shfl_up_sync": (
        "mask, value, delta",
        "A value that the thread `delta` places before in the warp has.",
        "A number of the value's type.",
        "out[cuda.grid(1)] = cuda.shfl_up_sync(0xFFFFFFFF, cuda.laneid, 1)",
        "[0, 0, 1, 2]",
    ),
    "shfl_down_sync": (
        "mask, value, delta",
        "A value that the thread `delta` places later in the warp has.",
        "A number of the value's type.",
        "out[cuda.grid(1)] = cuda.shfl_down_sync(0xFFFFFFFF, cuda.laneid, 1)",
        "[1, 2, 3, 4]",
    ),
    "shfl_xor_sync": (
        "mask, value, lane_mask",
        "A value that the thread of the warp has whose place differs in the bits of `lane_mask`.",
        "A number of the value's type.",
        "out[cuda.grid(1)] = cuda.shfl_xor_sync(0xFFFFFFFF, cuda.laneid, 1)",
        "[1, 0, 3, 2]",
    ),
    "all_sync": (
        "mask, predicate",
        "Whether a condition is true for all threads of a warp that `mask` names.",
        "A bool.",
        "out[cuda.grid(1)] = cuda.all_sync(0xFFFFFFFF, cuda.laneid < 3)",
        "[0, 0, 0, 0]",
    ),
    "any_sync": (
        "mask, predicate",
        "Whether a condition is true for any thread of a warp that `mask` names.",
        "A bool.",
        "out[cuda.grid(1)] = cuda.any_sync(0xFFFFFFFF, cuda.laneid < 3)",
        "[1, 1, 1, 1]",
    ),
    "eq_sync": (
        "mask, predicate",
        "Whether a condition is the same for all threads of a warp that `mask` names.",
        "A bool.",
        "out[cuda.grid(1)] = cuda.eq_sync(0xFFFFFFFF, cuda.laneid < 3)",
        "[0, 0, 0, 0]",
    ),
    "ballot_sync": (
        "mask, predicate",
        "The threads of a warp for which a condition is true.",
        "A uint32 with a bit for each thread.",
        "out[cuda.grid(1)] = cuda.ballot_sync(0xFFFFFFFF, cuda.laneid < 3)",
        "[7, 7, 7, 7]",
    ),
    "match_any_sync": (
        "mask, value",
        "The threads of a warp that have the same value as this one.",
        "A uint32 with a bit for each thread.",
        "out[cuda.grid(1)] = cuda.match_any_sync(0xFFFFFFFF, cuda.laneid // 16)",
        "[65535, 65535, 65535, 65535]",
    ),
    "match_all_sync": (
        "mask, value",
        "The threads of a warp where all have the same value, else none.",
        "A tuple of a uint32 with a bit for each thread, and a bool.",
        "out[cuda.grid(1)] = cuda.match_all_sync(0xFFFFFFFF, 7)[1]",
        "[1, 1, 1, 1]",
    ),
    "activemask": (
        "",
        "The threads of the warp that run at this place.",
        "A uint32 with a bit for each thread.",
        "out[cuda.grid(1)] = cuda.activemask() != 0",
        "[1, 1, 1, 1]",
    ),
    "lanemask_lt": (
        "",
        "The threads of the warp before this one.",
        "A uint32 with a bit for each thread.",
        "out[cuda.grid(1)] = cuda.lanemask_lt()",
        "[0, 1, 3, 7]",
    ),
    "popc": (
        "x",
        "The number of bits of an integer that are one.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.popc(cuda.grid(1))",
        "[0, 1, 1, 2]",
    ),
    "brev": (
        "x",
        "An integer with its bits in the opposite order.",
        "An integer of the same type.",
        "out[cuda.grid(1)] = cuda.brev(np.uint32(cuda.grid(1))) >> 28",
        "[0, 8, 4, 12]",
    ),
    "clz": (
        "x",
        "The number of an integer's leading bits that are zero.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.clz(np.int32(cuda.grid(1)))",
        "[32, 31, 30, 30]",
    ),
    "ffs": (
        "x",
        "The place of the lowest bit of an integer that is one, counted from 1; 0 for zero.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.ffs(np.int32(cuda.grid(1)))",
        "[0, 1, 2, 1]",
    ),
    "fma": (
        "a, b, c",
        "The sum a * b + c, rounded once.",
        "A floating-point number.",
        "out[cuda.grid(1)] = cuda.fma(2.0, float(cuda.grid(1)), 1.0)",
        "[1, 3, 5, 7]",
    ),
    "cbrt": (
        "a",
        "The real cube root.",
        "A floating-point number.",
        "out[cuda.grid(1)] = cuda.cbrt(27.0)",
        "[3, 3, 3, 3]",
    ),
    "selp": (
        "condition, a, b",
        "One of two values.",
        "`a` where the condition is true, else `b`.",
        "out[cuda.grid(1)] = cuda.selp(cuda.grid(1) < 1, 5, 6)",
        "[5, 6, 6, 6]",
    ),
    "nanosleep": ("ns", "Suspends the thread for about so long.", "None.", "cuda.nanosleep(1)", "[0, 0, 0, 0]"),
    "cg.this_grid": (
        "",
        "The group of all threads of the launch, whose `sync` is a barrier for them.",
        "A group with the method `sync`.",
        "cuda.cg.this_grid().sync()",
        "[0, 0, 0, 0]",
    ),
    "cg.this_grid().sync": (
        "",
        "A barrier for all threads of the launch, which becomes a cooperative one.",
        "None.",
        "cuda.cg.this_grid().sync()",
        "[0, 0, 0, 0]",
    ),
    "shared_memory": (
        "dtype, size",
        "An array that the threads of a block share; CuPy's name of `shared.array`.",
        "An array of one axis.",
        "part = jit.shared_memory(np.int64, 32)\npart[cuda.grid(1)] = cuda.grid(1)\ncuda.syncthreads()\n"
        "out[cuda.grid(1)] = part[31 - cuda.grid(1)]",
        "[31, 30, 29, 28]",
    ),
    "shared.array": (
        "shape, dtype",
        "An array that the threads of a block share.",
        "An array.",
        "part = cuda.shared.array(32, np.int64)\npart[cuda.grid(1)] = cuda.grid(1)\ncuda.syncthreads()\n"
        "out[cuda.grid(1)] = part[31 - cuda.grid(1)]",
        "[31, 30, 29, 28]",
    ),
    "local.array": (
        "shape, dtype",
        "An array that one thread has for itself.",
        "An array.",
        "part = cuda.local.array(2, np.int64)\npart[0] = cuda.grid(1)\nout[cuda.grid(1)] = part[0]",
        "[0, 1, 2, 3]",
    ),
    "const.array_like": (
        "ary",
        "A constant array with the elements of one on the host, which are part of the kernel.",
        "An array for reading.",
        "table = cuda.const.array_like(TABLE)\nout[cuda.grid(1)] = table[cuda.grid(1) % 2]",
        "[5, 6, 5, 6]",
    ),
    "atomic.add": (
        "ary, idx, val",
        "Adds a number to an element, so that no other thread comes between.",
        "The element before.",
        "cuda.atomic.add(out, 0, 1)",
        "[32, 0, 0, 0]",
    ),
    "atomic.sub": (
        "ary, idx, val",
        "Subtracts a number from an element, so that no other thread comes between.",
        "The element before.",
        "cuda.atomic.sub(out, 0, 1)",
        "[-32, 0, 0, 0]",
    ),
    "atomic.min": (
        "ary, idx, val",
        "Writes the lesser of an element and a number, so that no other thread comes between.",
        "The element before.",
        "cuda.atomic.min(out, 0, -cuda.grid(1))",
        "[-31, 0, 0, 0]",
    ),
    "atomic.max": (
        "ary, idx, val",
        "Writes the greater of an element and a number, so that no other thread comes between.",
        "The element before.",
        "cuda.atomic.max(out, 0, cuda.grid(1))",
        "[31, 0, 0, 0]",
    ),
    "atomic.nanmin": (
        "ary, idx, val",
        "Writes the lesser of an element and a number, and the number where the element is NaN.",
        "The element before.",
        "cuda.atomic.nanmin(out, 0, -cuda.grid(1))",
        "[-31, 0, 0, 0]",
    ),
    "atomic.nanmax": (
        "ary, idx, val",
        "Writes the greater of an element and a number, and the number where the element is NaN.",
        "The element before.",
        "cuda.atomic.nanmax(out, 0, cuda.grid(1))",
        "[31, 0, 0, 0]",
    ),
    "atomic.and_": (
        "ary, idx, val",
        "Writes the bits that are one in an integer element and in a number.",
        "The element before.",
        "cuda.atomic.and_(out, 0, 3)",
        "[0, 0, 0, 0]",
    ),
    "atomic.or_": (
        "ary, idx, val",
        "Writes the bits that are one in an integer element or in a number.",
        "The element before.",
        "cuda.atomic.or_(out, 0, 1 << (cuda.grid(1) % 4))",
        "[15, 0, 0, 0]",
    ),
    "atomic.xor": (
        "ary, idx, val",
        "Writes the bits that are one in exactly one of an integer element and a number.",
        "The element before.",
        "cuda.atomic.xor(out, 0, 1)",
        "[0, 0, 0, 0]",
    ),
    "atomic.inc": (
        "ary, idx, val",
        "Writes an element of uint32 plus one, or zero where the element has reached `val`.",
        "The element before.",
        "cuda.atomic.inc(out, 0, 100)",
        "[32, 0, 0, 0]",
    ),
    "atomic.dec": (
        "ary, idx, val",
        "Writes an element of uint32 less one, or `val` where the element is zero or above `val`.",
        "The element before.",
        "cuda.atomic.dec(out, 0, 100)",
        "[69, 0, 0, 0]",
    ),
    "atomic.exch": (
        "ary, idx, val",
        "Writes a number into an element.",
        "The element before.",
        "cuda.atomic.exch(out, 0, 7)",
        "[7, 0, 0, 0]",
    ),
    "atomic.cas": (
        "ary, idx, old, val",
        "Writes a number into an element that equals `old`.",
        "The element before.",
        "cuda.atomic.cas(out, 0, 0, 7)",
        "[7, 0, 0, 0]",
    ),
    "atomic.compare_and_swap": (
        "ary, old, val",
        "Writes a number into the first element where that equals `old`.",
        "The element before.",
        "cuda.atomic.compare_and_swap(out, 0, 7)",
        "[7, 0, 0, 0]",
    ),
    "threadIdx.x": (
        "",
        "The place of the thread in its block along the first axis.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.threadIdx.x",
        "[0, 1, 2, 3]",
    ),
    "threadIdx.y": (
        "",
        "The place of the thread in its block along the second axis.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.threadIdx.y",
        "[0, 0, 0, 0]",
    ),
    "threadIdx.z": (
        "",
        "The place of the thread in its block along the third axis.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.threadIdx.z",
        "[0, 0, 0, 0]",
    ),
    "blockIdx.x": (
        "",
        "The place of the block in the grid along the first axis.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.blockIdx.x",
        "[0, 0, 0, 0]",
    ),
    "blockIdx.y": (
        "",
        "The place of the block in the grid along the second axis.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.blockIdx.y",
        "[0, 0, 0, 0]",
    ),
    "blockIdx.z": (
        "",
        "The place of the block in the grid along the third axis.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.blockIdx.z",
        "[0, 0, 0, 0]",
    ),
    "blockDim.x": (
        "",
        "The number of threads of a block along the first axis.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.blockDim.x",
        "[32, 32, 32, 32]",
    ),
    "blockDim.y": (
        "",
        "The number of threads of a block along the second axis.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.blockDim.y",
        "[1, 1, 1, 1]",
    ),
    "blockDim.z": (
        "",
        "The number of threads of a block along the third axis.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.blockDim.z",
        "[1, 1, 1, 1]",
    ),
    "gridDim.x": (
        "",
        "The number of blocks along the first axis.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.gridDim.x",
        "[1, 1, 1, 1]",
    ),
    "gridDim.y": (
        "",
        "The number of blocks along the second axis.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.gridDim.y",
        "[1, 1, 1, 1]",
    ),
    "gridDim.z": (
        "",
        "The number of blocks along the third axis.",
        "An int32.",
        "out[cuda.grid(1)] = cuda.gridDim.z",
        "[1, 1, 1, 1]",
    ),
}

GROUPS: Dict[str, str] = {
    "threadIdx": "The place of the thread in its block: `x`, `y` and `z`.",
    "blockIdx": "The place of the block in the grid: `x`, `y` and `z`.",
    "blockDim": "The numbers of threads of a block along the axes: `x`, `y` and `z`.",
    "gridDim": "The numbers of blocks along the axes: `x`, `y` and `z`.",
    "shared": "Memory that the threads of a block share: `array`.",
    "local": "Memory that one thread has for itself: `array`.",
    "const": "Constant memory: `array_like`.",
    "atomic": "Changes of elements between which no other thread comes: `add`, `max`, `cas` and so on.",
    "cg.this_grid()": "The group of all threads of the launch: `sync`.",
}


def described(name: str) -> str:
    """The docstring of an intrinsic function."""
    if name.startswith(_LIBDEVICE):
        return _described_libdevice(name[len(_LIBDEVICE):])
    parameters, summary, gives, statements, elements = INTRINSICS[name]
    body = statements.replace("\n", "\n        ...     ")
    module = "\n        >>> from stride.cupyx import jit" if "jit." in body else ""
    table = "\n        >>> TABLE = np.array([5, 6])" if "TABLE" in body else ""
    dtype = "uint32" if name in ("atomic.inc", "atomic.dec") else "int64"
    return _text(
        summary,
        parameters,
        gives,
        f""">>> from stride import cuda{module}{table}
        >>> @cuda.jit
        ... def kernel(out):
        ...     {body}
        ...
        >>> out = st.zeros(32, st.{dtype})
        >>> kernel[1, 32](out)
        >>> out[:4].tolist()
        {elements}""",
    )


def signature(name: str) -> inspect.Signature:
    """An intrinsic function's parameters."""
    row = _libdevice_row(name[len(_LIBDEVICE):]) if name.startswith(_LIBDEVICE) else INTRINSICS[name]

    def parameter(text: str) -> inspect.Parameter:
        name, _, default = text.strip().partition("=")
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Parameter(name, kind, default=int(default) if default else inspect.Parameter.empty)

    return inspect.Signature([parameter(one) for one in row[0].split(",") if one])
