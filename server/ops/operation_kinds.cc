#include "server/ops/operation_kinds.h"

namespace stride::ops {

// A new field of the oneof has a row, or this does not compile or operation_kinds_test fails.
const KindTable& Kinds() {
#define STRIDE_ROW(name) {v1::Operation::k##name, &k##name##Kind},
  static constexpr KindTable kTable = {STRIDE_OPERATION_KINDS(STRIDE_ROW)};
#undef STRIDE_ROW
  return kTable;
}

}  // namespace stride::ops
