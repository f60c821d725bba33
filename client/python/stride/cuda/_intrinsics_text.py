"""Docstrings of the names that only kernels give a meaning, made of one row for each."""

import inspect
from typing import Dict, Tuple

_PARAMETERS: Dict[str, str] = {
    "a": "a number.",
    "ary": "an array.",
    "b": "a number.",
    "c": "a number.",
    "condition": "a bool.",
    "delta": "how many places the other thread is away.",
    "dtype": "the element type.",
    "idx": "the element's index, or a tuple of one for each axis.",
    "lane_mask": "the bits in which the places differ.",
    "mask": "the threads that take part: a bit for each thread of the warp.",
    "ndim": "1, 2 or 3: the number of axes.",
    "ns": "nanoseconds.",
    "old": "the number that the element must be.",
    "predicate": "the thread's condition.",
    "shape": "an integer or a tuple of integers, known when the kernel is compiled.",
    "size": "the number of elements, known when the kernel is compiled.",
    "src_lane": "the place of the other thread.",
    "val": "a number.",
    "value": "the thread's number.",
    "x": "a number.",
    "y": "a number.",
    "z": "a number.",
}

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

# By name: parameters, a summary, and the arguments of an example.
LIBDEVICE: Dict[str, Tuple[str, str, str]] = {
    "acos": ("x", "The angle in radians whose cosine x is.", "0.5"),
    "acosh": ("x", "The inverse of the hyperbolic cosine.", "1.5"),
    "asin": ("x", "The angle in radians whose sine x is.", "0.5"),
    "asinh": ("x", "The inverse of the hyperbolic sine.", "0.5"),
    "atan": ("x", "The angle in radians whose tangent x is.", "0.5"),
    "atan2": ("y, x", "The angle in radians of the point (y, x).", "0.5, 2.0"),
    "atanh": ("x", "The inverse of the hyperbolic tangent.", "0.5"),
    "cbrt": ("x", "The real cube root.", "0.5"),
    "ceil": ("x", "The least whole number that is not below x.", "0.5"),
    "copysign": ("x, y", "The number x with the sign of y.", "0.5, 2.0"),
    "cos": ("x", "The cosine of an angle in radians.", "0.5"),
    "cosh": ("x", "The hyperbolic cosine.", "0.5"),
    "cospi": ("x", "The cosine of pi * x.", "0.5"),
    "erf": ("x", "The error function.", "0.5"),
    "erfc": ("x", "One less the error function.", "0.5"),
    "erfcinv": ("x", "The inverse of erfc.", "0.5"),
    "erfcx": ("x", "The function exp(x * x) * erfc(x).", "0.5"),
    "erfinv": ("x", "The inverse of the error function.", "0.5"),
    "exp": ("x", "The number e to the power of x.", "0.5"),
    "exp10": ("x", "Ten to the power of x.", "0.5"),
    "exp2": ("x", "Two to the power of x.", "0.5"),
    "expm1": ("x", "The number e to the power of x, less one.", "0.5"),
    "fabs": ("x", "The absolute value.", "0.5"),
    "fdim": ("x, y", "The difference x - y where it is positive, else 0.", "0.5, 2.0"),
    "fdivide": ("x, y", "The quotient x / y.", "0.5, 2.0"),
    "floor": ("x", "The greatest whole number that is not above x.", "0.5"),
    "fma": ("x, y, z", "The sum x * y + z, rounded once.", "0.5, 2.0, 1.0"),
    "fmax": ("x, y", "The greater of two numbers.", "0.5, 2.0"),
    "fmin": ("x, y", "The lesser of two numbers.", "0.5, 2.0"),
    "fmod": ("x, y", "The remainder of x / y, with the sign of x.", "0.5, 2.0"),
    "hypot": ("x, y", "The length of the vector (x, y).", "0.5, 2.0"),
    "j0": ("x", "The Bessel function of the first kind of order 0.", "0.5"),
    "j1": ("x", "The Bessel function of the first kind of order 1.", "0.5"),
    "lgamma": ("x", "The logarithm of the absolute value of the gamma function.", "0.5"),
    "log": ("x", "The natural logarithm.", "0.5"),
    "log10": ("x", "The logarithm to base ten.", "0.5"),
    "log1p": ("x", "The natural logarithm of 1 + x.", "0.5"),
    "log2": ("x", "The logarithm to base two.", "0.5"),
    "logb": ("x", "The exponent of x to base two.", "0.5"),
    "nearbyint": ("x", "The nearest whole number, the even one of two.", "0.5"),
    "nextafter": ("x, y", "The next number after x towards y.", "0.5, 2.0"),
    "normcdf": ("x", "The normal distribution's probability of a number below x.", "0.5"),
    "normcdfinv": ("x", "The inverse of normcdf.", "0.5"),
    "pow": ("x, y", "The number x to the power of y.", "0.5, 2.0"),
    "rcbrt": ("x", "One divided by the cube root.", "0.5"),
    "remainder": ("x, y", "The difference of x and the nearest multiple of y.", "0.5, 2.0"),
    "rhypot": ("x, y", "One divided by the length of the vector (x, y).", "0.5, 2.0"),
    "rint": ("x", "The nearest whole number, the even one of two.", "0.5"),
    "round": ("x", "The nearest whole number, away from zero of two.", "0.5"),
    "rsqrt": ("x", "One divided by the square root.", "0.5"),
    "sin": ("x", "The sine of an angle in radians.", "0.5"),
    "sinh": ("x", "The hyperbolic sine.", "0.5"),
    "sinpi": ("x", "The sine of pi * x.", "0.5"),
    "sqrt": ("x", "The square root.", "0.5"),
    "tan": ("x", "The tangent of an angle in radians.", "0.5"),
    "tanh": ("x", "The hyperbolic tangent.", "0.5"),
    "tgamma": ("x", "The gamma function.", "0.5"),
    "trunc": ("x", "The number x without its fraction.", "0.5"),
    "y0": ("x", "The Bessel function of the second kind of order 0.", "0.5"),
    "y1": ("x", "The Bessel function of the second kind of order 1.", "0.5"),
}

# The results of the examples, to three digits. A function without a number here is one of GPUs alone.
_LIBDEVICE_RESULTS: Dict[str, float] = {
    "acos": 1.047, "acosf": 1.047, "acosh": 0.962, "acoshf": 0.962, "asin": 0.524, "asinf": 0.524, "asinh": 0.481,
    "asinhf": 0.481, "atan": 0.464, "atan2": 0.245, "atan2f": 0.245, "atanf": 0.464, "atanh": 0.549, "atanhf":
    0.549, "cbrt": 0.794, "cbrtf": 0.794, "ceil": 1.0, "ceilf": 1.0, "copysign": 0.5, "copysignf": 0.5, "cos":
    0.878, "cosf": 0.878, "cosh": 1.128, "coshf": 1.128, "cospi": 0.0, "cospif": 0.0, "erf": 0.52, "erfc": 0.48,
    "erfcf": 0.48, "erff": 0.52, "exp": 1.649, "exp10": 3.162, "exp10f": 3.162, "exp2": 1.414, "exp2f": 1.414,
    "expf": 1.649, "expm1": 0.649, "expm1f": 0.649, "fabs": 0.5, "fabsf": 0.5, "fast_cosf": 0.878, "fast_exp10f":
    3.162, "fast_expf": 1.649, "fast_fdividef": 0.25, "fast_log10f": -0.301, "fast_log2f": -1.0, "fast_logf":
    -0.693, "fast_powf": 0.25, "fast_sinf": 0.479, "fast_tanf": 0.546, "fdim": 0.0, "fdimf": 0.0, "floor": 0.0,
    "floorf": 0.0, "fma": 2.0, "fmaf": 2.0, "fmax": 2.0, "fmaxf": 2.0, "fmin": 0.5, "fminf": 0.5, "fmod": 0.5,
    "fmodf": 0.5, "hypot": 2.062, "hypotf": 2.062, "j0": 0.938, "j0f": 0.938, "j1": 0.242, "j1f": 0.242, "lgamma":
    0.572, "lgammaf": 0.572, "log": -0.693, "log10": -0.301, "log10f": -0.301, "log1p": 0.405, "log1pf": 0.405,
    "log2": -1.0, "log2f": -1.0, "logb": -1.0, "logbf": -1.0, "logf": -0.693, "nearbyint": 0.0, "nearbyintf": 0.0,
    "nextafter": 0.5, "nextafterf": 0.5, "normcdf": 0.691, "normcdff": 0.691, "pow": 0.25, "powf": 0.25, "rcbrt":
    1.26, "rcbrtf": 1.26, "remainder": 0.5, "remainderf": 0.5, "rint": 0.0, "rintf": 0.0, "round": 1.0, "roundf":
    1.0, "rsqrt": 1.414, "rsqrtf": 1.414, "sin": 0.479, "sinf": 0.479, "sinh": 0.521, "sinhf": 0.521, "sinpi": 1.0,
    "sinpif": 1.0, "sqrt": 0.707, "sqrtf": 0.707, "tan": 0.546, "tanf": 0.546, "tanh": 0.462, "tanhf": 0.462,
    "tgamma": 1.772, "tgammaf": 1.772, "trunc": 0.0, "truncf": 0.0, "y0": -0.445, "y0f": -0.445, "y1": -1.471,
    "y1f": -1.471
}


_LIBDEVICE = "libdevice."


def _text(summary: str, parameters: str, gives: str, example: str) -> str:
    names = [one.split("=")[0].strip() for one in parameters.split(",") if one.strip()]
    listed = "".join(f"        {name}: {_PARAMETERS[name]}\n" for name in names)
    section = f"    Parameters\n{listed}" if names else ""
    return f"""{summary}

    Only kernels give the name a meaning.

{section}    Returns
        {gives}
    Raises
        TypeError where it is called outside a kernel.
    Example
        {example}
    """


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


def _libdevice_row(name: str) -> Tuple[str, str, str]:
    """The row of LIBDEVICE of a function, which its names for float32 share."""
    plain = name[len("fast_"):] if name.startswith("fast_") else name
    return LIBDEVICE[plain if plain in LIBDEVICE else plain[:-1]]


def _described_libdevice(name: str) -> str:
    """The docstring of a function of CUDA's mathematical library."""
    parameters, summary, arguments = _libdevice_row(name)
    dtype = "float64" if name in LIBDEVICE else "float32"
    result = _LIBDEVICE_RESULTS.get(name)
    remark = " Faster and less accurate." if name.startswith("fast_") else ""
    if result is None:
        return _text(
            f"{summary}{remark} GPUs alone have it: a kernel with it does not compile for CPU devices.",
            parameters,
            f"A {dtype}.",
            f""">>> from stride import cuda
        >>> cuda.libdevice.{name}
        <stride.cuda.libdevice.{name}>""",
        )
    return _text(
        summary + remark,
        parameters,
        f"A {dtype}.",
        f""">>> from stride import cuda
        >>> @cuda.jit
        ... def kernel(out):
        ...     out[0] = cuda.libdevice.{name}({arguments})
        ...
        >>> out = st.zeros(1)
        >>> kernel[1, 1](out)
        >>> round(out.item(), 3)
        {result!r}""",
    )
