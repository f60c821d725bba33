#include "server/worker/cuda/driver/operand_bounds.h"

#include "absl/strings/str_cat.h"
#include "server/store/dtype.h"

namespace stride::cuda {

absl::Status CheckRange(uint64_t offset, uint64_t size, uint64_t arena_size) {
  if (offset <= arena_size && size <= arena_size - offset) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("range outside its arena: ", size,
                                                 " bytes at offset ", offset, " of ", arena_size));
}

absl::Status CheckOperand(const wire::Operand& operand, absl::Span<const int64_t> extents,
                          uint64_t arena_size) {
  const auto dtype = DTypeFromNumber(operand.dtype());
  if (!dtype) return absl::InvalidArgumentError(absl::StrCat("no dtype ", operand.dtype()));
  const int64_t item = ItemSize(*dtype);
  if (static_cast<size_t>(operand.strides_size()) != extents.size()) {
    return absl::InvalidArgumentError(absl::StrCat("operand with ", operand.strides_size(),
                                                   " strides for ", extents.size(), " axes"));
  }
  // Sums of 64-bit products: 128 bits cannot overflow over any rank that fits a message.
  __int128 low = operand.offset(), high = low + item;
  bool aligned = operand.offset() % item == 0;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] < 0) return absl::InvalidArgumentError("negative extent");
    if (extents[axis] == 0) return absl::OkStatus();
    const int64_t stride = operand.strides(static_cast<int>(axis));
    const __int128 reach = static_cast<__int128>(stride) * (extents[axis] - 1);
    (reach < 0 ? low : high) += reach;
    if (extents[axis] > 1) aligned = aligned && stride % item == 0;
  }
  if (low < 0 || high > static_cast<__int128>(arena_size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("operand outside its arena: offset ", operand.offset(), " of ", arena_size));
  }
  if (!aligned) {
    return absl::InvalidArgumentError(
        absl::StrCat("operand not aligned to its items of ", item, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace stride::cuda
