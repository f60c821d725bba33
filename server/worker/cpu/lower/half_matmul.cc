#include "server/worker/cpu/lower/half_matmul.h"

#include <algorithm>
#include <cstring>

#include "server/worker/cpu/lower/blas.h"
#include "server/worker/cpu/lower/half_float.h"
#include "server/worker/cpu/lower/scratch.h"

namespace stride::cpu {
namespace {

// Three float32 blocks of 4 MiB: large enough that conversion costs little compared with the
// product.
constexpr int64_t kBlock = 1024;

void ForRows(cpucuda::ThreadPool* pool, int64_t rows, const std::function<void(int64_t)>& body) {
  if (pool == nullptr) {
    for (int64_t i = 0; i < rows; ++i) body(i);
    return;
  }
  pool->ParallelFor(rows, rows / (pool->num_threads() * 2) + 1,
                    [&](int64_t begin, int64_t end, int) {
                      for (int64_t i = begin; i < end; ++i) body(i);
                    });
}

template <float (*FromHalf)(uint16_t)>
void Widen(cpucuda::ThreadPool* pool, const MatrixView& from, float* to) {
  ForRows(pool, from.rows, [&](int64_t i) {
    const std::byte* row = from.data + i * from.row_stride;
    float* out = to + i * from.columns;
    if (from.column_stride == 2) {
      const uint16_t* in = reinterpret_cast<const uint16_t*>(row);
      for (int64_t j = 0; j < from.columns; ++j) out[j] = FromHalf(in[j]);
      return;
    }
    for (int64_t j = 0; j < from.columns; ++j) {
      uint16_t bits;
      std::memcpy(&bits, row + j * from.column_stride, sizeof(bits));
      out[j] = FromHalf(bits);
    }
  });
}

template <uint16_t (*ToHalf)(float)>
void Narrow(cpucuda::ThreadPool* pool, const float* from, const MatrixView& to) {
  ForRows(pool, to.rows, [&](int64_t i) {
    uint16_t* out = reinterpret_cast<uint16_t*>(to.data + i * to.row_stride);
    for (int64_t j = 0; j < to.columns; ++j) out[j] = ToHalf(from[i * to.columns + j]);
  });
}

MatrixView Dense(float* data, int64_t rows, int64_t columns) {
  return {reinterpret_cast<std::byte*>(data), rows, columns, columns * 4, 4};
}

struct Blocks {
  ScratchMemory left = AllocateScratch(kBlock * kBlock * 4);
  ScratchMemory right = AllocateScratch(kBlock * kBlock * 4);
  ScratchMemory sum = AllocateScratch(kBlock * kBlock * 4);
};

template <float (*FromHalf)(uint16_t), uint16_t (*ToHalf)(float)>
absl::Status Multiply(cpucuda::ThreadPool* pool, const MatrixView& left, const MatrixView& right,
                      const MatrixView& output) {
  Blocks blocks;
  if (!blocks.left || !blocks.right || !blocks.sum) {
    return absl::ResourceExhaustedError("no memory to convert a matrix");
  }
  float* a = reinterpret_cast<float*>(blocks.left.get());
  float* b = reinterpret_cast<float*>(blocks.right.get());
  float* c = reinterpret_cast<float*>(blocks.sum.get());
  for (int64_t i = 0; i < output.rows; i += kBlock) {
    int64_t m = std::min(kBlock, output.rows - i);
    for (int64_t j = 0; j < output.columns; j += kBlock) {
      int64_t n = std::min(kBlock, output.columns - j);
      std::fill(c, c + m * n, 0.0f);
      for (int64_t l = 0; l < left.columns; l += kBlock) {
        int64_t k = std::min(kBlock, left.columns - l);
        Widen<FromHalf>(pool, left.Block(i, l, m, k), a);
        Widen<FromHalf>(pool, right.Block(l, j, k, n), b);
        absl::Status s =
            MultiplyByBlas(DType::kFloat32, Dense(a, m, k), Dense(b, k, n), Dense(c, m, n), true);
        if (!s.ok()) return s;
      }
      Narrow<ToHalf>(pool, c, output.Block(i, j, m, n));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MultiplyHalf(cpucuda::ThreadPool* pool, DType dtype, const MatrixView& left,
                          const MatrixView& right, const MatrixView& output) {
  return dtype == DType::kFloat16 ? Multiply<FromFloat16, ToFloat16>(pool, left, right, output)
                                  : Multiply<FromBFloat16, ToBFloat16>(pool, left, right, output);
}

}  // namespace stride::cpu
