"""The order of random words, which is what shuffles need.

Random words are spread evenly, so that their leading bits sort them nearly: on a GPU elements are put into buckets by
these, and each bucket of a few is sorted by one thread. The result is that of a stable sort of the words, whatever the
device and the order in which its threads run. A processor's sort is faster than the buckets."""

import math

import numpy as np

from stride import _dtypes, _manipulation, _python_kernel, _routines
from stride._array import Array

# Fewer are sorted faster by the service's sort.
_LEAST = 4096
_IN_BUCKET = 4  # at least so many on average, and less than twice as many
_TEXT = r"""
typedef unsigned long long u64;
typedef unsigned int u32;
#define EACH(count)                                                                             \
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count;               \
       i += (long long)gridDim.x * blockDim.x)

// A row has 2^bits buckets.
__device__ u64 bucket(u64 word, long long i, long long bits, long long length) {
  return ((u64)(i / length) << bits) | (bits ? word >> (64 - bits) : 0);
}

// How many words are in each bucket, and how many of them were counted before each word.
extern "C" __global__ void count_words(const u64* __restrict__ words, u64* __restrict__ counts,
                                       u32* __restrict__ before, long long bits, long long length, long long count) {
  EACH(count) before[i] = (u32)atomicAdd(counts + bucket(words[i], i, bits, length), (u64)1);
}

// The bits after those of the bucket, and the place.
extern "C" __global__ void put_words(const u64* __restrict__ words, const u64* __restrict__ ends,
                                     const u32* __restrict__ before, u64* __restrict__ placed, long long bits,
                                     long long length, long long count) {
  EACH(count) {
    u64 word = words[i];
    placed[ends[bucket(word, i, bits, length)] - 1 - before[i]] = (word << bits) >> 32 << 32 | (u32)i;
  }
}

__device__ bool is_before(u64 a, u64 b, const u64* __restrict__ words) {
  if (a >> 32 != b >> 32) return a < b;
  u64 x = words[(u32)a], y = words[(u32)b];
  return x != y ? x < y : a < b;
}

extern "C" __global__ void order_words(const u64* __restrict__ words, const u64* __restrict__ ends,
                                       const u64* __restrict__ placed, u64* __restrict__ order, long long bits,
                                       long long length, long long count) {
  EACH(count) {
    u64 begin = i ? ends[i - 1] : 0, end = ends[i], row = (u64)(i >> bits) * length;
    for (u64 j = begin; j < end; ++j) {
      u64 one = placed[j], k = j;
      for (; k > begin && is_before(one, order[k - 1], words); --k) order[k] = order[k - 1];
      order[k] = one;
    }
    for (u64 j = begin; j < end; ++j) order[j] = (u32)order[j] - row;
  }
}
"""


def order(words: Array) -> Array:
    """`argsort` of random uint64 words along the last axis."""
    count, length = words.size, words.shape[-1]
    if count < _LEAST or count >= 1 << 32 or not words.session._has_gpu():
        return _routines.argsort(words)
    bits = max(0, int(math.log2(length / _IN_BUCKET))) if length > _IN_BUCKET else 0
    num_buckets = count // length << bits
    session, node = words.session, words._node

    def run(entry: str, inputs: tuple, results: list, num_threads: int) -> list:
        return _python_kernel._run(_TEXT, entry, session, inputs, results, (bits, length, num_threads), num_threads)

    whole = ((count,), _dtypes.uint64)
    counts, before = run("count_words", (node,), [((num_buckets,), _dtypes.uint64), ((count,), _dtypes.uint32)], count)
    ends = _routines.cumulative_sum(counts)._node
    placed, = run("put_words", (node, ends, before._node), [whole], count)
    result, = run("order_words", (node, ends, placed._node), [whole], num_buckets)
    return _manipulation.reshape(result.astype(np.int64), words.shape)
