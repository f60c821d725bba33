#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/session/control_account.h"
#include "server/session/control_cost.h"
#include "server/session/resource_name.h"
#include "server/store/array_info.h"
#include "server/store/buffer.h"
#include "server/store/range_set.h"

namespace stride::session {

// An upload in flight into a new array. It ends when every byte has arrived, or when no call has
// written to it within the lease.
struct Receiving {
  store::RangeSet ranges;
  std::shared_ptr<store::Access> access;  // keeps readers waiting until the upload is complete
  int num_calls = 0;                      // number of calls that write now
  SteadyTime lease_end;
  ControlCharge control;
  void CountFor(ControlAccount& account) { control = account.Hold(Cost()); }
  void AddRange(int64_t begin, int64_t end) {
    ranges.Add(begin, end);
    control.Set(Cost());
  }
  int64_t Cost() const {
    return kUploadControlBytes +
           static_cast<int64_t>(ranges.ranges().size()) * kUploadRangeControlBytes;
  }
  int device = -1;
  // Locked, outside a transaction, by the call that allocates the memory; other calls wait for it.
  absl::Mutex allocation;
};

struct Array;
using ArrayPtr = std::shared_ptr<Array>;
// Most operations have at most three.
using ArrayList = absl::InlinedVector<ArrayPtr, 3>;

// The parts of a sharded array: one array per device, each with its own buffer. Parts have no names
// and are in no catalogue; only the whole array, and views of it, own them.
struct Shards {
  int axis = 0;             // the axis that is split, in [0, rank)
  bool replicated = false;  // instead of a split: each part is the whole
  std::vector<int> devices;
  ArrayList parts;  // one per device; some may be empty
};

// The referent of a handle or a name: a typed view of a buffer, a sharded array, or the first
// error. The tenant's transactions guard it, except const members.
struct Array {
  TenantId tenant;     // set for arrays in a catalogue and their parts
  CatalogueName name;  // empty for results that only travel inline
  SharedInfo info;
  std::shared_ptr<store::Buffer>
      buffer;  // null with `shards`, or when the array could not be planned: `error` has the reason
  std::shared_ptr<const Shards> shards;  // null: in one piece; otherwise `info` describes the whole
  absl::Status error;
  SteadyTime create_time;
  SteadyTime expire_time = SteadyTime::InfiniteFuture();
  std::shared_ptr<Receiving> receiving;  // set while an upload is incomplete
  uint64_t record = 0;                   // id of its record in the journal; 0: none
  bool changed = false;                  // waits for the journal writer
  uint64_t durable = 0;                  // id of its row on disk; 0: none
  // held while a catalogue has the array, and until its last reference is released
  ControlCharge control;

  // The first error that spoiled the array or one of its parts, or that lost a write of its
  // session.
  const absl::Status& status() const { return StatusFor(name.session()); }

 private:
  // `session` is empty for an array without a session.
  const absl::Status& StatusFor(std::string_view session) const {
    if (!error.ok()) return error;
    if (buffer != nullptr) {
      if (!buffer->error.ok() || buffer->lost_writes.empty()) return buffer->error;
      return buffer->LostWriteOf(session);
    }
    if (shards == nullptr) return error;
    for (const auto& part : shards->parts) {
      if (const absl::Status& status = part->StatusFor(session); !status.ok()) return status;
    }
    return error;
  }
};

// The arrays that have the bytes: the parts of a sharded array, else the array itself, which must
// outlive the result.
inline absl::Span<const ArrayPtr> PartsOf(const ArrayPtr& array) {
  if (array->shards != nullptr) return array->shards->parts;
  return {&array, 1};
}

// Whether an upload of the array, or of one of its parts, is incomplete.
inline bool IsReceiving(const Array& array) {
  if (array.shards == nullptr) return array.receiving != nullptr;
  const ArrayList& parts = array.shards->parts;
  return std::any_of(parts.begin(), parts.end(),
                     [](const ArrayPtr& part) { return part->receiving != nullptr; });
}

}  // namespace stride::session
