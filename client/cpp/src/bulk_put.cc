#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>

#include "client/cpp/src/bulk.h"
#include "client/cpp/src/convert.h"
#include "client/cpp/src/grpc_time.h"
#include "client/cpp/src/local_raw_call.h"
#include "client/cpp/src/run_ranges.h"
#include "client/cpp/src/shared_transfer.h"
#include "client/cpp/src/status.h"
#include "stride/v1/array_service.grpc.pb.h"
#include "stride/v1/array_service.pb.h"

namespace stride::internal {
namespace {

constexpr int64_t kChunk = 1 << 20;
// PutArrayRequest.data, length-delimited.
constexpr uint8_t kDataTag = (2 << 3) | 2;
// After a failed call the transport may still hold slices for a peer that does not read; after this
// time the connection is dropped.
constexpr auto kPatience = std::chrono::seconds(1);
// A restarted daemon is back in a second, on a busy machine in several.
constexpr auto kDaemonReturns = std::chrono::seconds(30);
constexpr int kMaxRestarts = 10;

// Memory borrowed by the transport, slice by slice.
class LentMemory {
 public:
  grpc::Slice Lend(const std::byte* data, int64_t size) {
    {
      std::lock_guard lock(mutex_);
      ++lent_;
    }
    return grpc::Slice(const_cast<std::byte*>(data), static_cast<size_t>(size), &LentMemory::Return,
                       this);
  }

  bool AllBackWithin(std::chrono::nanoseconds time) {
    std::unique_lock lock(mutex_);
    return returned_.wait_for(lock, time, [this] { return lent_ == 0; });
  }

  void WaitAllBack() {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return lent_ == 0; });
  }

 private:
  static void Return(void* self) {
    auto* memory = static_cast<LentMemory*>(self);
    std::lock_guard lock(memory->mutex_);
    --memory->lent_;
    memory->returned_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable returned_;
  int64_t lent_ = 0;
};

grpc::ByteBuffer Serialized(const google::protobuf::Message& message) {
  const std::string text = message.SerializeAsString();
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer DataMessage(LentMemory& memory, const std::byte* data, int64_t size) {
  uint8_t head[16];
  head[0] = kDataTag;
  const uint8_t* end =
      google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(size, head + 1);
  const grpc::Slice slices[2] = {grpc::Slice(head, static_cast<size_t>(end - head)),
                                 memory.Lend(data, size)};
  return grpc::ByteBuffer(slices, 2);
}

bool Parse(const grpc::ByteBuffer& buffer, google::protobuf::Message* message) {
  grpc::Slice slice;
  return buffer.DumpToSingleSlice(&slice).ok() &&
         message->ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
}

Result<v1::PutArrayResponse> SendRange(RawCall& call, const v1::PutArrayRequest& header,
                                       LentMemory& memory, std::span<const std::byte> data,
                                       Range range, const TransferOptions& options) {
  bool open = call.Write(Serialized(header));
  for (int64_t at = range.begin; open && at < range.end; at += kChunk) {
    const int64_t size = std::min(kChunk, range.end - at);
    open = call.Write(DataMessage(memory, data.data() + at, size));
    if (open && options.progress) options.progress(size);
  }
  v1::PutArrayResponse response;
  grpc::ByteBuffer reply;
  const bool answered = open && call.WritesDone() && call.Read(&reply);
  if (auto ended = call.Finish(); !ended) return ended.error();
  if (!answered || !Parse(reply, &response)) {
    return LocalError(Code::kInternal, "The daemon's answer to the upload cannot be read");
  }
  return response;
}

// nullopt: no region is usable now.
std::optional<Result<ArrayInfo>> PutBySharedMemory(const BulkWays& ways, LocalCalls* local,
                                                   const v1::PutArrayRequest& header,
                                                   std::span<const std::byte> data,
                                                   const PutOptions& options,
                                                   std::chrono::nanoseconds default_timeout) {
  const auto size = static_cast<int64_t>(data.size());
  return ways.shared.Use(data.data(), size, BounceBytesForPut(size, ways.channels.num_bulk()),
                         [&](const SharedRegion& region, std::optional<int64_t> in_place) {
                           return PutShared(
                               {ways.channels, local, region, in_place, options, default_timeout},
                               header, data);
                         });
}

v1::PutArrayRequest RequestOf(const std::string& parent, const std::string& array_id,
                              const ArraySpec& spec, const PutOptions& options) {
  v1::PutArrayRequest request;
  auto* header = request.mutable_header();
  header->set_parent(parent);
  header->set_array_id(array_id);
  ToProto(spec, header->mutable_spec());
  header->set_device(options.device);
  if (options.sharding) ToProto(*options.sharding, header->mutable_sharding());
  header->set_overwrite(options.overwrite);
  if (options.ttl.count() > 0) header->mutable_ttl()->set_seconds(options.ttl.count());
  return request;
}

// Uploads by messages. `ranges` are all of `data`, or its missing parts.
Result<ArrayInfo> PutRanges(const BulkWays& ways, LocalCalls* local,
                            const v1::PutArrayRequest& request, std::span<const std::byte> data,
                            const std::vector<Range>& ranges, const PutOptions& options,
                            std::chrono::nanoseconds default_timeout) {
  const bool in_parts =
      ranges.size() > 1 || ranges[0].end - ranges[0].begin != static_cast<int64_t>(data.size());
  std::mutex mutex;
  ArrayInfo info;
  auto moved =
      RunRanges(ranges, options,
                [&](int i, Range range, const TransferOptions& call_options) -> Result<void> {
                  v1::PutArrayRequest mine = request;
                  if (in_parts) {
                    mine.mutable_header()->mutable_range()->set_begin(range.begin);
                    mine.mutable_header()->mutable_range()->set_end(range.end);
                  }
                  auto channel = ways.channels.Bulk(i);
                  LentMemory memory;
                  auto response = [&] {
                    auto call = BeginRawCall(local, channel, RawCall::Method::kPutArray,
                                             call_options, default_timeout);
                    return SendRange(*call, mine, memory, data, range, call_options);
                  }();
                  if (!memory.AllBackWithin(kPatience)) {
                    ways.channels.DropBulk(i, channel);
                    channel.reset();
                    memory.WaitAllBack();
                  }
                  if (!response) return response.error();
                  std::lock_guard lock(mutex);
                  // Any range may complete the array; its call returns the READY state.
                  if (info.name.empty() || response->array().state() == v1::Array::STATE_READY)
                    info = FromProto(response->array());
                  return {};
                });
  if (!moved) return moved.error();
  return info;
}

// The ranges that the daemon has of an interrupted upload; nullopt: it does not know the array.
std::optional<Result<v1::Array>> Describe(const BulkWays& ways, const std::string& name) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(GrpcTimeAfter(kDaemonReturns));
  v1::GetArrayRequest request;
  request.set_name(name);
  v1::GetArrayResponse response;
  const grpc::Status status =
      v1::ArrayService::NewStub(ways.channels.control())->GetArray(&context, request, &response);
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) return std::nullopt;
  if (!status.ok()) return ToError(status);
  return std::move(*response.mutable_array());
}

// Whether a ready array has this content.
bool Holds(const BulkWays& ways, const std::string& name, const ArraySpec& wanted,
           const ArraySpec& spec, std::span<const std::byte> data, const CallOptions& options,
           std::chrono::nanoseconds default_timeout) {
  if (!(spec == wanted)) return false;
  std::vector<std::byte> there(data.size());
  return FetchBulk(ways, name, there, TransferOptions{options, nullptr}, default_timeout) &&
         std::equal(there.begin(), there.end(), data.begin());
}

std::vector<Range> MissingOf(const v1::Array& array, int64_t size) {
  std::vector<Range> missing;
  int64_t at = 0;
  for (const auto& range : array.received()) {
    if (range.begin() > at) missing.push_back({at, range.begin()});
    at = std::max(at, range.end());
  }
  if (at < size) missing.push_back({at, size});
  return missing;
}

}  // namespace

Result<ArrayInfo> PutBulk(const BulkWays& ways, const std::string& parent,
                          const std::string& array_id, const ArraySpec& spec,
                          std::span<const std::byte> data, const PutOptions& options,
                          std::chrono::nanoseconds default_timeout) {
  const v1::PutArrayRequest request = RequestOf(parent, array_id, spec, options);
  const auto ranges = CutRanges(static_cast<int64_t>(data.size()), ways.channels.num_bulk());
  LocalCalls* const local = ranges.size() == 1 ? &ways.local : nullptr;
  if (auto put = PutBySharedMemory(ways, local, request, data, options, default_timeout))
    return *std::move(put);
  return PutRanges(ways, local, request, data, ranges, options, default_timeout);
}

Result<ArrayInfo> PutNamed(const BulkWays& ways, const std::string& parent,
                           const std::string& array_id, const ArraySpec& spec,
                           std::span<const std::byte> data, const PutOptions& options,
                           std::chrono::nanoseconds default_timeout) {
  const auto size = static_cast<int64_t>(data.size());
  const std::string name = parent + "/arrays/" + array_id;
  std::atomic<int64_t> reported = 0;
  PutOptions counted = options;
  counted.progress = [&](int64_t bytes) {
    reported += bytes;
    if (options.progress) options.progress(bytes);
  };
  // Subtracts reported progress that did not arrive.
  const auto report_as = [&](int64_t bytes) {
    if (options.progress) options.progress(bytes - reported);
    reported = bytes;
  };
  auto put = PutBulk(ways, parent, array_id, spec, data, counted, default_timeout);
  for (int restarts = 0; !put && put.error().code == Code::kUnavailable && restarts < kMaxRestarts;
       ++restarts) {
    if (options.cancellation && options.cancellation->cancelled()) break;
    const Error cut = put.error();
    const auto known = Describe(ways, name);
    if (known && !*known) return cut;  // no daemon returns
    // The channel of control calls may be back while those of the data are in their backoff. Calls
    // on these fail at once and would use up the retries.
    if (!ways.channels.ConnectBulk(GrpcTimeAfter(kDaemonReturns))) return cut;
    auto missing = CutRanges(size, ways.channels.num_bulk());
    // An overwritten array is READY because of its old content.
    if (known && !options.overwrite) {
      const v1::Array& array = **known;
      if (array.state() == v1::Array::STATE_READY) {
        // All bytes had arrived and the answer was lost, or the name was taken before.
        if (!Holds(ways, name, spec, FromProto(array).spec, data, options, default_timeout))
          return LocalError(Code::kAlreadyExists, "The name is taken by another array: " + name);
        report_as(size);
        return FromProto(array);
      }
      if (array.state() != v1::Array::STATE_PENDING) return cut;
      if (auto rest = MissingOf(array, size); !rest.empty()) missing = std::move(rest);
    }
    int64_t left = 0;
    for (const Range& range : missing) left += range.end - range.begin;
    report_as(size - left);
    // In messages: the regions ended with their daemon.
    put = PutRanges(ways, nullptr, RequestOf(parent, array_id, spec, options), data, missing,
                    counted, default_timeout);
  }
  return put;
}

}  // namespace stride::internal
