#include <algorithm>
#include <atomic>
#include <cstring>

#include "server/worker/codegen/launch_abi.h"
#include "server/worker/cpu/lower/blas.h"
#include "server/worker/cpu/lower/half_matmul.h"
#include "server/worker/cpu/lower/lowering.h"
#include "server/worker/cpu/lower/scratch.h"

namespace stride::cpu {
namespace {

// Products with fewer multiplications gain nothing from several threads each: give each thread its
// own batches.
constexpr double kSmallProduct = 1 << 21;

// Elements of a vector that one thread computes at a time: a page of float32, so that rows of the
// matrix are read in pieces that the processor prefetches.
constexpr int64_t kStrip = 1024;

// Multiplications per part of a long sum whose result is a short vector or a number.
constexpr int64_t kPart = 1 << 17;

struct Batches {
  std::vector<int64_t> extents;
  int64_t count = 1;
};

// The matrices of all batches.
struct Product {
  DType dtype;
  Batches batches;
  MatrixView left, right, output;                                    // matrices of batch 0
  std::vector<int64_t> left_strides, right_strides, output_strides;  // bytes per batch axis
};

MatrixView OfBatch(MatrixView matrix, const Batches& batches, const std::vector<int64_t>& strides,
                   int64_t index) {
  for (size_t i = batches.extents.size(); i-- > 0;) {
    matrix.data += index % batches.extents[i] * strides[i];
    index /= batches.extents[i];
  }
  return matrix;
}

absl::Status MultiplyBatch(const Product& product, cpucuda::ThreadPool* pool, int64_t index) {
  MatrixView left = OfBatch(product.left, product.batches, product.left_strides, index);
  MatrixView right = OfBatch(product.right, product.batches, product.right_strides, index);
  MatrixView output = OfBatch(product.output, product.batches, product.output_strides, index);
  if (product.dtype == DType::kFloat16 || product.dtype == DType::kBFloat16) {
    return MultiplyHalf(pool, product.dtype, left, right, output);
  }
  return MultiplyByBlas(product.dtype, left, right, output);
}

absl::Status RunSmallBatches(const Product& product, cpucuda::ThreadPool& pool) {
  SetBlasThreads(1);
  std::atomic<bool> no_memory{false};
  pool.ParallelFor(product.batches.count, product.batches.count / (pool.num_threads() * 4) + 1,
                   [&](int64_t begin, int64_t end, int) {
                     for (int64_t i = begin; i < end; ++i) {
                       if (!MultiplyBatch(product, nullptr, i).ok()) no_memory = true;
                     }
                   });
  return no_memory ? absl::ResourceExhaustedError("no memory to copy a matrix") : absl::OkStatus();
}

bool IsVector(const Product& product) {
  return (product.output.rows == 1 || product.output.columns == 1) &&
         (product.dtype == DType::kFloat32 || product.dtype == DType::kFloat64);
}

// A strip of the vector is a product of its own: so many threads as there are, not as many as the
// library would start, and the same result with any number of them.
absl::Status RunStrips(const Product& product, cpucuda::ThreadPool& pool) {
  SetBlasThreads(1);
  const bool along_row = product.output.rows == 1;
  const int64_t length = along_row ? product.output.columns : product.output.rows;
  const int64_t inner = product.left.columns;
  std::atomic<bool> no_memory{false};
  pool.ParallelFor((length + kStrip - 1) / kStrip, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t start = begin * kStrip; start < std::min(end * kStrip, length); start += kStrip) {
      const int64_t n = std::min(kStrip, length - start);
      absl::Status status =
          along_row
              ? MultiplyByBlas(product.dtype, product.left, product.right.Block(0, start, inner, n),
                               product.output.Block(0, start, 1, n))
              : MultiplyByBlas(product.dtype, product.left.Block(start, 0, n, inner), product.right,
                               product.output.Block(start, 0, n, 1));
      if (!status.ok()) no_memory = true;
    }
  });
  return no_memory ? absl::ResourceExhaustedError("no memory to copy a matrix") : absl::OkStatus();
}

// Adds `count` consecutive vectors to the first: pairs, then pairs of pairs.
template <typename T>
void AddPairwise(T* vectors, int64_t count, int64_t length) {
  for (int64_t step = 1; step < count; step *= 2) {
    for (int64_t i = 0; i + step < count; i += 2 * step) {
      for (int64_t j = 0; j < length; ++j)
        vectors[i * length + j] += vectors[(i + step) * length + j];
    }
  }
}

template <typename T>
void Store(const T* values, const MatrixView& output) {
  for (int64_t i = 0; i < output.rows; ++i) {
    for (int64_t j = 0; j < output.columns; ++j) {
      std::memcpy(output.data + i * output.row_stride + j * output.column_stride, values++,
                  sizeof(T));
    }
  }
}

// Computes parts of the sum, each as one product. The result does not depend on the number of
// threads.
template <typename T>
absl::Status RunParts(const Product& product, cpucuda::ThreadPool& pool, int64_t part) {
  SetBlasThreads(1);
  const MatrixView& output = product.output;
  const int64_t length = output.rows * output.columns, inner = product.left.columns;
  const int64_t count = (inner + part - 1) / part, item = sizeof(T);
  ScratchMemory sums = AllocateScratch(count * length * item);
  std::atomic<bool> no_memory{!sums};
  pool.ParallelFor(no_memory ? 0 : count, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t start = i * part, k = std::min(part, inner - start);
      const MatrixView sum{sums.get() + i * length * item, output.rows, output.columns,
                           output.columns * item, item};
      absl::Status status =
          MultiplyByBlas(product.dtype, product.left.Block(0, start, output.rows, k),
                         product.right.Block(start, 0, k, output.columns), sum);
      if (!status.ok()) no_memory = true;
    }
  });
  if (no_memory) return absl::ResourceExhaustedError("no memory for a product's parts");
  AddPairwise(reinterpret_cast<T*>(sums.get()), count, length);
  Store(reinterpret_cast<const T*>(sums.get()), output);
  return absl::OkStatus();
}

// Multiplies by a vector with several threads; the division of work depends only on the shape.
absl::Status RunVector(const Product& product, cpucuda::ThreadPool& pool) {
  const int64_t length = std::max(product.output.rows, product.output.columns);
  if (length > kStrip) return RunStrips(product, pool);
  const int64_t part = kPart / length;
  return product.dtype == DType::kFloat32 ? RunParts<float>(product, pool, part)
                                          : RunParts<double>(product, pool, part);
}

absl::Status Run(const Product& product, cpucuda::ThreadPool& pool) {
  double multiplications =
      1.0 * product.output.rows * product.output.columns * product.left.columns;
  if (product.batches.count > 1 && multiplications < kSmallProduct)
    return RunSmallBatches(product, pool);
  if (product.batches.count == 1 && multiplications >= kSmallProduct && IsVector(product))
    return RunVector(product, pool);
  SetBlasThreads(pool.num_threads());
  for (int64_t i = 0; i < product.batches.count; ++i) {
    if (absl::Status s = MultiplyBatch(product, &pool, i); !s.ok()) return s;
  }
  return absl::OkStatus();
}

MatrixView ViewOf(const wire::Operand& operand, const Place& place, int64_t rows, int64_t columns) {
  int rank = operand.strides_size();
  return {place.address, rows, columns, operand.strides(rank - 2), operand.strides(rank - 1)};
}

std::vector<int64_t> BatchStrides(const wire::Operand& operand) {
  return {operand.strides().begin(), operand.strides().end() - 2};
}

// Location of a matrix operand; not accessed when it has no elements.
absl::StatusOr<Place> FindMatrix(const LoweringContext& context, const wire::Operand& operand,
                                 const Batches& batches, int64_t rows, int64_t columns) {
  std::vector<int64_t> extents = batches.extents;
  extents.push_back(rows);
  extents.push_back(columns);
  if (operand.strides_size() != static_cast<int>(extents.size())) {
    return absl::InternalError("a matrix operand has not the strides of its axes");
  }
  if (rows == 0 || columns == 0) return context.arenas->Bytes(operand.arena(), operand.offset(), 0);
  return context.arenas->Elements(operand, extents);
}

absl::StatusOr<Work> LowerByBlas(const wire::MatmulLaunch& launch, const Batches& batches,
                                 cpucuda::ThreadPool* pool, std::vector<Place> places) {
  std::optional<DType> dtype = DTypeFromNumber(launch.output().dtype());
  bool same = launch.left().dtype() == launch.output().dtype() &&
              launch.right().dtype() == launch.output().dtype();
  bool contiguous = dtype.has_value() &&
                    (launch.n() == 1 || launch.output().strides().rbegin()[0] == ItemSize(*dtype));
  if (!same || !contiguous || !(IsFloat(*dtype) || IsComplex(*dtype))) {
    return absl::InternalError("the vendor library has no such matrix product");
  }
  Product product{*dtype,
                  batches,
                  ViewOf(launch.left(), places[0], launch.m(), launch.k()),
                  ViewOf(launch.right(), places[1], launch.k(), launch.n()),
                  ViewOf(launch.output(), places[2], launch.m(), launch.n()),
                  BatchStrides(launch.left()),
                  BatchStrides(launch.right()),
                  BatchStrides(launch.output())};
  return Work{[pool, product = std::move(product)] { return Run(product, *pool); },
              std::move(places)};
}

absl::StatusOr<Work> LowerByCode(const LoweringContext& context, const wire::MatmulLaunch& launch,
                                 std::vector<Place> places) {
  auto module = FindModule(context, launch.module());
  if (!module.ok()) return module.status();
  LoadedModule::Loop loop = (*module)->FindLoop(codegen::kRunEntry);
  if (loop == nullptr) return absl::InternalError("the module is no matrix product");
  Work work;
  work.run =
      [pool = context.pool, module = *module, loop, rows = codegen::MatmulRows(launch),
       block = codegen::PackMatmul(launch, places[0].bits(), places[1].bits(), places[2].bits())] {
        pool->ParallelFor(rows, rows / (pool->num_threads() * 4) + 1,
                          [&](int64_t begin, int64_t end, int) { loop(block.data(), begin, end); });
        return absl::OkStatus();
      };
  work.operands = std::move(places);
  return work;
}

}  // namespace

absl::StatusOr<Work> LowerMatmul(const LoweringContext& context, const wire::MatmulLaunch& launch) {
  Batches batches{{launch.batch_extents().begin(), launch.batch_extents().end()}};
  std::vector<int64_t> all = batches.extents;
  for (int64_t extent : {launch.m(), launch.n(), launch.k()}) all.push_back(extent);
  if (absl::Status s = NumElements(all).status(); !s.ok()) return s;
  if (batches.extents.size() + 2 > codegen::kMaxRank)
    return absl::InternalError("too many batch axes");
  batches.count = *NumElements(batches.extents);
  if (batches.count == 0 || launch.m() == 0 || launch.n() == 0) return NoWork();

  std::vector<Place> places;
  const std::tuple<const wire::Operand*, int64_t, int64_t> matrices[] = {
      {&launch.left(), launch.m(), launch.k()},
      {&launch.right(), launch.k(), launch.n()},
      {&launch.output(), launch.m(), launch.n()}};
  for (const auto& [operand, rows, columns] : matrices) {
    auto place = FindMatrix(context, *operand, batches, rows, columns);
    if (!place.ok()) return place.status();
    places.push_back(*std::move(place));
  }
  if (launch.module() != 0) return LowerByCode(context, launch, std::move(places));
  return LowerByBlas(launch, batches, context.pool, std::move(places));
}

}  // namespace stride::cpu
