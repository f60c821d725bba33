#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <random>

#include "server/base/memory_file.h"
#include "server/store/dtype.h"
#include "server/worker/cpu/lower/blas.h"
#include "server/worker/cpu/lower/half_float.h"
#include "server/worker/cpu/lower/lowering.h"

namespace stride::cpu {
namespace {

using Value = std::complex<double>;

void Store(DType dtype, Value value, std::byte* to) {
  auto put = [&](auto typed) { std::memcpy(to, &typed, sizeof(typed)); };
  switch (dtype) {
    case DType::kFloat16:
      return put(ToFloat16(static_cast<float>(value.real())));
    case DType::kBFloat16:
      return put(ToBFloat16(static_cast<float>(value.real())));
    case DType::kFloat32:
      return put(static_cast<float>(value.real()));
    case DType::kFloat64:
      return put(value.real());
    case DType::kComplex64:
      return put(std::complex<float>(value));
    default:
      return put(value);
  }
}

template <typename T>
T Read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

Value Load(DType dtype, const std::byte* from) {
  switch (dtype) {
    case DType::kFloat16:
      return FromFloat16(Read<uint16_t>(from));
    case DType::kBFloat16:
      return FromBFloat16(Read<uint16_t>(from));
    case DType::kFloat32:
      return Read<float>(from);
    case DType::kFloat64:
      return Read<double>(from);
    case DType::kComplex64:
      return Value(Read<std::complex<float>>(from));
    default:
      return Read<Value>(from);
  }
}

// The layout of an operand.
enum class Order { kRows, kColumns, kPaddedRows, kEverySecond, kReversed, kSharedByBatches };

class MatmulTest : public testing::Test {
 protected:
  static constexpr uint64_t kArenaBytes = 64 << 20;

  void SetUp() override {
    UniqueFd file = *CreateMemoryFile("arena", kArenaBytes);
    ASSERT_TRUE(arenas_.Map(1, kArenaBytes, file.get()).ok());
    base_ = arenas_.Bytes(1, 0, kArenaBytes)->address;
  }

  wire::Operand Place(DType dtype, int64_t batches, int64_t rows, int64_t columns, Order order) {
    int64_t item = ItemSize(dtype), row = columns * item, column = item;
    if (order == Order::kColumns) row = item, column = rows * item;
    if (order == Order::kPaddedRows) row = (columns + 5) * item;
    if (order == Order::kEverySecond) row = columns * 2 * item, column = 2 * item;
    int64_t batch = std::max(rows * row, columns * column);
    wire::Operand operand;
    operand.set_arena(1);
    operand.set_dtype(static_cast<int>(dtype));
    int64_t start = used_;
    if (order == Order::kReversed) {
      start += (rows - 1) * row;
      row = -row;
    }
    operand.set_offset(start);
    operand.add_strides(order == Order::kSharedByBatches ? 0 : batch);
    operand.add_strides(row);
    operand.add_strides(column);
    used_ += (batch * batches + 255) / 256 * 256;
    EXPECT_LE(used_, static_cast<int64_t>(kArenaBytes));
    return operand;
  }

  std::byte* Element(const wire::Operand& o, int64_t b, int64_t i, int64_t j) {
    return base_ + o.offset() + b * o.strides(0) + i * o.strides(1) + j * o.strides(2);
  }

  void Fill(const wire::Operand& operand, int64_t batches, int64_t rows, int64_t columns) {
    std::uniform_real_distribution<double> draw(-1, 1);
    for (int64_t b = 0; b < batches; ++b) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          Store(DType(operand.dtype()), {draw(random_), draw(random_)}, Element(operand, b, i, j));
        }
      }
    }
  }

  void Check(DType dtype, int64_t batches, int64_t m, int64_t n, int64_t k, Order left, Order right,
             double tolerance) {
    used_ = 0;
    wire::MatmulLaunch launch;
    launch.set_m(m);
    launch.set_n(n);
    launch.set_k(k);
    launch.add_batch_extents(batches);
    *launch.mutable_left() = Place(dtype, batches, m, k, left);
    *launch.mutable_right() = Place(dtype, batches, k, n, right);
    *launch.mutable_output() = Place(dtype, batches, m, n, Order::kRows);
    Fill(launch.left(), batches, m, k);
    Fill(launch.right(), batches, k, n);
    Fill(launch.output(), batches, m, n);  // must be overwritten
    auto work = LowerMatmul({&arenas_, &modules_, &pool_}, launch);
    ASSERT_TRUE(work.ok()) << work.status();
    ASSERT_TRUE(work->run().ok());
    for (int64_t b = 0; b < batches; ++b) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          Value sum = 0;
          for (int64_t l = 0; l < k; ++l) {
            sum += Load(dtype, Element(launch.left(), b, i, l)) *
                   Load(dtype, Element(launch.right(), b, l, j));
          }
          Value got = Load(dtype, Element(launch.output(), b, i, j));
          ASSERT_LE(std::abs(got - sum), tolerance * (1 + std::abs(sum)))
              << Name(dtype) << " [" << b << "," << i << "," << j << "] " << got << " " << sum;
        }
      }
    }
  }

  ArenaTable arenas_;
  ModuleTable modules_;
  cpucuda::ThreadPool pool_{2};
  std::byte* base_ = nullptr;
  int64_t used_ = 0;
  std::mt19937 random_{1};
};

struct TypeCase {
  DType dtype;
  double tolerance;
};
constexpr TypeCase kTypes[] = {{DType::kFloat16, 2e-3},   {DType::kBFloat16, 1.6e-2},
                               {DType::kFloat32, 1e-5},   {DType::kFloat64, 1e-13},
                               {DType::kComplex64, 1e-5}, {DType::kComplex128, 1e-13}};
constexpr Order kOrders[] = {Order::kRows,        Order::kColumns,  Order::kPaddedRows,
                             Order::kEverySecond, Order::kReversed, Order::kSharedByBatches};

TEST_F(MatmulTest, EveryTypeAndLayout) {
  for (const TypeCase& type : kTypes) {
    for (Order left : kOrders) {
      for (Order right : kOrders) Check(type.dtype, 2, 5, 7, 9, left, right, type.tolerance);
    }
  }
}

TEST_F(MatmulTest, VectorsAndSingleElements) {
  for (const TypeCase& type : kTypes) {
    for (Order left : kOrders) {
      for (Order right : {Order::kRows, Order::kEverySecond, Order::kReversed}) {
        Check(type.dtype, 1, 13, 1, 11, left, right, type.tolerance);
        Check(type.dtype, 1, 1, 13, 11, left, right, type.tolerance);
        Check(type.dtype, 3, 1, 1, 11, left, right, type.tolerance);
        Check(type.dtype, 1, 4, 6, 1, left, right, type.tolerance);
      }
    }
  }
}

TEST_F(MatmulTest, EmptySumIsZero) {
  for (const TypeCase& type : kTypes) Check(type.dtype, 2, 3, 4, 0, Order::kRows, Order::kRows, 0);
}

TEST_F(MatmulTest, HalfOverSeveralBlocks) {
  Check(DType::kFloat16, 1, 3, 1030, 1050, Order::kRows, Order::kColumns, 2e-3);
  Check(DType::kBFloat16, 1, 1027, 3, 5, Order::kColumns, Order::kRows, 1.6e-2);
}

TEST_F(MatmulTest, UsesAllThreads) {
  Check(DType::kFloat32, 1, 150, 160, 170, Order::kRows, Order::kColumns, 1e-5);
  Check(DType::kFloat64, 1, 150, 160, 170, Order::kColumns, Order::kEverySecond, 1e-13);
}

TEST_F(MatmulTest, LongVectors) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const double tolerance = dtype == DType::kFloat32 ? 1e-4 : 1e-12;
    for (Order order : {Order::kRows, Order::kColumns, Order::kPaddedRows, Order::kEverySecond}) {
      Check(dtype, 1, 1, 2111, 1009, Order::kRows, order, tolerance);
      Check(dtype, 1, 2111, 1, 1009, order, Order::kRows, tolerance);
      Check(dtype, 1, 1, 2111, 1009, Order::kEverySecond, order, tolerance);
      Check(dtype, 1, 1, 7, 300011, Order::kRows, order, tolerance);
      Check(dtype, 1, 7, 1, 300011, order, Order::kRows, tolerance);
      Check(dtype, 1, 1, 1, 2100007, order, Order::kRows, 10 * tolerance);
    }
  }
}

TEST_F(MatmulTest, VectorProductIsIndependentOfThreads) {
  for (auto [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{1, 4099, 1021},
                         {4099, 1, 1021},
                         {1, 17, 150001},
                         {17, 1, 150001},
                         {1, 1, 3000001}}) {
    for (Order order : {Order::kRows, Order::kColumns}) {
      used_ = 0;
      wire::MatmulLaunch launch;
      launch.set_m(m);
      launch.set_n(n);
      launch.set_k(k);
      launch.add_batch_extents(1);
      *launch.mutable_left() = Place(DType::kFloat32, 1, m, k, order);
      *launch.mutable_right() = Place(DType::kFloat32, 1, k, n, order);
      *launch.mutable_output() = Place(DType::kFloat32, 1, m, n, Order::kRows);
      Fill(launch.left(), 1, m, k);
      Fill(launch.right(), 1, k, n);
      std::string first;
      for (int threads : {1, 2, 3, 7}) {
        cpucuda::ThreadPool pool(threads);
        auto work = LowerMatmul({&arenas_, &modules_, &pool}, launch);
        ASSERT_TRUE(work.ok()) << work.status();
        ASSERT_TRUE(work->run().ok());
        const std::string got(reinterpret_cast<char*>(Element(launch.output(), 0, 0, 0)),
                              m * n * sizeof(float));
        if (threads == 1) first = got;
        EXPECT_TRUE(got == first) << threads << " threads";
      }
    }
  }
}

TEST_F(MatmulTest, OutOfBoundsIsRefused) {
  wire::MatmulLaunch launch;
  launch.set_m(10);
  launch.set_n(10);
  launch.set_k(10);
  launch.add_batch_extents(1);
  *launch.mutable_left() = Place(DType::kFloat32, 1, 10, 10, Order::kRows);
  *launch.mutable_right() = *launch.mutable_output() = launch.left();
  launch.mutable_right()->set_offset(kArenaBytes - 399);
  EXPECT_FALSE(LowerMatmul({&arenas_, &modules_, &pool_}, launch).ok());
  launch.mutable_right()->set_offset(kArenaBytes - 400);
  EXPECT_TRUE(LowerMatmul({&arenas_, &modules_, &pool_}, launch).ok());
  launch.set_m(-1);
  EXPECT_FALSE(LowerMatmul({&arenas_, &modules_, &pool_}, launch).ok());
}

// OpenBLAS 0.3.21 does not know a processor model of 2023 and ran the kernels of a Prescott.
TEST(BlasCoreTest, UnknownModelsUseKernelsOfTheirInstructionSet) {
  const VectorSets none, avx2 = {.avx2 = true}, avx512 = {.avx2 = true, .avx512 = true};
  EXPECT_EQ(BetterBlasCore("Prescott", avx512), "SkylakeX");
  EXPECT_EQ(BetterBlasCore("Prescott", avx2), "Haswell");
  EXPECT_EQ(BetterBlasCore("Nehalem", avx2), "Haswell");
  EXPECT_EQ(BetterBlasCore("Prescott", none), "");
  for (const char* known : {"Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids", "Later"})
    EXPECT_EQ(BetterBlasCore(known, avx512), "") << known;
}

}  // namespace
}  // namespace stride::cpu
