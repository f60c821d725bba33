// The GPU text of routines, run by the CPU device's compiler of CUDA kernels. Covers barriers,
// shared memory, atomics and launch shapes without a GPU. The device conformance suite runs the
// same on one.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "absl/strings/str_replace.h"
#include "cpucuda/cpucuda.h"
#include "server/ops/client_function.h"
#include "server/ops/plan.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/codegen/routine_fault.h"

namespace stride::codegen {
namespace {

// Few, so that blocks and threads iterate their loops.
constexpr RoutineTarget kTarget{.num_multiprocessors = 1};

// An array in this process's memory.
struct Host {
  ArrayInfo info;
  void* data = nullptr;
};
template <typename T>
Host Of(DType dtype, std::vector<T>& values, std::vector<int64_t> shape) {
  return {Contiguous(dtype, std::move(shape)), values.data()};
}

// 16-bit floats are converted by PTX, which these tests do without.
std::string WithoutPtx(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    if (line.find("  asm(\"") != 0) out += line;
    at = end;
  }
  return out;
}

class Compiled {
 public:
  explicit Compiled(const wire::RoutineCode& code) {
    auto text = EmitRoutineCuda(code);
    EXPECT_TRUE(text.ok()) << text.status();
    cpucuda::CompileRequest request{.source = WithoutPtx(*text)};
    for (size_t i = 0; i < RoutinePhases(code.routine(), kTarget).size(); ++i)
      request.entries.push_back(PhaseEntry(static_cast<int>(i)));
    auto result = cpucuda::Compile(request);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return;
    module_ = *cpucuda::Module::LoadBytes(result->object);
    for (const cpucuda::CompiledKernel& kernel : result->kernels) {
      entries_.push_back({.name = kernel.name,
                          .function = module_->Symbol(kernel.symbol),
                          .static_shared_bytes = kernel.static_shared_bytes,
                          .max_threads_per_block = kernel.max_threads_per_block,
                          .private_bytes_per_thread = kernel.private_bytes_per_thread,
                          .per_thread = kernel.form == cpucuda::ThreadForm::kPerThread});
    }
  }
  const cpucuda::KernelEntry* Find(const std::string& name) const {
    for (const cpucuda::KernelEntry& entry : entries_) {
      if (entry.name == name) return &entry;
    }
    return nullptr;
  }

 private:
  std::unique_ptr<cpucuda::Module> module_;
  std::vector<cpucuda::KernelEntry> entries_;
};

// Compiled once: the text depends on types and options, not on sizes.
const Compiled& CompiledOf(const wire::RoutineCode& code) {
  static auto* const all = new std::map<std::string, Compiled>();
  const std::string key = code.SerializeAsString();
  return all->try_emplace(key, code).first->second;
}

RoutineFault RunHere(const v1::Operation& operation, const std::vector<Host>& inputs,
                     const std::vector<Host>& outputs,
                     const ops::FunctionTable* functions = nullptr) {
  std::vector<ops::Input> described, existing;
  for (const Host& input : inputs) described.push_back(input.info);
  for (const Host& output : outputs) existing.push_back(output.info);
  auto plan = ops::PlanOperation(operation, described, existing, functions);
  EXPECT_TRUE(plan.ok()) << plan.status();
  RoutineFault fault;
  if (!plan.ok()) return fault;
  const Compiled& compiled = CompiledOf(plan->code->routine());
  const wire::RoutineLaunch& launch = plan->task.routine();
  std::vector<uint64_t> addresses;
  for (const auto& operand : launch.operands()) {
    const size_t slot = operand.operand().arena();
    const Host& host = slot < inputs.size() ? inputs[slot] : outputs[slot - inputs.size()];
    addresses.push_back(reinterpret_cast<uint64_t>(host.data) + operand.operand().offset());
  }
  const RoutineShape shape = PlanRoutine(launch, kTarget);
  std::vector<uint64_t> scratch(shape.scratch_bytes / 8 + 2, 0xA5A5A5A5A5A5A5A5u);
  LaunchBlock block = PackRoutine(launch, addresses, reinterpret_cast<uint64_t>(scratch.data()),
                                  reinterpret_cast<uint64_t>(&fault));
  cpucuda::ThreadPool pool(2);
  for (const RoutinePass& pass : shape.passes) {
    SetPass(pass, &block);
    const LaunchShape grid = PassShape(launch, pass, kTarget);
    const cpucuda::KernelEntry* entry = compiled.Find(PhaseEntry(pass.phase));
    EXPECT_NE(entry, nullptr);
    if (entry == nullptr) return fault;
    const cpucuda::LaunchConfig config{{grid.grid[0], 1, 1}, {grid.block[0], 1, 1}};
    const absl::Status status = cpucuda::Launch(pool, *entry, config, block.data(), nullptr);
    EXPECT_TRUE(status.ok()) << status;
  }
  return fault;
}

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

int64_t Mixed(int64_t i, int64_t range) {
  return static_cast<int64_t>(static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u >> 40) % range;
}

TEST(RoutineCudaText, AccumulatesByTiles) {
  v1::Operation operation;
  operation.mutable_accumulation()->set_function("add");
  operation.mutable_accumulation()->mutable_input()->set_handle(1);
  operation.mutable_accumulation()->set_axis(1);
  operation.mutable_accumulation()->set_include_initial(true);
  operation.add_outputs()->set_handle(2);
  operation.mutable_outputs(0)->set_existing(true);
  // One tile per row; several; more than a group of tiles, and of groups; then one thread per row.
  for (auto [rows, n] : std::vector<std::pair<int64_t, int64_t>>{
           {3, 1000}, {2, 2048}, {1, 600001}, {1, 2200000}, {5, 70000}, {9000, 70}, {2, 10}}) {
    std::vector<int32_t> in(rows * n);
    for (int64_t i = 0; i < rows * n; ++i) in[i] = static_cast<int32_t>(Mixed(i, 100));
    std::vector<int64_t> out(rows * (n + 1), -1);
    RunHere(operation, {Of(DType::kInt32, in, {rows, n})}, {Of(DType::kInt64, out, {rows, n + 1})});
    for (int64_t row = 0; row < rows; ++row) {
      int64_t sum = 0;
      for (int64_t i = 0; i <= n; ++i) {
        ASSERT_EQ(out[row * (n + 1) + i], sum) << rows << " x " << n << ", row " << row << " " << i;
        if (i < n) sum += in[row * n + i];
      }
    }
  }
}

// By tiles and merges, and by digits. An element keeps its bits: both zeros are equal, and NaN is
// last.
TEST(RoutineCudaText, SortsByMergesAndByDigits) {
  for (bool descending : {false, true}) {
    for (bool indices : {false, true}) {
      for (int64_t n : {1, 5, 256, 1024, 1025, 4000, 12000}) {
        v1::Operation operation;
        operation.mutable_sort()->mutable_input()->set_handle(1);
        operation.mutable_sort()->set_descending(descending);
        operation.mutable_sort()->set_indices(indices);
        operation.add_outputs()->set_handle(2);
        const int64_t rows = n < 2000 ? 3 : 1;
        std::vector<float> in(rows * n), values(rows * n);
        std::vector<int64_t> places(rows * n);
        for (int64_t i = 0; i < rows * n; ++i) {
          in[i] = static_cast<float>(Mixed(i, n / 2 + 1) - n / 4);
          if (i % 89 == 7) in[i] = -0.0f;
          if (i % 97 == 5) in[i] = std::nanf(i % 2 == 0 ? "1" : "2");
        }
        RunHere(operation, {Of(DType::kFloat32, in, {rows, n})},
                {indices ? Of(DType::kInt64, places, {rows, n})
                         : Of(DType::kFloat32, values, {rows, n})});
        for (int64_t row = 0; row < rows; ++row) {
          std::vector<int64_t> order(n);
          std::iota(order.begin(), order.end(), row * n);
          std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            if (std::isnan(in[b])) return !std::isnan(in[a]);
            return descending ? in[a] > in[b] : in[a] < in[b];
          });
          for (int64_t i = 0; i < n; ++i) {
            if (indices) {
              ASSERT_EQ(places[row * n + i], order[i] - row * n) << n << " " << i;
            } else {
              ASSERT_EQ(BitsOf(values[row * n + i]), BitsOf(in[order[i]])) << n << " " << i;
            }
          }
        }
      }
    }
  }
}

TEST(RoutineCudaText, TopKKeepsTheBestOfTiles) {
  for (auto [n, k] : std::vector<std::pair<int64_t, int64_t>>{
           {5, 2}, {1024, 7}, {3000, 512}, {70000, 3}, {9000, 700}}) {
    v1::Operation operation;
    operation.mutable_top_k()->mutable_input()->set_handle(1);
    operation.mutable_top_k()->set_k(k);
    operation.add_outputs()->set_handle(2);
    operation.add_outputs()->set_handle(3);
    std::vector<float> in(2 * n), values(2 * k);
    std::vector<int64_t> places(2 * k);
    for (int64_t i = 0; i < 2 * n; ++i) in[i] = static_cast<float>(Mixed(i, n / 2 + 1));
    RunHere(operation, {Of(DType::kFloat32, in, {2, n})},
            {Of(DType::kFloat32, values, {2, k}), Of(DType::kInt64, places, {2, k})});
    for (int64_t row = 0; row < 2; ++row) {
      std::vector<int64_t> order(n);
      std::iota(order.begin(), order.end(), row * n);
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return in[a] > in[b]; });
      for (int64_t i = 0; i < k; ++i) {
        ASSERT_EQ(places[row * k + i], order[i] - row * n) << n << " " << k << " " << i;
        ASSERT_EQ(values[row * k + i], in[order[i]]);
      }
    }
  }
}

// The first k of long rows: few elements up to the digits of the last one, or more than are
// collected. Equal elements stay in index order, both zeros are equal, and NaN is last in either
// direction.
template <typename T>
void CheckFirst(DType dtype, const std::vector<T>& in, int64_t rows, int64_t k, bool smallest) {
  const int64_t n = static_cast<int64_t>(in.size()) / rows;
  v1::Operation operation;
  operation.mutable_top_k()->mutable_input()->set_handle(1);
  operation.mutable_top_k()->set_k(k);
  operation.mutable_top_k()->set_smallest(smallest);
  operation.add_outputs()->set_handle(2);
  operation.add_outputs()->set_handle(3);
  std::vector<T> values(rows * k), given = in;
  std::vector<int64_t> places(rows * k);
  RunHere(operation, {Of(dtype, given, {rows, n})},
          {Of(dtype, values, {rows, k}), Of(DType::kInt64, places, {rows, k})});
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), row * n);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      if (in[b] != in[b]) return in[a] == in[a];
      return smallest ? in[a] < in[b] : in[a] > in[b];
    });
    for (int64_t i = 0; i < k; ++i) {
      ASSERT_EQ(places[row * k + i], order[i] - row * n) << n << " " << k << " " << i;
      ASSERT_EQ(std::memcmp(&values[row * k + i], &in[order[i]], sizeof(T)), 0) << i;
    }
  }
}

TEST(RoutineCudaText, TopKSearchesTheThreshold) {
  const int64_t n = 40000;
  std::vector<float> spread(2 * n), few(n), rare(n, std::nanf(""));
  std::vector<int64_t> integers(n);
  std::vector<int8_t> bytes(n);
  for (int64_t i = 0; i < 2 * n; ++i)
    spread[i] = static_cast<float>(std::sin(static_cast<double>(Mixed(i, 1 << 20))));
  for (int64_t i = 0; i < n; ++i) {
    few[i] = i % 3 == 0 ? -0.0f : i % 3 == 1 ? 0.0f : static_cast<float>(Mixed(i, 3) - 1);
    if (i % 7000 == 6) rare[i] = static_cast<float>(i);
    integers[i] = Mixed(i, 1000) - 500;
    bytes[i] = static_cast<int8_t>(Mixed(i, 200) - 100);
  }
  CheckFirst(DType::kFloat32, spread, 2, 100, true);
  CheckFirst(DType::kFloat32, spread, 2, 1024, false);
  CheckFirst(DType::kFloat32, few, 1, 100, true);
  CheckFirst(DType::kFloat32, few, 1, 1024, false);
  CheckFirst(DType::kFloat32, rare, 1, 100, true);
  CheckFirst(DType::kInt64, integers, 1, 1, false);
  CheckFirst(DType::kInt64, integers, 1, 1000, false);
  CheckFirst(DType::kInt8, bytes, 1, 300, true);
}

TEST(RoutineCudaText, SelectsAmongEqualElements) {
  const int64_t n = 50000;
  std::vector<int64_t> in(n), ranks = {n / 2, n / 2 + 1, 0, n - 1, 17, 17}, out(ranks.size());
  for (int64_t i = 0; i < n; ++i) in[i] = Mixed(i, 5) == 0 ? Mixed(i, n) * (int64_t{1} << 40) : 3;
  std::vector<int64_t> sorted = in;
  std::sort(sorted.begin(), sorted.end());
  v1::Operation operation;
  operation.mutable_select()->mutable_input()->set_handle(1);
  operation.mutable_select()->mutable_ranks()->set_handle(2);
  operation.add_outputs()->set_handle(3);
  const auto count = static_cast<int64_t>(ranks.size());
  RunHere(operation, {Of(DType::kInt64, in, {n}), Of(DType::kInt64, ranks, {count})},
          {Of(DType::kInt64, out, {count})});
  for (int64_t j = 0; j < count; ++j) EXPECT_EQ(out[j], sorted[ranks[j]]) << j;
}

// By tiles, by one block per row, by many blocks, and by a complete sort.
TEST(RoutineCudaText, SelectsByRank) {
  for (auto [rows, n, count] : std::vector<std::array<int64_t, 3>>{
           {3, 5, 2}, {2, 1024, 3}, {300, 1100, 2}, {2, 30000, 3}, {1, 40000, 8}, {1, 5000, 20}}) {
    v1::Operation operation;
    operation.mutable_select()->mutable_input()->set_handle(1);
    operation.mutable_select()->mutable_ranks()->set_handle(2);
    operation.add_outputs()->set_handle(3);
    std::vector<float> in(rows * n), out(rows * count);
    std::vector<int64_t> ranks(count);
    for (int64_t i = 0; i < rows * n; ++i)
      in[i] = i % 97 == 5 ? std::nanf("") : static_cast<float>(Mixed(i, n) - n / 2);
    for (int64_t j = 0; j < count; ++j) ranks[j] = j % 2 == 0 ? n / 2 + j / 2 : -1 - j * n / 50;
    RunHere(operation, {Of(DType::kFloat32, in, {rows, n}), Of(DType::kInt64, ranks, {count})},
            {Of(DType::kFloat32, out, {rows, count})});
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<float> sorted(in.begin() + row * n, in.begin() + (row + 1) * n);
      std::sort(sorted.begin(), sorted.end(),
                [](float a, float b) { return std::isnan(b) ? !std::isnan(a) : a < b; });
      for (int64_t j = 0; j < count; ++j) {
        const float expected = sorted[ranks[j] < 0 ? ranks[j] + n : ranks[j]];
        const float got = out[row * count + j];
        ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected)))
            << got << ", not " << expected << ": " << rows << " x " << n << " rank " << ranks[j];
      }
    }
  }
  v1::Operation outside;
  outside.mutable_select()->mutable_input()->set_handle(1);
  outside.mutable_select()->mutable_ranks()->set_handle(2);
  outside.add_outputs()->set_handle(3);
  std::vector<double> in(5000, 1.0), out(1);
  std::vector<int64_t> ranks = {5000};
  EXPECT_EQ(RunHere(outside, {Of(DType::kFloat64, in, {5000}), Of(DType::kInt64, ranks, {1})},
                    {Of(DType::kFloat64, out, {1})})
                .kind,
            RoutineFault::kIndexOutOfRange);
}

TEST(RoutineCudaText, PartitionsByClasses) {
  for (auto [rows, n] :
       std::vector<std::pair<int64_t, int64_t>>{{2, 100}, {3, 3000}, {300, 1100}, {1, 50000}}) {
    v1::Operation operation;
    operation.mutable_partition()->mutable_input()->set_handle(1);
    operation.mutable_partition()->set_indices(true);
    for (int64_t place : {n / 3, n - 1}) operation.mutable_partition()->add_kth(place);
    operation.add_outputs()->set_handle(3);
    std::vector<int64_t> in(rows * n), places(rows * n);
    for (int64_t i = 0; i < rows * n; ++i) in[i] = Mixed(i, n / 2 + 1) - n / 4;
    RunHere(operation, {Of(DType::kInt64, in, {rows, n})}, {Of(DType::kInt64, places, {rows, n})});
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<int64_t> seen(n), moved(n);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t place = places[row * n + i];
        ASSERT_TRUE(place >= 0 && place < n && seen[place]++ == 0) << rows << " x " << n;
        moved[i] = in[row * n + place];
      }
      for (int64_t kth : {n / 3, n - 1}) {
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_TRUE(i < kth ? moved[i] <= moved[kth] : moved[i] >= moved[kth])
              << rows << " x " << n << ": " << i << " beside " << kth;
        }
      }
    }
  }
}

TEST(RoutineCudaText, CorrelatesFourResultsPerItem) {
  for (auto [n, m] : std::vector<std::pair<int64_t, int64_t>>{{7, 3}, {1000, 65}, {3, 90}}) {
    v1::Operation operation;
    operation.mutable_correlate()->mutable_left()->set_handle(1);
    operation.mutable_correlate()->mutable_right()->set_handle(2);
    operation.mutable_correlate()->set_mode(v1::Correlate::MODE_FULL);
    operation.add_outputs()->set_handle(3);
    std::vector<int32_t> left(n), right(m), out(n + m - 1);
    for (int64_t i = 0; i < n; ++i) left[i] = static_cast<int32_t>(Mixed(i, 50));
    for (int64_t i = 0; i < m; ++i) right[i] = static_cast<int32_t>(Mixed(i + 9, 50));
    RunHere(operation, {Of(DType::kInt32, left, {n}), Of(DType::kInt32, right, {m})},
            {Of(DType::kInt32, out, {n + m - 1})});
    for (int64_t k = 1 - m; k < n; ++k) {
      int32_t sum = 0;
      for (int64_t j = std::max<int64_t>(0, -k); j < m && k + j < n; ++j)
        sum += left[k + j] * right[j];
      ASSERT_EQ(out[k + m - 1], sum) << n << " with " << m << " at " << k;
    }
  }
}

// By tables of partial results, and by sorting; non-commutative functions show the order.
TEST(RoutineCudaText, CombinesGroupsInOrder) {
  v1::Function definition;
  auto* ufunc = definition.mutable_ufunc();
  ufunc->add_signatures("int64,int64->int64");
  ufunc->set_associative(true);
  ufunc->mutable_identity()->set_int_value(-1);
  // The first even one of them, else the last.
  ufunc->mutable_body()->mutable_expression()->set_text("where(a % 2 == 0, a, b)");
  ufunc->mutable_body()->mutable_expression()->add_parameters("a");
  ufunc->mutable_body()->mutable_expression()->add_parameters("b");
  for (bool associative : {true, false}) {
    ufunc->set_associative(associative);
    ops::ClientFunction function = *ops::ReadFunction(definition, "own");
    struct Table : ops::FunctionTable {
      const ops::ClientFunction* Find(std::string_view) const override { return own; }
      const ops::ClientFunction* own = nullptr;
    } table;
    table.own = &function;
    for (auto [n, groups, columns] : std::vector<std::array<int64_t, 3>>{
             {0, 2, 3}, {20000, 3, 1}, {3000, 2000, 1}, {5000, 4000, 3}, {100, 7, 3000}}) {
      v1::Operation operation;
      operation.mutable_group_reduce()->set_function("own");
      operation.mutable_group_reduce()->mutable_values()->set_handle(1);
      operation.mutable_group_reduce()->mutable_groups()->set_handle(2);
      operation.mutable_group_reduce()->set_num_groups(groups);
      operation.add_outputs()->set_handle(3);
      for (bool skewed : {false, true}) {
        if (skewed && n < 3000) continue;
        std::vector<int64_t> values(n * columns), out(groups * columns, 7),
            expected(groups * columns, -1);
        std::vector<int32_t> which(n);
        for (int64_t i = 0; i < n * columns; ++i) values[i] = i % 19 == 0 ? 2 * i : 2 * i + 1;
        for (int64_t i = 0; i < n; ++i) {
          which[i] = static_cast<int32_t>(skewed && i % 40 != 0 ? groups / 2 : Mixed(i, groups));
          for (int64_t k = 0; k < columns; ++k) {
            int64_t& to = expected[which[i] * columns + k];
            if (to == -1 || to % 2 != 0) to = values[i * columns + k];
          }
        }
        values.resize(n * columns + 1);
        which.resize(n + 1);
        const RoutineFault fault = RunHere(
            operation, {Of(DType::kInt64, values, {n, columns}), Of(DType::kInt32, which, {n})},
            {Of(DType::kInt64, out, {groups, columns})}, &table);
        EXPECT_TRUE(ToStatus(fault).ok());
        EXPECT_EQ(out, expected) << n << " " << groups << " " << columns << " " << skewed;
      }
    }
  }
}

TEST(RoutineCudaText, CountsAndWeighsBins) {
  for (int64_t bins : {5, 9000}) {
    const int64_t n = 50000;
    std::vector<float> in(n), weights(n);
    std::vector<int64_t> counts(bins), expected(bins);
    std::vector<float> sums(bins), expected_sums(bins);
    for (int64_t i = 0; i < n; ++i) {
      in[i] = static_cast<float>(Mixed(i, bins + 2)) - 0.5f;
      weights[i] = static_cast<float>(Mixed(i, 5));
      const int64_t bin = static_cast<int64_t>(std::floor(in[i]));
      if (in[i] < 0 || bin >= bins) continue;
      ++expected[bin];
      expected_sums[bin] += weights[i];
    }
    v1::Operation operation;
    operation.mutable_histogram()->mutable_input()->set_handle(1);
    operation.mutable_histogram()->mutable_uniform()->set_count(bins);
    operation.mutable_histogram()->mutable_uniform()->set_high(static_cast<double>(bins));
    operation.add_outputs()->set_handle(3);
    RunHere(operation, {Of(DType::kFloat32, in, {n})}, {Of(DType::kInt64, counts, {bins})});
    EXPECT_EQ(counts, expected);
    operation.mutable_histogram()->mutable_weights()->set_handle(2);
    RunHere(operation, {Of(DType::kFloat32, in, {n}), Of(DType::kFloat32, weights, {n})},
            {Of(DType::kFloat32, sums, {bins})});
    EXPECT_EQ(sums, expected_sums);
  }
}

TEST(RoutineCudaText, CompressesByBlocks) {
  for (int64_t n : {1, 255, 2049, 100000, 3000000}) {
    std::vector<uint8_t> mask(n);
    std::vector<int32_t> in(n), expected;
    for (int64_t i = 0; i < n; ++i) {
      in[i] = static_cast<int32_t>(i);
      mask[i] = Mixed(i, 3) == 0;
      if (mask[i]) expected.push_back(in[i]);
    }
    const int64_t count = static_cast<int64_t>(expected.size());
    v1::Operation operation;
    operation.mutable_compress()->mutable_input()->set_handle(1);
    operation.mutable_compress()->mutable_mask()->set_handle(2);
    operation.mutable_compress()->set_count(count);
    operation.add_outputs()->set_handle(3);
    std::vector<int32_t> out(count + 1, -1);
    const std::vector<Host> inputs = {Of(DType::kInt32, in, {n}), Of(DType::kBool, mask, {n})};
    EXPECT_TRUE(ToStatus(RunHere(operation, inputs, {Of(DType::kInt32, out, {count})})).ok());
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(out[i], expected[i]) << n << " " << i;
    if (count == n) continue;
    operation.mutable_compress()->set_count(count + 1);
    const RoutineFault fault = RunHere(operation, inputs, {Of(DType::kInt32, out, {count + 1})});
    EXPECT_EQ(fault.kind, RoutineFault::kWrongCount);
    EXPECT_EQ(fault.value, count);
    // The indices of two axes instead of elements.
    if (n != 100000) continue;
    v1::Operation nonzero;
    nonzero.mutable_nonzero()->mutable_input()->set_handle(1);
    nonzero.mutable_nonzero()->set_count(count);
    nonzero.add_outputs()->set_handle(2);
    nonzero.add_outputs()->set_handle(3);
    std::vector<int64_t> rows(count), columns(count);
    RunHere(nonzero, {Of(DType::kBool, mask, {100, 1000})},
            {Of(DType::kInt64, rows, {count}), Of(DType::kInt64, columns, {count})});
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(rows[i] * 1000 + columns[i], expected[i]) << i;
  }
}

// Masks that do not begin at a multiple of 16 bytes, have gaps, or are numbers. Every nonzero byte
// is set. Also rows instead of elements.
TEST(RoutineCudaText, CompressesMasksOfAnyLayout) {
  const int64_t n = 20000;
  std::vector<uint8_t> bytes(3 * n + 1);
  for (int64_t i = 0; i < 3 * n + 1; ++i) bytes[i] = static_cast<uint8_t>(Mixed(i, 4) * 85);
  std::vector<double> in(2 * n);
  std::iota(in.begin(), in.end(), 0.0);
  auto check = [&](Host mask, Host input, int64_t first, int64_t step, int64_t width,
                   const std::vector<bool>& set) {
    std::vector<double> expected;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < width && set[i]; ++j)
        expected.push_back(in[first + (i * width + j) * step]);
    }
    const int64_t count = static_cast<int64_t>(expected.size()) / width;
    v1::Operation operation;
    operation.mutable_compress()->mutable_input()->set_handle(1);
    operation.mutable_compress()->mutable_mask()->set_handle(2);
    operation.mutable_compress()->set_count(count);
    operation.add_outputs()->set_handle(3);
    std::vector<double> out(count * width, -1);
    std::vector<int64_t> shape = {count};
    if (width > 1) shape.push_back(width);
    EXPECT_TRUE(
        ToStatus(RunHere(operation, {input, mask}, {Of(DType::kFloat64, out, std::move(shape))}))
            .ok());
    EXPECT_EQ(out, expected);
  };
  for (auto [offset, stride] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 1}, {0, 3}, {3 * n, -3}}) {
    Host mask = Of(DType::kBool, bytes, {n});
    mask.info.offset = offset;
    mask.info.strides = {stride};
    std::vector<bool> set(n);
    for (int64_t i = 0; i < n; ++i) set[i] = bytes[offset + i * stride] != 0;
    check(mask, Of(DType::kFloat64, in, {n}), 0, 1, 1, set);
    check(mask, Of(DType::kFloat64, in, {n, 2}), 0, 1, 2, set);
    Host backwards = Of(DType::kFloat64, in, {n});
    backwards.info.offset = static_cast<int64_t>(sizeof(double)) * (n - 1);
    backwards.info.strides = {-static_cast<int64_t>(sizeof(double))};
    check(mask, backwards, n - 1, -1, 1, set);
  }
  std::vector<float> numbers(n);
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < n; ++i) {
    numbers[i] = i % 3 == 0 ? -0.0f : std::nanf("");
    if (i % 3 != 0) expected.push_back(i);
  }
  v1::Operation nonzero;
  nonzero.mutable_nonzero()->mutable_input()->set_handle(1);
  nonzero.mutable_nonzero()->set_count(static_cast<int64_t>(expected.size()));
  nonzero.add_outputs()->set_handle(2);
  std::vector<int64_t> out(expected.size());
  RunHere(nonzero, {Of(DType::kFloat32, numbers, {n})},
          {Of(DType::kInt64, out, {static_cast<int64_t>(out.size())})});
  EXPECT_EQ(out, expected);
}

TEST(RoutineCudaText, AssignsTheLastOfEqualIndices) {
  v1::Operation operation;
  operation.mutable_scatter()->mutable_values()->set_handle(1);
  operation.mutable_scatter()->add_indices()->set_handle(2);
  operation.add_outputs()->set_handle(3);
  operation.mutable_outputs(0)->set_existing(true);
  // One slot per target, then a hash table.
  for (int64_t n : {300, 500000}) {
    const int64_t count = 5000;
    std::vector<int64_t> values(count), index(count), target(n, -1), expected(n, -1);
    for (int64_t i = 0; i < count; ++i) {
      values[i] = i;
      index[i] = Mixed(i, 1000) % n - n;
      expected[index[i] + n] = i;
    }
    const std::vector<Host> inputs = {Of(DType::kInt64, values, {count}),
                                      Of(DType::kInt64, index, {count})};
    EXPECT_TRUE(ToStatus(RunHere(operation, inputs, {Of(DType::kInt64, target, {n})})).ok());
    EXPECT_EQ(target, expected);
    index[count / 2] = n;
    const RoutineFault fault = RunHere(operation, inputs, {Of(DType::kInt64, target, {n})});
    EXPECT_EQ(fault.kind, RoutineFault::kIndexOutOfRange);
    EXPECT_EQ(fault.value, n);
    EXPECT_EQ(target, expected);
  }
}

v1::Operation ApplyAtOf(const std::string& function) {
  v1::Operation operation;
  operation.mutable_apply_at()->set_function(function);
  operation.mutable_apply_at()->mutable_values()->set_handle(1);
  operation.mutable_apply_at()->add_indices()->set_handle(2);
  operation.add_outputs()->set_existing(true);
  return operation;
}

// Runs of one target, which a thread, a block or a block's threads process. Non-commutative
// functions show their order.
TEST(RoutineCudaText, AppliesInTheOrderOfTheIndices) {
  for (auto [targets, count, columns] : std::vector<std::array<int64_t, 3>>{{1, 3000, 3},
                                                                            {13, 3000, 3},
                                                                            {1000, 3000, 3},
                                                                            {100000, 3000, 3},
                                                                            {5, 400, 40},
                                                                            {5, 9, 2}}) {
    std::vector<int64_t> indices(count);
    std::vector<double> values(count * columns);
    for (int64_t i = 0; i < count; ++i) {
      indices[i] = Mixed(i, targets);
      for (int64_t k = 0; k < columns; ++k)
        values[i * columns + k] = static_cast<double>(Mixed(i * columns + k, 9)) - 4;
    }
    std::vector<double> subtracted(targets * columns, 3), signs(targets * columns, 3);
    std::vector<double> sums = subtracted;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t k = 0; k < columns; ++k) {
        sums[indices[i] * columns + k] -= values[i * columns + k];
        double& sign = signs[indices[i] * columns + k];
        sign = std::copysign(sign, values[i * columns + k]);
      }
    }
    const std::vector<Host> inputs = {Of(DType::kFloat64, values, {count, columns}),
                                      Of(DType::kInt64, indices, {count})};
    RunHere(ApplyAtOf("subtract"), inputs, {Of(DType::kFloat64, subtracted, {targets, columns})});
    EXPECT_EQ(subtracted, sums) << targets;
    std::vector<double> signed_out(targets * columns, 3);
    RunHere(ApplyAtOf("copysign"), inputs, {Of(DType::kFloat64, signed_out, {targets, columns})});
    EXPECT_EQ(signed_out, signs) << targets;
  }
}

// Values of all magnitudes: exact sums where they fit 128 bits, else in order.
TEST(RoutineCudaText, AddsExactlyInAnyOrder) {
  for (int spread : {1, 40, 120}) {
    for (int64_t targets : {1, 6, 700}) {
      constexpr int64_t kCount = 3000;
      std::vector<int64_t> indices(kCount);
      std::vector<float> values(kCount), out(targets, 0.5f);
      std::vector<long double> sums(targets);
      for (int64_t i = 0; i < kCount; ++i) {
        indices[i] = Mixed(i, targets);
        const int size = static_cast<int>(Mixed(indices[i] + 5, spread)) - spread / 2;
        values[i] = std::ldexp(1 + static_cast<float>(Mixed(i, 999)) / 1024, size);
        if (Mixed(i, 3) == 0) values[i] = -values[i] / 2;
        sums[indices[i]] += static_cast<long double>(values[i]);
      }
      RunHere(ApplyAtOf("add"),
              {Of(DType::kFloat32, values, {kCount}), Of(DType::kInt64, indices, {kCount})},
              {Of(DType::kFloat32, out, {targets})});
      for (int64_t i = 0; i < targets; ++i) {
        const float want = 0.5f + static_cast<float>(sums[i]);
        const float rounding = spread > 100 ? std::fabs(want) * 1e-4f : 0;
        EXPECT_NEAR(out[i], want, rounding) << spread << ", " << i << " of " << targets;
      }
    }
  }
}

TEST(RoutineCudaText, AppliesNothingWhenAnIndexIsOutOfRange) {
  std::vector<int32_t> indices(500), out(7, 1), values = {5};
  for (int64_t i = 0; i < 500; ++i) indices[i] = static_cast<int32_t>(Mixed(i, 7));
  indices[321] = 7;
  const RoutineFault fault =
      RunHere(ApplyAtOf("add"), {Of(DType::kInt32, values, {1}), Of(DType::kInt32, indices, {500})},
              {Of(DType::kInt32, out, {7})});
  EXPECT_EQ(fault.kind, RoutineFault::kIndexOutOfRange);
  EXPECT_EQ(fault.value, 7);
  EXPECT_EQ(out, std::vector<int32_t>(7, 1));
}

TEST(RoutineCudaText, FoldsPartsOfRows) {
  v1::Operation operation;
  operation.mutable_reduce_at()->set_function("subtract");
  operation.mutable_reduce_at()->mutable_input()->set_handle(1);
  operation.mutable_reduce_at()->mutable_indices()->set_handle(2);
  operation.mutable_reduce_at()->set_axis(1);
  operation.add_outputs()->set_existing(true);
  std::vector<int32_t> in(40 * 10), out(40 * 4);
  std::vector<int16_t> indices = {0, 6, 3, 9};
  for (int i = 0; i < 400; ++i) in[i] = i * i % 71;
  RunHere(operation, {Of(DType::kInt32, in, {40, 10}), Of(DType::kInt16, indices, {4})},
          {Of(DType::kInt32, out, {40, 4})});
  const int begin[] = {0, 6, 3, 9}, end[] = {6, 7, 9, 10};
  for (int row = 0; row < 40; ++row) {
    for (int part = 0; part < 4; ++part) {
      int expected = in[row * 10 + begin[part]];
      for (int i = begin[part] + 1; i < end[part]; ++i) expected -= in[row * 10 + i];
      EXPECT_EQ(out[row * 4 + part], expected) << row << " " << part;
    }
  }
}

struct OneFunction : ops::FunctionTable {
  explicit OneFunction(const v1::Function& definition) {
    auto read = ops::ReadFunction(definition, "own");
    EXPECT_TRUE(read.ok()) << read.status();
    if (read.ok()) function = *std::move(read);
  }
  const ops::ClientFunction* Find(std::string_view name) const override {
    return name == "own" ? &function : nullptr;
  }
  ops::ClientFunction function;
};

TEST(RoutineCudaText, CallsClientFunctionsOfSubArrays) {
  v1::Function definition;
  definition.mutable_gufunc()->set_layout("(m,n),(n)->(m)");
  definition.mutable_gufunc()->add_signatures("float64,float64->float64");
  definition.mutable_gufunc()->mutable_body()->set_entry("product");
  definition.mutable_gufunc()->mutable_body()->set_source(R"(
#include <stdint.h>
__device__ void product(stride_view<const double, 2> a, stride_view<const double, 1> x,
                        stride_view<double, 1> y) {
  for (int64_t i = 0; i < a.size(0); ++i) {
    y(i) = 0;
    for (int64_t j = 0; j < a.size(1); ++j) y(i) += a(i, j) * x(j);
  }
})");
  const OneFunction table(definition);
  v1::Operation operation;
  operation.mutable_gufunc()->set_function("own");
  operation.mutable_gufunc()->add_inputs();
  operation.mutable_gufunc()->add_inputs();
  operation.add_outputs()->set_existing(true);
  std::vector<double> a(500 * 6), x(500 * 3), y(500 * 2);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i % 17);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 5);
  RunHere(operation, {Of(DType::kFloat64, a, {500, 2, 3}), Of(DType::kFloat64, x, {500, 3})},
          {Of(DType::kFloat64, y, {500, 2})}, &table);
  for (size_t b = 0; b < 500; ++b) {
    for (size_t i = 0; i < 2; ++i) {
      double expected = 0;
      for (size_t j = 0; j < 3; ++j) expected += a[(b * 2 + i) * 3 + j] * x[b * 3 + j];
      ASSERT_EQ(y[b * 2 + i], expected) << b << " " << i;
    }
  }
}

// Loops and reductions that contain a client's text, as far as a compiler of CUDA C++ can check.
TEST(ClientCudaText, LoopsAndReductionsCompile) {
  for (const char* types : {"float32,float32->float32", "complex128,complex128->complex128"}) {
    const bool is_complex = types[0] == 'c';
    v1::Function definition;
    auto* ufunc = definition.mutable_ufunc();
    ufunc->add_signatures(types);
    ufunc->set_associative(true);
    ufunc->mutable_body()->mutable_device_function()->set_entry("join");
    ufunc->mutable_body()->mutable_device_function()->set_source(
        is_complex ? "__device__ double2 join(double2 a, double2 b) {\n"
                     "  return make_double2(a.x + b.x, a.y + b.y);\n}"
                   : "template <class T> __device__ T join(T a, T b) { return a + b; }");
    v1::Operation use, reduce;
    use.mutable_ufunc()->set_function("own");
    use.mutable_ufunc()->add_inputs();
    use.mutable_ufunc()->add_inputs();
    use.add_outputs()->set_inline_result(true);
    reduce.mutable_reduction()->set_function_name("own");
    reduce.mutable_reduction()->mutable_input();
    reduce.add_outputs()->set_inline_result(true);
    const DType dtype = is_complex ? DType::kComplex128 : DType::kFloat32;
    for (bool identity : {false, true}) {
      if (identity) ufunc->mutable_identity()->set_int_value(0);
      const OneFunction table(definition);
      const ops::Input array = Contiguous(dtype, {50, 60});
      for (const auto& [operation, entries] :
           {std::pair<v1::Operation, std::vector<std::string>>{use, {kElementwiseEntry}},
            {reduce, {kReduceEntry}}}) {
        const std::vector<ops::Input> inputs(operation.has_ufunc() ? 2 : 1, array);
        auto plan = ops::PlanOperation(operation, inputs, {std::nullopt}, &table);
        ASSERT_TRUE(plan.ok()) << plan.status();
        auto text = EmitCuda(*plan->code);
        ASSERT_TRUE(text.ok()) << text.status();
        cpucuda::CompileRequest request{.source = WithoutPtx(*text), .entries = entries};
        auto result = cpucuda::Compile(request);
        EXPECT_TRUE(result.ok()) << result.status();
      }
    }
  }
}

}  // namespace
}  // namespace stride::codegen
