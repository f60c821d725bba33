#include "server/engine/persistence/describe.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/steady_time.h"
#include "server/engine/persistence/record_convert.h"
#include "server/ops/sharding.h"

namespace stride::engine {
namespace {

void SetDuration(absl::Duration duration, google::protobuf::Duration* out) {
  if (duration < absl::ZeroDuration()) duration = absl::ZeroDuration();
  int64_t nanos = absl::ToInt64Nanoseconds(duration);
  out->set_seconds(nanos / 1000000000);
  out->set_nanos(static_cast<int32_t>(nanos % 1000000000));
}

v1::Array::State StateOf(const session::Array& array) {
  if (!array.status().ok()) return v1::Array::STATE_FAILED;
  if (array.shards != nullptr) {
    v1::Array::State state = v1::Array::STATE_READY;
    for (const auto& part : array.shards->parts) {
      if (StateOf(*part) == v1::Array::STATE_PENDING) state = v1::Array::STATE_PENDING;
    }
    return state;
  }
  if (array.buffer->writer != nullptr) return v1::Array::STATE_PENDING;
  return v1::Array::STATE_READY;
}

int64_t BytesOf(const session::Array& array) {
  if (array.shards == nullptr) return array.buffer != nullptr ? array.info->size_bytes() : 0;
  int64_t bytes = 0;
  for (const auto& part : array.shards->parts) bytes += BytesOf(*part);
  return bytes;
}

void AddRange(int64_t begin, int64_t end, v1::Array* out) {
  v1::ByteRange* range = out->add_received();
  range->set_begin(begin);
  range->set_end(end);
}

// Adds the received ranges of an upload to several devices. Where the parts alternate in the whole
// array's order, only the complete prefix counts.
void AddReceived(const session::Array& array, v1::Array* out) {
  const session::Shards& shards = *array.shards;
  const ArrayInfo& info = array.info;
  auto arrived = [](const session::Array& part) {
    store::RangeSet whole;
    whole.Add(0, part.info->size_bytes());
    return part.receiving != nullptr ? part.receiving->ranges.ranges() : whole.ranges();
  };
  if (shards.replicated) {
    for (const auto& [begin, end] : arrived(*shards.parts[0])) AddRange(begin, end, out);
    return;
  }
  const ops::ByteRuns runs(info, shards.axis, shards.parts.size());
  store::RangeSet all;
  int64_t prefix = info.size_bytes();
  for (size_t i = 0; i < shards.parts.size(); ++i) {
    const auto ranges = arrived(*shards.parts[i]);
    const int part = static_cast<int>(i);
    if (shards.parts[i]->info->size_bytes() == 0) continue;
    if (runs.is_one_row()) {
      for (const auto& [begin, end] : ranges)
        all.Add(runs.PositionOf(part, begin), runs.PositionOf(part, begin) + end - begin);
      continue;
    }
    const bool begun = !ranges.empty() && ranges.begin()->first == 0;
    const int64_t own = begun ? ranges.begin()->second : 0;
    if (own < shards.parts[i]->info->size_bytes())
      prefix = std::min(prefix, runs.PositionOf(part, own));
  }
  if (!runs.is_one_row() && prefix > 0) all.Add(0, prefix);
  for (const auto& [begin, end] : all.ranges()) AddRange(begin, end, out);
}

void DescribeShards(const Core& core, const session::Array& array, v1::Array* out) {
  const session::Shards& shards = *array.shards;
  v1::Sharding* sharding = out->mutable_sharding();
  sharding->set_axis(shards.axis);
  sharding->set_replicated(shards.replicated);
  for (int device : shards.devices) {
    const std::string name = absl::StrCat("devices/", core.broker->devices()[device].id());
    sharding->add_devices(name);
    if (out->state() == v1::Array::STATE_READY) out->add_devices(name);
  }
  if (session::IsReceiving(array)) AddReceived(array, out);
}

}  // namespace

v1::Array Describe(const Core& core, const session::Array& array) {
  v1::Array description;
  Describe(core, array, &description);
  return description;
}

void Describe(const Core& core, const session::Array& array, v1::Array* empty) {
  v1::Array& out = *empty;
  out.set_name(array.name.ToString());
  out.set_state(StateOf(array));
  if (!array.status().ok()) SetStatus(array.status(), out.mutable_error());
  session::DescribeTimes(array.create_time, array.expire_time, &out);
  if (array.buffer == nullptr && array.shards == nullptr) return;
  session::DescribeInfo(*array.info, &out);
  if (array.shards != nullptr) {
    DescribeShards(core, array, &out);
    return;
  }
  if (out.state() == v1::Array::STATE_READY) {
    for (const auto& [device, replica] : array.buffer->replicas) {
      if (!core.IsDevice(device)) continue;
      out.add_devices(absl::StrCat("devices/", core.broker->devices()[device].id()));
    }
  }
  if (array.receiving != nullptr) {
    for (const auto& [begin, end] : array.receiving->ranges.ranges()) AddRange(begin, end, &out);
  }
}

v1::Session Describe(const session::Session& session) {
  v1::Session out;
  out.set_name(absl::StrCat("sessions/", session.id));
  SetTimestamp(DateOf(session.create_time), out.mutable_create_time());
  SetTimestamp(DateOf(session.expire_time), out.mutable_expire_time());
  out.set_num_arrays(static_cast<int64_t>(session.arrays.size()));
  int64_t bytes = 0;
  for (const auto& [handle, array] : session.arrays) bytes += BytesOf(*array);
  out.set_array_bytes(bytes);
  return out;
}

v1::Timeline DescribeTimeline(const Core& core, const Task& task) {
  v1::Timeline out;
  if (task.timeline.submit_time != SteadyTime())
    SetTimestamp(task.timeline.submit_time, out.mutable_submit_time());
  int device = task.queue != nullptr ? task.queue->device : task.timeline.ran_on_device;
  if (device >= 0) out.set_device(absl::StrCat("devices/", core.broker->devices()[device].id()));
  if (task.timeline.compile_end > task.timeline.compile_start)
    SetDuration(task.timeline.compile_end - task.timeline.compile_start, out.mutable_compile());
  if (task.timeline.move_end > task.timeline.move_start)
    SetDuration(task.timeline.move_end - task.timeline.move_start, out.mutable_upload());
  bool begun = task.timeline.begin_time != SteadyTime(), done = task.state == TaskState::kDone;
  if (begun || done) {
    SteadyTime queue_end = begun ? task.timeline.begin_time : task.timeline.end_time;
    absl::Duration moved = task.timeline.move_end > task.timeline.move_start
                               ? task.timeline.move_end - task.timeline.move_start
                               : absl::ZeroDuration();
    SetDuration(queue_end - task.timeline.submit_time - moved, out.mutable_queue());
  }
  if (begun) SetTimestamp(task.timeline.begin_time, out.mutable_start_time());
  if (done) SetTimestamp(task.timeline.end_time, out.mutable_end_time());
  if (begun && done) SetDuration(absl::Seconds(task.timeline.run_seconds), out.mutable_run());
  return out;
}

}  // namespace stride::engine
