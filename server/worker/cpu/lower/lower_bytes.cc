#include <cstring>

#include "server/worker/cpu/lower/lowering.h"

namespace stride::cpu {
namespace {

// Bytes below which a second thread does not pay.
constexpr int64_t kLeastBytes = 1 << 20;

}  // namespace

absl::StatusOr<Work> LowerZeroFill(const LoweringContext& context, const wire::ZeroFill& fill) {
  auto place = context.arenas->Bytes(fill.arena(), fill.offset(), fill.size());
  if (!place.ok()) return place.status();
  int64_t size = static_cast<int64_t>(fill.size());
  return Work{[pool = context.pool, to = place->address, size] {
                pool->ParallelFor(size, GrainFor(size, kLeastBytes, pool->num_threads()),
                                  [to](int64_t begin, int64_t end, int) {
                                    std::memset(to + begin, 0, end - begin);
                                  });
                return absl::OkStatus();
              },
              {*place}};
}

absl::StatusOr<Work> LowerCopyBytes(const LoweringContext& context, const wire::CopyBytes& copy) {
  auto from = context.arenas->Bytes(copy.from_arena(), copy.from_offset(), copy.size());
  if (!from.ok()) return from.status();
  auto to = context.arenas->Bytes(copy.to_arena(), copy.to_offset(), copy.size());
  if (!to.ok()) return to.status();
  int64_t size = static_cast<int64_t>(copy.size());
  return Work{[pool = context.pool, from = from->address, to = to->address, size] {
                // Overlapping ranges are moved by one call: pieces would overwrite each other's
                // source.
                bool overlap = from < to + size && to < from + size;
                int64_t grain = overlap ? size : GrainFor(size, kLeastBytes, pool->num_threads());
                pool->ParallelFor(size, grain, [=](int64_t begin, int64_t end, int) {
                  std::memmove(to + begin, from + begin, end - begin);
                });
                return absl::OkStatus();
              },
              {*from, *to}};
}

}  // namespace stride::cpu
