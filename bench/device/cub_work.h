// The time that CUB (CUDA's C++ core library) and plain CUDA kernels take for the operations of
// cuda_operations_bench: the baselines that no other library of the toolkit has. Compiled by nvcc,
// for the benchmark alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

struct CUstream_st;

namespace stride::bench::cub_work {

// Enqueues the work once. Its scratch memory was allocated when it was made and goes with it.
using Enqueue = std::function<void()>;
using Stream = CUstream_st*;

// Why none of these can run here, such as a driver older than the CUDA runtime; empty: they can.
std::string Unavailable();

// Device memory, for what other libraries need.
std::shared_ptr<void> Allocate(int64_t bytes);
// Addresses in device memory: `first`, and each so many bytes after the last.
std::shared_ptr<void> Addresses(void* first, int64_t stride_bytes, int64_t count, Stream stream);
// Enqueues it once.
void Fill(float* values, float value, int64_t count, Stream stream);

// All pointers are to device memory, all arrays are contiguous, and matrices are row-major.
// `stream` is of the current context. A CUDA error ends the process, named on standard error.

// Stable, ascending: DeviceRadixSort.
Enqueue Sort(const float* keys, float* sorted, int64_t count, Stream stream);
Enqueue Sort(const double* keys, double* sorted, int64_t count, Stream stream);
Enqueue Sort(const int64_t* keys, int64_t* sorted, int64_t count, Stream stream);
// Places of the sorted keys: DeviceRadixSort of pairs, of which the values are there before.
Enqueue Argsort(const float* keys, int64_t* places, int64_t count, Stream stream);
Enqueue Argsort(const int64_t* keys, int64_t* places, int64_t count, Stream stream);
// The distinct values, ascending: DeviceRadixSort, then DeviceSelect.
Enqueue Unique(const float* values, float* distinct, int64_t count, Stream stream);
// Each row: DeviceSegmentedSort.
Enqueue SortRows(const float* keys, float* sorted, int64_t rows, int64_t columns, Stream stream);

// Running sums: DeviceScan.
Enqueue RunningSum(const float* values, float* sums, int64_t count, Stream stream);
Enqueue RunningSum(const int64_t* values, int64_t* sums, int64_t count, Stream stream);
// Along each row: DeviceScan by keys, which are row numbers and no array.
Enqueue RunningSumOfRows(const float* values, float* sums, int64_t rows, int64_t columns,
                         Stream stream);

// Elements, or places, where `mask` is not 0: DeviceSelect.
Enqueue Select(const float* values, const uint8_t* mask, float* selected, int64_t count,
               Stream stream);
Enqueue Nonzero(const uint8_t* mask, int64_t* places, int64_t count, Stream stream);

// DeviceReduce and DeviceSegmentedReduce. `place` and `places` are those of the first greatest
// element.
Enqueue Sum(const float* values, float* sum, int64_t count, Stream stream);
Enqueue SumOfRows(const float* values, float* sums, int64_t rows, int64_t columns, Stream stream);
Enqueue Max(const int32_t* values, int32_t* greatest, int64_t count, Stream stream);
Enqueue ArgMax(const float* values, int64_t* place, int64_t count, Stream stream);
Enqueue ArgMaxOfRows(const float* values, int64_t* places, int64_t rows, int64_t columns,
                     Stream stream);
// The sum, then the sum of squared differences from the mean, then the root of their mean.
Enqueue StandardDeviation(const float* values, float* deviation, int64_t count, Stream stream);

// How many of the values 0 to bins - 1: DeviceHistogram.
Enqueue CountValues(const int64_t* values, int64_t* counts, int64_t count, int bins, Stream stream);
// How many in each bin between ascending edges, of which there are bins + 1: DeviceHistogram, whose
// last bin is without its upper edge.
Enqueue Histogram(const float* values, const float* edges, int64_t* counts, int64_t count, int bins,
                  Stream stream);

// DeviceTransform and DeviceFor: one element a thread.
Enqueue Exponential(const double* values, double* powers, int64_t count, Stream stream);
// The first row of each of `count` square matrices.
Enqueue FirstRows(const double* matrices, double* rows, int64_t side, int64_t count, Stream stream);
Enqueue MultiplyComplex(const float* left, const float* right, float* products, int64_t count,
                        Stream stream);
// left[i] - right[j] for `count` points with three coordinates each.
Enqueue PairDifferences(const float* left, const float* right, float* differences, int64_t count,
                        Stream stream);
Enqueue LowerTriangle(const float* matrix, float* triangle, int64_t side, Stream stream);
Enqueue Repeat(const float* values, float* repeated, int64_t count, int64_t times, Stream stream);
Enqueue Take(const float* values, const int64_t* places, float* taken, int64_t count,
             Stream stream);
// Any of several values for one element is kept.
Enqueue Put(float* target, const int64_t* places, const float* values, int64_t count,
            Stream stream);
// By atomic additions, in any order.
Enqueue AddAt(float* target, const int64_t* places, const float* values, int64_t count,
              Stream stream);
// Where each value belongs among the sorted ones, after those that are equal to it (`right`) or
// before, by bisection.
Enqueue Search(const float* sorted, int64_t num_sorted, const float* values, int64_t* places,
               int64_t count, bool right, Stream stream);

}  // namespace stride::bench::cub_work
