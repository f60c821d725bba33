#include <algorithm>

#include "server/store/dtype.h"
#include "server/worker/codegen/launch_abi.h"

namespace stride::codegen {
namespace {

constexpr uint32_t kThreads = 256;
constexpr int64_t kPackBytes = 16;

// Lower bound of the elements that a thread handles at once (emit_elementwise_cuda.cc).
int64_t PackElements(const wire::ElementwiseLaunch& launch) {
  int64_t widest = 1;
  for (const auto* operands : {&launch.inputs(), &launch.outputs()}) {
    for (const wire::Operand& operand : *operands) {
      const bool repeated = std::all_of(operand.strides().begin(), operand.strides().end(),
                                        [](int64_t stride) { return stride == 0; });
      if (!repeated) widest = std::max(widest, ItemSize(static_cast<DType>(operand.dtype())));
    }
  }
  return std::max<int64_t>(kPackBytes / widest, 1);
}

void Append(LaunchBlock& block, const google::protobuf::RepeatedField<int64_t>& values) {
  for (int64_t value : values) block.push_back(static_cast<uint64_t>(value));
}

void AppendOperand(LaunchBlock& block, uint64_t address, const wire::Operand& operand) {
  block.push_back(address);
  Append(block, operand.strides());
}

void Align(LaunchBlock& block) {
  if (block.size() % 2 != 0) block.push_back(0);
}

void AppendScalars(LaunchBlock& block,
                   const google::protobuf::RepeatedPtrField<wire::ScalarValue>& scalars) {
  for (const wire::ScalarValue& scalar : scalars) {
    uint64_t slot[2] = {0, 0};
    const std::string& bytes = scalar.value();
    std::copy_n(bytes.data(), std::min(bytes.size(), sizeof(slot)), reinterpret_cast<char*>(slot));
    block.insert(block.end(), slot, slot + 2);
  }
}

uint64_t Product(const google::protobuf::RepeatedField<int64_t>& extents) {
  uint64_t product = 1;
  for (int64_t extent : extents) product *= static_cast<uint64_t>(extent);
  return product;
}

// Batch axes, padded to kMaxRank with zeros; the last two are row and column.
void AppendMatrix(LaunchBlock& block, uint64_t address, const wire::Operand& operand) {
  block.push_back(address);
  size_t begin = block.size();
  int batch = operand.strides_size() - 2;
  block.resize(begin + kMaxRank, 0);
  for (int i = 0; i < batch; ++i) block[begin + i] = static_cast<uint64_t>(operand.strides(i));
  block[begin + kMaxRank - 2] = static_cast<uint64_t>(operand.strides(batch));
  block[begin + kMaxRank - 1] = static_cast<uint64_t>(operand.strides(batch + 1));
}

}  // namespace

int TileAxis(const wire::ElementwiseLaunch& launch) {
  const int last = launch.extents_size() - 1;
  if (last < 1 || launch.extents(last) < kTileSide) return -1;
  for (const wire::Operand& input : launch.inputs()) {
    const int64_t item = ItemSize(static_cast<DType>(input.dtype()));
    if (input.strides(last) == 0 || input.strides(last) == item) continue;
    for (int axis = 0; axis < last; ++axis)
      if (input.strides(axis) == item && launch.extents(axis) >= kTileSide) return axis;
  }
  return -1;
}

LaunchBlock PackElementwise(const wire::ElementwiseLaunch& launch,
                            absl::Span<const uint64_t> addresses) {
  LaunchBlock block;
  block.reserve(3 + launch.extents_size() + addresses.size() * (1 + launch.extents_size()) +
                2 * launch.scalars_size());
  block.push_back(Product(launch.extents()));
  block.push_back(static_cast<uint64_t>(static_cast<int64_t>(TileAxis(launch))));
  Append(block, launch.extents());
  size_t next = 0;
  for (const wire::Operand& input : launch.inputs()) AppendOperand(block, addresses[next++], input);
  for (const wire::Operand& output : launch.outputs())
    AppendOperand(block, addresses[next++], output);
  Align(block);
  AppendScalars(block, launch.scalars());
  return block;
}

// A block for every 256 packs: short-lived blocks hide the memory's latency better than threads in
// a loop (a copy at 1.04 instead of 0.97 of the driver's rate on an H200).
LaunchShape ElementwiseShape(const wire::ElementwiseLaunch& launch) {
  const uint64_t in_block = kThreads * PackElements(launch);
  const uint64_t count = Product(launch.extents());
  LaunchShape shape;
  shape.block[0] = kThreads;
  shape.grid[0] = static_cast<uint32_t>(
      std::clamp<uint64_t>((count + in_block - 1) / in_block, 1, (uint64_t{1} << 31) - 1));
  return shape;
}

LaunchBlock PackReduce(const wire::ReduceLaunch& launch, const ReduceShape& shape,
                       absl::Span<const uint64_t> addresses, uint64_t scratch_address,
                       uint64_t arrivals_address) {
  LaunchBlock block;
  block.push_back(Product(launch.kept_extents()));
  block.push_back(Product(launch.reduced_extents()));
  block.push_back(static_cast<uint64_t>(shape.splits));
  block.push_back(static_cast<uint64_t>(shape.chunk));
  block.push_back(scratch_address);
  block.push_back(arrivals_address);
  block.push_back(static_cast<uint64_t>(shape.first_split));
  Append(block, launch.kept_extents());
  Append(block, launch.reduced_extents());
  size_t next = 0;
  for (const wire::Operand& input : launch.inputs()) AppendOperand(block, addresses[next++], input);
  AppendOperand(block, addresses[next], launch.output());
  Align(block);
  AppendScalars(block, launch.map_scalars());
  AppendScalars(block, launch.finish_scalars());
  return block;
}

LaunchBlock PackMatmul(const wire::MatmulLaunch& launch, uint64_t left, uint64_t right,
                       uint64_t output) {
  LaunchBlock block = {static_cast<uint64_t>(launch.m()), static_cast<uint64_t>(launch.n()),
                       static_cast<uint64_t>(launch.k()), Product(launch.batch_extents()),
                       static_cast<uint64_t>(launch.batch_extents_size())};
  size_t begin = block.size();
  Append(block, launch.batch_extents());
  block.resize(begin + kMaxRank, 1);
  AppendMatrix(block, left, launch.left());
  AppendMatrix(block, right, launch.right());
  AppendMatrix(block, output, launch.output());
  Align(block);
  return block;
}

namespace {

constexpr int64_t kByteTile = 128, kMatmulTile = 64, kSmallTile = 16;
constexpr uint32_t kMatmulThreads = 256;
// With fewer tiles a GPU is less busy than with small tiles, though these read each element four
// times as often. The same holds for tiles with more than half of their area outside of the result.
constexpr int64_t kLeastTiles = 16;
constexpr int64_t kLeastExtent = kMatmulTile / 2;

int64_t TilesOf(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

int64_t TileOf(const wire::MatmulLaunch& launch) {
  if (ItemSize(static_cast<DType>(launch.left().dtype())) == 1 &&
      ItemSize(static_cast<DType>(launch.right().dtype())) == 1)
    return kByteTile;
  const double tiles = static_cast<double>(TilesOf(launch.m(), kMatmulTile)) *
                       static_cast<double>(TilesOf(launch.n(), kMatmulTile)) *
                       static_cast<double>(Product(launch.batch_extents()));
  const bool is_small =
      tiles < kLeastTiles || launch.m() < kLeastExtent || launch.n() < kLeastExtent;
  return is_small ? kSmallTile : kMatmulTile;
}

}  // namespace

const char* MatmulEntry(const wire::MatmulLaunch& launch) {
  const int64_t tile = TileOf(launch);
  return tile == kByteTile    ? kByteMatmulEntry
         : tile == kSmallTile ? kSmallMatmulEntry
                              : kMatmulEntry;
}

LaunchShape MatmulShape(const wire::MatmulLaunch& launch) {
  const int64_t tile = TileOf(launch);
  auto tiles = [tile](int64_t extent, int64_t limit) {
    return static_cast<uint32_t>(std::clamp<int64_t>(TilesOf(extent, tile), 1, limit));
  };
  LaunchShape shape;
  shape.block[0] = kMatmulThreads;
  shape.grid[0] = tiles(launch.n(), (int64_t{1} << 31) - 1);
  shape.grid[1] = tiles(launch.m(), 65535);
  shape.grid[2] =
      static_cast<uint32_t>(std::clamp<uint64_t>(Product(launch.batch_extents()), 1, 65535));
  return shape;
}

int64_t MatmulRows(const wire::MatmulLaunch& launch) {
  return static_cast<int64_t>(Product(launch.batch_extents())) * launch.m();
}

LaunchShape PassShape(const wire::RoutineLaunch& launch, const RoutinePass& pass,
                      const RoutineTarget& target) {
  const bool block = RoutinePhases(launch.routine(), target)[pass.phase] == PhaseKind::kBlock;
  const int64_t blocks = block ? pass.items : TilesOf(pass.items, kRoutineThreads);
  const int64_t limit = int64_t{std::max(target.num_multiprocessors, 1)} * 32;
  LaunchShape shape;
  shape.block[0] = kRoutineThreads;
  shape.grid[0] = static_cast<uint32_t>(std::clamp<int64_t>(blocks, 1, limit));
  return shape;
}

LaunchBlock PackRoutine(const wire::RoutineLaunch& launch, absl::Span<const uint64_t> addresses,
                        uint64_t scratch_address, uint64_t fault_address) {
  LaunchBlock block(8);
  block[1] = Product(launch.extents());
  block[6] = scratch_address;
  block[7] = fault_address;
  Append(block, launch.extents());
  for (int i = 0; i < launch.operands_size(); ++i) {
    const wire::RoutineOperand& operand = launch.operands(i);
    AppendOperand(block, addresses[i], operand.operand());
    Append(block, operand.own_extents());
    if (operand.own_extents().empty()) block.push_back(1);
    Append(block, operand.own_strides());
    if (operand.own_strides().empty()) block.push_back(0);
  }
  Align(block);
  AppendScalars(block, launch.scalars());
  return block;
}

void SetPass(const RoutinePass& pass, LaunchBlock* block) {
  (*block)[0] = static_cast<uint64_t>(pass.items);
  for (int i = 0; i < 4; ++i) (*block)[2 + i] = static_cast<uint64_t>(pass.arguments[i]);
}

}  // namespace stride::codegen
