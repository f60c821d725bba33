#include "server/worker/codegen/block_launch.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "server/ops/block_loops.h"
#include "server/store/dtype.h"

namespace stride::codegen {
namespace {

using Place = BlockSteps::Place;

// With blocks of a thousand elements, 4 per thread, a loop's call costs little compared with its
// work. Blocks are smaller when slots would not fit, or when there would be fewer blocks than
// multiprocessors.
constexpr int64_t kMostElements = 1024, kLeastElements = 8;
constexpr int64_t kThreads = 256, kWarp = 32;
// Shared memory per block that every device offers without an opt-in.
constexpr int64_t kSharedBytes = 48 << 10;
constexpr int64_t kBlocksPerMultiprocessor = 8;

// As device/interpret.h has them.
struct Head {
  int64_t count = 0;
  int32_t block = 0, slot_stride = 0;
  int32_t rank = 0, num_steps = 0;
  int32_t operands_at = 0, strides_at = 0, constants_at = 0, steps_at = 0;
  int64_t begin = 0;
};
struct OperandRecord {
  uint64_t data = 0;
  int32_t item = 0, contiguous = 0;
};
struct StepRecord {
  uint16_t code = 0;
  uint16_t arguments[3] = {};
  uint16_t value = 0, unused = 0;
  uint8_t strides[4] = {};
};
static_assert(sizeof(Head) == 48 && sizeof(OperandRecord) == 16 && sizeof(StepRecord) == 16);

constexpr uint16_t kLoad = 0xFFFF, kStore = 0xFFFE, kIndex = 0xFFFD;

uint16_t Encode(const Place& place) {
  const int kind = place.kind == Place::Kind::kSlot      ? 0
                   : place.kind == Place::Kind::kOperand ? 1
                                                         : 2;
  return static_cast<uint16_t>(kind << 14 | place.number);
}

uint8_t StrideOf(const BlockSteps& steps, const Place& place) {
  switch (place.kind) {
    case Place::Kind::kSlot:
      return static_cast<uint8_t>(steps.slot_item);
    case Place::Kind::kOperand: {
      const BlockSteps::Operand& operand = steps.operands[static_cast<size_t>(place.number)];
      return operand.repeated ? 0 : static_cast<uint8_t>(operand.item_size);
    }
    default:
      return 0;
  }
}

StepRecord RecordOf(const BlockSteps& steps, const BlockSteps::Step& step) {
  StepRecord record;
  record.value = Encode(step.value);
  record.strides[3] = StrideOf(steps, step.value);
  switch (step.kind) {
    case BlockSteps::Step::Kind::kLoad:
    case BlockSteps::Step::Kind::kStore:
      record.code = step.kind == BlockSteps::Step::Kind::kLoad ? kLoad : kStore;
      record.arguments[0] = static_cast<uint16_t>(step.operand);
      break;
    case BlockSteps::Step::Kind::kIndex:
      record.code = kIndex;
      break;
    case BlockSteps::Step::Kind::kLoop:
      record.code = static_cast<uint16_t>(step.loop);
      // Missing arguments are not read.
      for (size_t i = 0; i < 3; ++i) {
        const Place& place = step.arguments[std::min(i, step.arguments.size() - 1)];
        record.arguments[i] = Encode(place);
        record.strides[i] = StrideOf(steps, place);
      }
  }
  return record;
}

int64_t ElementsOf(const BlockSteps& steps, int64_t count, int num_multiprocessors) {
  int64_t elements = kMostElements;
  while (elements > kThreads && count < elements * num_multiprocessors * kBlocksPerMultiprocessor)
    elements /= 2;
  while (elements > kLeastElements && elements * steps.num_slots * steps.slot_item > kSharedBytes)
    elements /= 2;
  return elements;
}

// Appends records, aligned to 16 bytes.
class Writer {
 public:
  template <typename T>
  int32_t Add(const T* records, size_t n) {
    bytes_.resize((bytes_.size() + 15) / 16 * 16);
    const size_t at = bytes_.size();
    bytes_.append(reinterpret_cast<const char*>(records), n * sizeof(T));
    return static_cast<int32_t>(at);
  }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace

absl::StatusOr<BlocksLaunch> PackBlocks(const BlockSteps& steps,
                                        absl::Span<const uint64_t> addresses,
                                        int num_multiprocessors) {
  return PackBlocks(steps, addresses, {0, steps.count}, num_multiprocessors);
}

absl::StatusOr<BlocksLaunch> PackBlocks(const BlockSteps& steps,
                                        absl::Span<const uint64_t> addresses, ElementRange range,
                                        int num_multiprocessors) {
  std::vector<OperandRecord> operands;
  std::vector<int64_t> strides;
  for (size_t i = 0; i < steps.operands.size(); ++i) {
    const BlockSteps::Operand& operand = steps.operands[i];
    operands.push_back({addresses[i], static_cast<int32_t>(operand.item_size), operand.contiguous});
    strides.insert(strides.end(), operand.strides.begin(), operand.strides.end());
  }
  std::string constants(steps.constants.size() * kScalarSlotBytes, '\0');
  for (size_t i = 0; i < steps.constants.size(); ++i)
    steps.constants[i].copy(constants.data() + i * kScalarSlotBytes, kScalarSlotBytes);
  std::vector<StepRecord> records;
  for (const BlockSteps::Step& step : steps.steps) records.push_back(RecordOf(steps, step));

  const int multiprocessors = std::max(num_multiprocessors, 1);
  const int64_t count = range.end - range.begin;
  const int64_t elements = ElementsOf(steps, count, multiprocessors);
  const int64_t shared = elements * steps.num_slots * steps.slot_item;
  Head head;
  head.count = range.end;
  head.block = static_cast<int32_t>(elements);
  head.slot_stride = static_cast<int32_t>(steps.slot_item);
  head.rank = static_cast<int32_t>(steps.extents.size());
  head.num_steps = static_cast<int32_t>(records.size());
  head.begin = range.begin;
  Writer writer;
  writer.Add(&head, 1);
  writer.Add(steps.extents.data(), steps.extents.size());  // right after the head
  head.operands_at = writer.Add(operands.data(), operands.size());
  head.strides_at = writer.Add(strides.data(), strides.size());
  head.constants_at = writer.Add(constants.data(), constants.size());
  head.steps_at = writer.Add(records.data(), records.size());
  std::string& bytes = writer.bytes();
  std::memcpy(bytes.data(), &head, sizeof(head));
  if (bytes.size() > kBlocksBytes || shared > kSharedBytes)
    return absl::InternalError("a program by blocks has too many steps");

  BlocksLaunch launch;
  launch.block.resize(kBlocksBytes / sizeof(uint64_t));
  std::memcpy(launch.block.data(), bytes.data(), bytes.size());
  launch.shape.block[0] = static_cast<uint32_t>(std::clamp(elements, kWarp, kThreads));
  launch.shape.grid[0] = static_cast<uint32_t>(
      std::min((count + elements - 1) / elements, multiprocessors * kBlocksPerMultiprocessor));
  launch.shape.shared_bytes = static_cast<uint32_t>(shared);
  return launch;
}

}  // namespace stride::codegen
