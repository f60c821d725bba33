#include "bench/device/cub_work.h"

#include <cuda_runtime.h>

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cstdio>
#include <cstdlib>
#include <cub/cub.cuh>
#include <cuda/std/tuple>
#include <memory>
#include <utility>

namespace stride::bench::cub_work {
namespace {

void CheckCuda(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "CUDA error %s while %s\n", cudaGetErrorName(error), doing);
  std::exit(1);
}

// Device memory that copies of a work share.
class Memory {
 public:
  explicit Memory(size_t bytes) {
    void* address = nullptr;
    CheckCuda(cudaMalloc(&address, bytes == 0 ? 1 : bytes), "allocating scratch memory");
    address_.reset(address, [](void* old) { cudaFree(old); });
  }
  template <typename T>
  T* as() const {
    return static_cast<T*>(address_.get());
  }
  std::shared_ptr<void> shared() const { return address_; }

 private:
  std::shared_ptr<void> address_;
};

// `call` is a device-wide algorithm of CUB, of its scratch memory and that memory's size.
template <typename Call>
Enqueue Prepared(const char* name, Call call) {
  size_t bytes = 0;
  CheckCuda(call(nullptr, bytes), name);
  return [name, call, bytes, memory = Memory(bytes)] {
    size_t size = bytes;
    CheckCuda(call(memory.as<void>(), size), name);
  };
}

// `call` needs no scratch memory.
template <typename Call>
Enqueue Direct(const char* name, Call call) {
  return [name, call] { CheckCuda(call(), name); };
}

template <typename Body>
Enqueue ForEach(const char* name, int64_t count, Body body, Stream stream) {
  return Direct(name, [=] { return cub::DeviceFor::Bulk(count, body, stream); });
}

template <typename T>
Enqueue SortOf(const T* keys, T* sorted, int64_t count, Stream stream) {
  return Prepared("sorting", [=](void* scratch, size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(scratch, bytes, keys, sorted, count, 0, sizeof(T) * 8,
                                          stream);
  });
}

struct Count {
  int64_t* values;
  __device__ void operator()(int64_t i) const { values[i] = i; }
};

template <typename T>
Enqueue ArgsortOf(const T* keys, int64_t* places, int64_t count, Stream stream) {
  const Memory sorted(count * sizeof(T)), numbers(count * sizeof(int64_t));
  CheckCuda(cub::DeviceFor::Bulk(count, Count{numbers.as<int64_t>()}, stream), "counting");
  return Prepared("sorting pairs", [=](void* scratch, size_t& bytes) {
    const int64_t* values = numbers.as<int64_t>();
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted.as<T>(), values, places,
                                           count, 0, sizeof(T) * 8, stream);
  });
}

template <typename T>
Enqueue RunningSumOf(const T* values, T* sums, int64_t count, Stream stream) {
  return Prepared("making running sums", [=](void* scratch, size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(scratch, bytes, values, sums, count, stream);
  });
}

struct RowOf {
  int64_t columns;
  __host__ __device__ int64_t operator()(int64_t i) const { return i / columns; }
};

struct BeginOf {
  int64_t columns;
  __host__ __device__ int64_t operator()(int64_t row) const { return row * columns; }
};

using IndexedFloat = cub::KeyValuePair<int, float>;

struct PlaceOf {
  const IndexedFloat* greatest;
  int64_t* places;
  __device__ void operator()(int64_t i) const { places[i] = greatest[i].key; }
};

struct SquaredDifference {
  const float* sum;
  float count;
  __host__ __device__ float operator()(float value) const {
    const float difference = value - *sum / count;
    return difference * difference;
  }
};

struct RootOfMean {
  const float* sum;
  float count;
  float* result;
  __device__ void operator()(int64_t) const { *result = sqrtf(*sum / count); }
};

struct Filling {
  float* values;
  float value;
  __device__ void operator()(int64_t i) const { values[i] = value; }
};

struct Addressing {
  char* first;
  int64_t stride;
  void** addresses;
  __device__ void operator()(int64_t i) const { addresses[i] = first + i * stride; }
};

struct Power {
  __host__ __device__ double operator()(double x) const { return exp(x); }
};

struct FirstRow {
  const double* matrices;
  double* rows;
  int64_t side;
  __device__ void operator()(int64_t i) const {
    rows[i] = matrices[i / side * side * side + i % side];
  }
};

struct ComplexProduct {
  __host__ __device__ float2 operator()(float2 x, float2 y) const {
    return {x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x};
  }
};

struct PairDifference {
  const float *left, *right;
  float* differences;
  unsigned row;  // elements of the result for one point of `left`
  __device__ void operator()(unsigned i) const {
    const unsigned first = i / row, rest = i % row;
    differences[i] = left[first * 3 + rest % 3] - right[rest];
  }
};

struct Triangle {
  const float* matrix;
  float* triangle;
  unsigned side;
  __device__ void operator()(unsigned i) const {
    triangle[i] = i / side >= i % side ? matrix[i] : 0;
  }
};

struct Repetition {
  const float* values;
  float* repeated;
  unsigned times;
  __device__ void operator()(unsigned i) const { repeated[i] = values[i / times]; }
};

struct Taking {
  const float* values;
  const int64_t* places;
  float* taken;
  __device__ void operator()(int64_t i) const { taken[i] = values[places[i]]; }
};

struct Putting {
  float* target;
  const int64_t* places;
  const float* values;
  __device__ void operator()(int64_t i) const { target[places[i]] = values[i]; }
};

struct Adding {
  float* target;
  const int64_t* places;
  const float* values;
  __device__ void operator()(int64_t i) const { atomicAdd(target + places[i], values[i]); }
};

struct Bisection {
  const float* sorted;
  int64_t num_sorted;
  const float* values;
  int64_t* places;
  bool right;
  __device__ void operator()(int64_t i) const {
    const float value = values[i];
    int64_t begin = 0, end = num_sorted;
    while (begin < end) {
      const int64_t middle = (begin + end) / 2;
      const float here = sorted[middle];
      if (right ? here <= value : here < value)
        begin = middle + 1;
      else
        end = middle;
    }
    places[i] = begin;
  }
};

}  // namespace

std::string Unavailable() {
  int driver = 0;
  const cudaError_t error = cudaDriverGetVersion(&driver);
  if (error != cudaSuccess) return cudaGetErrorString(error);
  if (driver >= CUDART_VERSION) return "";
  return "the driver is for CUDA " + std::to_string(driver / 1000) + "." +
         std::to_string(driver % 1000 / 10) + ", older than the benchmark's CUDA " +
         std::to_string(CUDART_VERSION / 1000);
}

std::shared_ptr<void> Allocate(int64_t bytes) { return Memory(bytes).shared(); }

std::shared_ptr<void> Addresses(void* first, int64_t stride_bytes, int64_t count, Stream stream) {
  const Memory memory(count * sizeof(void*));
  ForEach("storing addresses", count,
          Addressing{static_cast<char*>(first), stride_bytes, memory.as<void*>()}, stream)();
  return memory.shared();
}

void Fill(float* values, float value, int64_t count, Stream stream) {
  ForEach("filling", count, Filling{values, value}, stream)();
}

Enqueue Sort(const float* keys, float* sorted, int64_t count, Stream stream) {
  return SortOf(keys, sorted, count, stream);
}

Enqueue Sort(const double* keys, double* sorted, int64_t count, Stream stream) {
  return SortOf(keys, sorted, count, stream);
}

Enqueue Sort(const int64_t* keys, int64_t* sorted, int64_t count, Stream stream) {
  return SortOf(keys, sorted, count, stream);
}

Enqueue Argsort(const float* keys, int64_t* places, int64_t count, Stream stream) {
  return ArgsortOf(keys, places, count, stream);
}

Enqueue Argsort(const int64_t* keys, int64_t* places, int64_t count, Stream stream) {
  return ArgsortOf(keys, places, count, stream);
}

Enqueue Unique(const float* values, float* distinct, int64_t count, Stream stream) {
  const Memory sorted(count * sizeof(float)), num_distinct(sizeof(int64_t));
  const Enqueue sort = SortOf(values, sorted.as<float>(), count, stream);
  const Enqueue select = Prepared("selecting distinct values", [=](void* scratch, size_t& bytes) {
    return cub::DeviceSelect::Unique(scratch, bytes, sorted.as<const float>(), distinct,
                                     num_distinct.as<int64_t>(), count, stream);
  });
  return [sort, select] {
    sort();
    select();
  };
}

Enqueue SortRows(const float* keys, float* sorted, int64_t rows, int64_t columns, Stream stream) {
  const auto begins =
      thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), BeginOf{columns});
  return Prepared("sorting rows", [=](void* scratch, size_t& bytes) {
    return cub::DeviceSegmentedSort::SortKeys(scratch, bytes, keys, sorted, rows * columns, rows,
                                              begins, begins + 1, stream);
  });
}

Enqueue RunningSum(const float* values, float* sums, int64_t count, Stream stream) {
  return RunningSumOf(values, sums, count, stream);
}

Enqueue RunningSum(const int64_t* values, int64_t* sums, int64_t count, Stream stream) {
  return RunningSumOf(values, sums, count, stream);
}

Enqueue RunningSumOfRows(const float* values, float* sums, int64_t rows, int64_t columns,
                         Stream stream) {
  const auto keys =
      thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), RowOf{columns});
  return Prepared("making running sums of rows", [=](void* scratch, size_t& bytes) {
    return cub::DeviceScan::InclusiveSumByKey(scratch, bytes, keys, values, sums, rows * columns,
                                              cuda::std::equal_to<>(), stream);
  });
}

Enqueue Select(const float* values, const uint8_t* mask, float* selected, int64_t count,
               Stream stream) {
  const Memory num_selected(sizeof(int64_t));
  return Prepared("selecting elements", [=](void* scratch, size_t& bytes) {
    return cub::DeviceSelect::Flagged(scratch, bytes, values, mask, selected,
                                      num_selected.as<int64_t>(), count, stream);
  });
}

Enqueue Nonzero(const uint8_t* mask, int64_t* places, int64_t count, Stream stream) {
  const Memory num_selected(sizeof(int64_t));
  const thrust::counting_iterator<int64_t> all(0);
  return Prepared("selecting places", [=](void* scratch, size_t& bytes) {
    return cub::DeviceSelect::Flagged(scratch, bytes, all, mask, places, num_selected.as<int64_t>(),
                                      count, stream);
  });
}

Enqueue Sum(const float* values, float* sum, int64_t count, Stream stream) {
  return Prepared("summing", [=](void* scratch, size_t& bytes) {
    return cub::DeviceReduce::Sum(scratch, bytes, values, sum, count, stream);
  });
}

Enqueue SumOfRows(const float* values, float* sums, int64_t rows, int64_t columns, Stream stream) {
  const auto begins =
      thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), BeginOf{columns});
  return Prepared("summing rows", [=](void* scratch, size_t& bytes) {
    return cub::DeviceSegmentedReduce::Sum(scratch, bytes, values, sums, rows, begins, begins + 1,
                                           stream);
  });
}

Enqueue Max(const int32_t* values, int32_t* greatest, int64_t count, Stream stream) {
  return Prepared("finding the greatest", [=](void* scratch, size_t& bytes) {
    return cub::DeviceReduce::Max(scratch, bytes, values, greatest, count, stream);
  });
}

Enqueue ArgMax(const float* values, int64_t* place, int64_t count, Stream stream) {
  const Memory greatest(sizeof(float));
  return Prepared("finding the greatest's place", [=](void* scratch, size_t& bytes) {
    return cub::DeviceReduce::ArgMax(scratch, bytes, values, greatest.as<float>(), place, count,
                                     stream);
  });
}

Enqueue ArgMaxOfRows(const float* values, int64_t* places, int64_t rows, int64_t columns,
                     Stream stream) {
  const auto begins =
      thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), BeginOf{columns});
  const Memory greatest(rows * sizeof(IndexedFloat));
  const Enqueue reduce = Prepared("finding places in rows", [=](void* scratch, size_t& bytes) {
    return cub::DeviceSegmentedReduce::ArgMax(scratch, bytes, values, greatest.as<IndexedFloat>(),
                                              rows, begins, begins + 1, stream);
  });
  const Enqueue store =
      ForEach("storing places", rows, PlaceOf{greatest.as<IndexedFloat>(), places}, stream);
  return [reduce, store] {
    reduce();
    store();
  };
}

Enqueue StandardDeviation(const float* values, float* deviation, int64_t count, Stream stream) {
  const Memory sums(2 * sizeof(float));
  float *const sum = sums.as<float>(), *const squares = sum + 1;
  const Enqueue first = Sum(values, sum, count, stream);
  const Enqueue second = Prepared("summing squares", [=](void* scratch, size_t& bytes) {
    return cub::DeviceReduce::TransformReduce(
        scratch, bytes, values, squares, count, cuda::std::plus<>(),
        SquaredDifference{sum, static_cast<float>(count)}, 0.0f, stream);
  });
  const Enqueue last = ForEach("taking the root", 1,
                               RootOfMean{squares, static_cast<float>(count), deviation}, stream);
  return [first, second, last, sums] {
    first();
    second();
    last();
  };
}

Enqueue CountValues(const int64_t* values, int64_t* counts, int64_t count, int bins,
                    Stream stream) {
  // CUB adds to unsigned counters alone.
  auto* const counters = reinterpret_cast<unsigned long long*>(counts);
  return Prepared("counting values", [=](void* scratch, size_t& bytes) {
    return cub::DeviceHistogram::HistogramEven(scratch, bytes, values, counters, bins + 1,
                                               int64_t{0}, static_cast<int64_t>(bins), count,
                                               stream);
  });
}

Enqueue Histogram(const float* values, const float* edges, int64_t* counts, int64_t count, int bins,
                  Stream stream) {
  auto* const counters = reinterpret_cast<unsigned long long*>(counts);
  return Prepared("making a histogram", [=](void* scratch, size_t& bytes) {
    return cub::DeviceHistogram::HistogramRange(scratch, bytes, values, counters, bins + 1, edges,
                                                count, stream);
  });
}

Enqueue Exponential(const double* values, double* powers, int64_t count, Stream stream) {
  return Direct("taking exponentials", [=] {
    return cub::DeviceTransform::Transform(values, powers, count, Power(), stream);
  });
}

Enqueue FirstRows(const double* matrices, double* rows, int64_t side, int64_t count,
                  Stream stream) {
  return ForEach("taking first rows", count * side, FirstRow{matrices, rows, side}, stream);
}

Enqueue MultiplyComplex(const float* left, const float* right, float* products, int64_t count,
                        Stream stream) {
  return Direct("multiplying", [=] {
    return cub::DeviceTransform::Transform(
        cuda::std::make_tuple(reinterpret_cast<const float2*>(left),
                              reinterpret_cast<const float2*>(right)),
        reinterpret_cast<float2*>(products), count, ComplexProduct(), stream);
  });
}

Enqueue PairDifferences(const float* left, const float* right, float* differences, int64_t count,
                        Stream stream) {
  const unsigned row = static_cast<unsigned>(count) * 3;
  return Direct("subtracting", [=] {
    return cub::DeviceFor::Bulk(static_cast<unsigned>(count) * row,
                                PairDifference{left, right, differences, row}, stream);
  });
}

Enqueue LowerTriangle(const float* matrix, float* triangle, int64_t side, Stream stream) {
  const unsigned length = static_cast<unsigned>(side);
  return Direct("taking a triangle", [=] {
    return cub::DeviceFor::Bulk(length * length, Triangle{matrix, triangle, length}, stream);
  });
}

Enqueue Repeat(const float* values, float* repeated, int64_t count, int64_t times, Stream stream) {
  return Direct("repeating", [=] {
    return cub::DeviceFor::Bulk(static_cast<unsigned>(count * times),
                                Repetition{values, repeated, static_cast<unsigned>(times)}, stream);
  });
}

Enqueue Take(const float* values, const int64_t* places, float* taken, int64_t count,
             Stream stream) {
  return ForEach("taking", count, Taking{values, places, taken}, stream);
}

Enqueue Put(float* target, const int64_t* places, const float* values, int64_t count,
            Stream stream) {
  return ForEach("putting", count, Putting{target, places, values}, stream);
}

Enqueue AddAt(float* target, const int64_t* places, const float* values, int64_t count,
              Stream stream) {
  return ForEach("adding", count, Adding{target, places, values}, stream);
}

Enqueue Search(const float* sorted, int64_t num_sorted, const float* values, int64_t* places,
               int64_t count, bool right, Stream stream) {
  return ForEach("searching", count, Bisection{sorted, num_sorted, values, places, right}, stream);
}

}  // namespace stride::bench::cub_work
