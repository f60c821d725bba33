#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>

#include "stride/v1/operation.pb.h"

namespace stride::ops {

struct OperationKind;

// One line for each kind of operation, by its name in the oneof `kind`. Its row, k<Name>Kind, is
// defined in the kind's own file (operation_kind.h says what a row has).
#define STRIDE_OPERATION_KINDS(ROW) \
  ROW(Ufunc)                        \
  ROW(Expression)                   \
  ROW(Reduction)                    \
  ROW(Matmul)                       \
  ROW(KernelLaunch)                 \
  ROW(Creation)                     \
  ROW(Copy)                         \
  ROW(View)                         \
  ROW(Accumulation)                 \
  ROW(Gather)                       \
  ROW(Scatter)                      \
  ROW(Compress)                     \
  ROW(Nonzero)                      \
  ROW(Sort)                         \
  ROW(Search)                       \
  ROW(Linalg)                       \
  ROW(Fft)                          \
  ROW(Histogram)                    \
  ROW(TopK)                         \
  ROW(GroupReduce)                  \
  ROW(Select)                       \
  ROW(Partition)                    \
  ROW(Interpolate)                  \
  ROW(Correlate)                    \
  ROW(ReduceAt)                     \
  ROW(Outer)                        \
  ROW(ApplyAt)                      \
  ROW(Gufunc)                       \
  ROW(ProgramCall)                  \
  ROW(Loop)                         \
  ROW(Branch)

#define STRIDE_DECLARE(name) extern const OperationKind k##name##Kind;
STRIDE_OPERATION_KINDS(STRIDE_DECLARE)
#undef STRIDE_DECLARE
// The row of an operation of no kind, which planning refuses.
extern const OperationKind kNoKind;

// Rows by the oneof's number. Immutable.
class KindTable {
 public:
  struct Row {
    size_t number;  // the oneof field's number
    const OperationKind* kind;
  };
  constexpr KindTable(std::initializer_list<Row> rows) {
    for (const Row& row : rows) kinds_.at(row.number) = row.kind;
  }
  // The same table with one more row, or another one, for a test.
  constexpr KindTable With(const Row& row) const {
    KindTable table = *this;
    table.kinds_.at(row.number) = row.kind;
    return table;
  }
  // Null where there is none.
  constexpr const OperationKind* Find(size_t number) const {
    return number < kinds_.size() ? kinds_[number] : nullptr;
  }
  const OperationKind& Of(const v1::Operation& operation) const {
    const OperationKind* kind = Find(operation.kind_case());
    return kind != nullptr ? *kind : kNoKind;
  }

 private:
  std::array<const OperationKind*, 64> kinds_{};
};

// The table of the daemon.
const KindTable& Kinds();
inline const OperationKind& KindOf(const v1::Operation& operation) { return Kinds().Of(operation); }

}  // namespace stride::ops
