#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/session/control_account.h"
#include "server/session/control_cost.h"
#include "server/session/resource_name.h"
#include "server/store/array_info.h"
#include "server/store/buffer.h"
#include "server/store/range_set.h"

namespace stride::session {

// An upload under way into a new array: ends when every byte has arrived, or when no call has
// touched it for the lease.
struct Receiving {
  store::RangeSet ranges;
  std::shared_ptr<store::Access> access;  // keeps readers waiting until it is complete
  int num_calls = 0;                      // calls writing now
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
  absl::Mutex allocation;  // held, without the scheduler's lock, by the call that gets the memory;
                           // others wait on it
};

struct Array;
// Most operations have no more.
using ArrayList = absl::InlinedVector<std::shared_ptr<Array>, 3>;

// Of an array that is spread over devices: the arrays that it is made of, one on each device, each
// with a buffer of its own. Parts have no names and stand in no catalogue; only the whole owns
// them, and what is made of it.
struct Shards {
  int axis = 0;             // that is split, in [0, rank)
  bool replicated = false;  // in place of a split: every part is the whole
  std::vector<int> devices;
  ArrayList parts;  // one for each device; some may be empty
};

// What a handle or a name stands for: a typed view of a buffer, an array spread over devices, or
// the first error. Guarded by the scheduler's lock, except what is const.
struct Array {
  TenantId tenant;     // of arrays in a catalogue, and of their parts
  CatalogueName name;  // empty for results that only travel inline
  SharedInfo info;
  std::shared_ptr<store::Buffer>
      buffer;  // null when the array could not even be planned: `error` tells why; or with `shards`
  std::shared_ptr<const Shards> shards;  // null: in one piece; `info` is of the whole
  absl::Status error;
  SteadyTime create_time;
  SteadyTime expire_time = SteadyTime::InfiniteFuture();
  std::shared_ptr<Receiving> receiving;  // while an upload is incomplete
  uint64_t record = 0;                   // id of its record in the journal; 0: none
  bool changed = false;                  // waits for the recorder
  uint64_t durable = 0;                  // id of its row on disk; 0: none
  ControlCharge control;                 // while it is in a catalogue, and for who still has it

  // The first error that spoiled it, or a part of it, or that cost its session a write to it.
  const absl::Status& status() const { return StatusFor(name.session()); }

 private:
  // `session` is empty for an array that stands in no session.
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

}  // namespace stride::session
