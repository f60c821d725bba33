#include "server/worker/cpu/lower/block_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "server/ops/block_loops.h"
#include "server/store/dtype.h"

namespace stride::cpu {
namespace {

using Kind = codegen::BlockSteps::Step::Kind;
using Operand = codegen::BlockSteps::Operand;

// A few values of 8 bytes stay in a first-level cache of 32 KiB, and a loop's call costs little
// compared with its work.
constexpr int64_t kBlockElements = 1024;
constexpr size_t kLineBytes = 64;

template <typename T, bool is_load>
void MoveEach(char* operand, int64_t step, char* block, int64_t n) {
  for (int64_t i = 0; i < n; ++i, operand += step, block += sizeof(T)) {
    if (is_load) {
      std::memcpy(block, operand, sizeof(T));
    } else {
      std::memcpy(operand, block, sizeof(T));
    }
  }
}

struct Wide {
  uint64_t words[2];
};

// n elements, `step` bytes apart.
template <bool is_load>
void MoveRow(char* operand, int64_t step, char* block, int64_t n, int64_t item_size) {
  if (step == item_size) {
    std::memcpy(is_load ? block : operand, is_load ? operand : block,
                static_cast<size_t>(n * item_size));
    return;
  }
  switch (item_size) {
    case 1:
      return MoveEach<uint8_t, is_load>(operand, step, block, n);
    case 2:
      return MoveEach<uint16_t, is_load>(operand, step, block, n);
    case 4:
      return MoveEach<uint32_t, is_load>(operand, step, block, n);
    case 8:
      return MoveEach<uint64_t, is_load>(operand, step, block, n);
    default:
      return MoveEach<Wide, is_load>(operand, step, block, n);
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const BlockProgram>> BlockProgram::Create(
    const wire::ElementwiseLaunch& launch, const LoadedModule& module) {
  std::shared_ptr<BlockProgram> program(new BlockProgram());
  if (absl::Status status = program->Build(launch, module); !status.ok()) return status;
  return program;
}

absl::Status BlockProgram::Build(const wire::ElementwiseLaunch& launch,
                                 const LoadedModule& module) {
  auto plan = codegen::PlanBlockSteps(launch);
  if (!plan.ok()) return plan.status();
  plan_ = *std::move(plan);
  for (const codegen::BlockSteps::Step& step : plan_.steps) {
    Step& own = steps_.emplace_back();
    if (step.kind != Kind::kLoop) continue;
    const std::string name = ops::NameOf(ops::BlockLoops()[static_cast<size_t>(step.loop)]);
    own.loop = module.FindBlockLoop(name);
    if (own.loop == nullptr)
      return absl::InternalError(absl::StrCat("the block loops lack ", name));
    // Missing arguments are not read.
    for (size_t i = 0; i < 3; ++i)
      own.arguments[i] = step.arguments[std::min(i, step.arguments.size() - 1)];
  }
  int64_t widest = plan_.slot_item;
  for (const std::string& constant : plan_.constants)
    widest = std::max(widest, static_cast<int64_t>(constant.size()));
  for (const Operand& operand : plan_.operands) widest = std::max(widest, operand.item_size);
  block_elements_ = std::min(kBlockElements, plan_.count);
  const auto bytes = static_cast<size_t>(block_elements_ * widest);
  block_bytes_ = (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  num_blocks_ = static_cast<size_t>(plan_.num_slots) + plan_.constants.size();
  for (const Operand& operand : plan_.operands) num_blocks_ += operand.repeated ? 1 : 0;
  return absl::OkStatus();
}

bool BlockProgram::IsRepeated(const Place& place) const {
  return place.kind == Place::Kind::kOperand &&
         plan_.operands[static_cast<size_t>(place.number)].repeated;
}

// Slots, constants, repeated operands.
std::byte* BlockProgram::BlockOf(const Place& place, std::byte* scratch) const {
  auto number = static_cast<size_t>(place.number);
  if (place.kind != Place::Kind::kSlot) number += static_cast<size_t>(plan_.num_slots);
  if (place.kind == Place::Kind::kOperand) {
    number = static_cast<size_t>(plan_.num_slots) + plan_.constants.size();
    for (int i = 0; i < place.number; ++i)
      number += plan_.operands[static_cast<size_t>(i)].repeated ? 1 : 0;
  }
  return scratch + number * block_bytes_;
}

void BlockProgram::FillConstants(absl::Span<const uint64_t> addresses, std::byte* scratch) const {
  const auto fill = [&](const Place& place, const char* element, int64_t item_size) {
    MoveRow<true>(const_cast<char*>(element), 0, reinterpret_cast<char*>(BlockOf(place, scratch)),
                  block_elements_, item_size);
  };
  for (size_t i = 0; i < plan_.constants.size(); ++i) {
    fill({Place::Kind::kConstant, static_cast<int>(i)}, plan_.constants[i].data(),
         static_cast<int64_t>(plan_.constants[i].size()));
  }
  for (size_t i = 0; i < plan_.operands.size(); ++i) {
    if (!plan_.operands[i].repeated) continue;
    fill({Place::Kind::kOperand, static_cast<int>(i)}, reinterpret_cast<const char*>(addresses[i]),
         plan_.operands[i].item_size);
  }
}

template <bool is_load>
void BlockProgram::Move(const Operand& operand, uint64_t address, int64_t first, int64_t n,
                        std::byte* block) const {
  // Locate the first element: an index along each axis, the innermost last.
  const std::vector<int64_t>& extents = plan_.extents;
  absl::InlinedVector<int64_t, 8> index(extents.size());
  int64_t rest = first;
  char* row = reinterpret_cast<char*>(address);
  for (size_t axis = extents.size(); axis-- > 0;) {
    index[axis] = rest % extents[axis];
    rest /= extents[axis];
    row += index[axis] * operand.strides[axis];
  }
  const size_t last = extents.size() - 1;
  auto* to = reinterpret_cast<char*>(block);
  for (;;) {
    const int64_t length = std::min(n, extents[last] - index[last]);
    MoveRow<is_load>(row, operand.strides[last], to, length, operand.item_size);
    n -= length;
    if (n == 0) return;
    to += length * operand.item_size;
    row -= index[last] * operand.strides[last];
    index[last] = 0;
    for (size_t axis = last; axis-- > 0;) {
      row += operand.strides[axis];
      if (++index[axis] < extents[axis]) break;
      row -= extents[axis] * operand.strides[axis];
      index[axis] = 0;
    }
  }
}

void BlockProgram::Run(absl::Span<const uint64_t> addresses, int64_t begin, int64_t end,
                       std::byte* scratch) const {
  FillConstants(addresses, scratch);
  for (int64_t first = begin; first < end; first += block_elements_) {
    const int64_t n = std::min(block_elements_, end - first);
    const auto at = [&](const Place& place) -> void* {
      if (place.kind != Place::Kind::kOperand || IsRepeated(place)) return BlockOf(place, scratch);
      const auto operand = static_cast<size_t>(place.number);
      return reinterpret_cast<char*>(addresses[operand]) +
             first * plan_.operands[operand].item_size;
    };
    for (size_t i = 0; i < steps_.size(); ++i) {
      const codegen::BlockSteps::Step& step = plan_.steps[i];
      const auto operand = static_cast<size_t>(step.operand);
      switch (step.kind) {
        case Kind::kLoop:
          steps_[i].loop(at(steps_[i].arguments[0]), at(steps_[i].arguments[1]),
                         at(steps_[i].arguments[2]), at(step.value), n);
          break;
        case Kind::kLoad:
          Move<true>(plan_.operands[operand], addresses[operand], first, n,
                     static_cast<std::byte*>(at(step.value)));
          break;
        case Kind::kStore:
          Move<false>(plan_.operands[operand], addresses[operand], first, n,
                      static_cast<std::byte*>(at(step.value)));
          break;
        case Kind::kIndex: {
          auto* const index = static_cast<int64_t*>(at(step.value));
          for (int64_t k = 0; k < n; ++k) index[k] = first + k;
          break;
        }
      }
    }
  }
}

}  // namespace stride::cpu
