#include "client/cpp/src/shared_transfer.h"

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "client/cpp/src/convert.h"
#include "client/cpp/src/local_raw_call.h"
#include "client/cpp/src/run_ranges.h"
#include "client/cpp/src/shared_memory.h"
#include "client/cpp/src/status.h"

namespace stride::internal {
namespace {

// Bytes announced by one message, so that the daemon copies them while this side copies the next.
constexpr int64_t kChunk = int64_t{2} << 20;
// Without a copy on this side there is nothing to overlap: few messages.
constexpr int64_t kInPlaceChunk = int64_t{16} << 20;
// Bytes of one upload call: two of them fit a core's share of the cache. For larger arrays no call
// moves less.
constexpr int64_t kPutPart = int64_t{4} << 20;
// Each thread's calls alternate between two parts of the region, since only a call's end shows that
// the daemon has finished with its part.
constexpr int64_t kPartsOfThread = 2;
// Limit of threads: more copy no faster, and the smallest region has a chunk for each part of each
// thread.
constexpr int kMaxThreads = 8;
static_assert(kMaxThreads * kPartsOfThread * kChunk <= SharedMemory::kLeastBounceBytes);

std::vector<Range> Cut(int64_t size, int num_bulk) {
  return CutRanges(size, std::min(num_bulk, kMaxThreads));
}

grpc::ByteBuffer Serialized(const google::protobuf::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

bool Parse(const grpc::ByteBuffer& buffer, google::protobuf::Message* message) {
  grpc::Slice slice;
  return buffer.DumpToSingleSlice(&slice).ok() &&
         message->ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
}

int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// A call, its part of the region, and its part of the array.
struct Part {
  int64_t offset = 0;  // in the region
  Range range;
  std::unique_ptr<RawCall> call;
};

// --- uploads ---

class PutThread {
 public:
  PutThread(const SharedCall& shared, const v1::PutArrayRequest& header,
            std::span<const std::byte> data, int index, const TransferOptions& options)
      : shared_(shared),
        header_(header),
        data_(data),
        index_(index),
        options_(options),
        channel_(shared.channels.Bulk(index)) {}

  // `done(response)` for each call.
  template <typename Done>
  Result<void> Run(Range range, int64_t part_bytes, Done done) {
    std::array<Part, kPartsOfThread> parts;
    int turn = 0;
    for (int64_t at = range.begin; at < range.end; at += part_bytes, ++turn) {
      Part& part = parts[turn % kPartsOfThread];
      if (auto ended = End(part, done); !ended) return ended;
      part.offset = shared_.in_place
                        ? *shared_.in_place + at
                        : (index_ * kPartsOfThread + turn % kPartsOfThread) * part_bytes;
      part.range = {at, std::min(range.end, at + part_bytes)};
      Begin(part);
    }
    for (int i = 0; i < kPartsOfThread; ++i, ++turn) {
      if (auto ended = End(parts[turn % kPartsOfThread], done); !ended) return ended;
    }
    return {};
  }

 private:
  // End returns the errors.
  void Begin(Part& part) {
    part.call = BeginRawCall(shared_.local, channel_, RawCall::Method::kPutArray, options_,
                             shared_.default_timeout);
    v1::PutArrayRequest mine = header_;
    mine.mutable_header()->mutable_range()->set_begin(part.range.begin);
    mine.mutable_header()->mutable_range()->set_end(part.range.end);
    mine.mutable_header()->set_region(shared_.region.name());
    bool open = part.call->Write(Serialized(mine));
    const int64_t size = part.range.end - part.range.begin;
    const int64_t step = shared_.in_place ? size : kChunk;
    for (int64_t at = 0; open && at < size; at += step) {
      const int64_t count = std::min(step, size - at);
      if (!shared_.in_place) {
        std::memcpy(shared_.region.data() + part.offset + at, data_.data() + part.range.begin + at,
                    static_cast<size_t>(count));
      }
      v1::PutArrayRequest message;
      message.mutable_chunk()->set_offset(part.offset + at);
      message.mutable_chunk()->set_size(count);
      open = part.call->Write(Serialized(message));
      if (open && options_.progress) options_.progress(count);
    }
    if (open) part.call->WritesDone();
  }

  template <typename Done>
  Result<void> End(Part& part, Done done) {
    if (part.call == nullptr) return {};
    auto call = std::move(part.call);
    grpc::ByteBuffer reply;
    v1::PutArrayResponse response;
    const bool answered = call->Read(&reply);
    if (auto ended = call->Finish(); !ended) return ended;
    if (!answered || !Parse(reply, &response))
      return LocalError(Code::kInternal, "The daemon's answer to the upload cannot be read");
    done(response);
    return {};
  }

  const SharedCall& shared_;
  const v1::PutArrayRequest& header_;
  const std::span<const std::byte> data_;
  const int index_;
  const TransferOptions& options_;
  const std::shared_ptr<grpc::Channel> channel_;
};

// --- downloads ---

class FetchThread {
 public:
  FetchThread(const SharedCall& shared, const std::string& name, std::span<std::byte> out,
              int index, const TransferOptions& options, std::atomic<bool>* begun)
      : shared_(shared),
        name_(name),
        out_(out),
        index_(index),
        options_(options),
        begun_(begun),
        channel_(shared.channels.Bulk(index)) {}

  Result<void> Run(Range range, int64_t part_bytes) {
    std::array<Part, kPartsOfThread> parts;
    int turn = 0;
    for (int64_t at = range.begin; at < range.end; at += part_bytes, ++turn) {
      Part& part = parts[turn % kPartsOfThread];
      if (auto received = Receive(part); !received) return received;
      part.offset = shared_.in_place
                        ? *shared_.in_place + at
                        : (index_ * kPartsOfThread + turn % kPartsOfThread) * part_bytes;
      part.range = {at, std::min(range.end, at + part_bytes)};
      Ask(part);
    }
    for (int i = 0; i < kPartsOfThread; ++i, ++turn) {
      if (auto received = Receive(parts[turn % kPartsOfThread]); !received) return received;
    }
    return {};
  }

 private:
  void Ask(Part& part) {
    v1::FetchArrayRequest request;
    request.set_name(name_);
    request.mutable_range()->set_begin(part.range.begin);
    request.mutable_range()->set_end(part.range.end);
    request.set_region(shared_.region.name());
    request.set_region_offset(part.offset);
    request.set_chunk_bytes(static_cast<int32_t>(shared_.in_place ? kInPlaceChunk : kChunk));
    part.call = BeginRawCall(shared_.local, channel_, RawCall::Method::kFetchArray, options_,
                             shared_.default_timeout);
    if (part.call->Write(Serialized(request))) part.call->WritesDone();
  }

  Result<void> Receive(Part& part) {
    if (part.call == nullptr) return {};
    auto call = std::move(part.call);
    int64_t moved = 0;
    const int64_t size = part.range.end - part.range.begin;
    bool sound = true;
    for (grpc::ByteBuffer message; sound && call->Read(&message); message.Clear()) {
      v1::FetchArrayResponse response;
      sound = Parse(message, &response);
      if (!sound || !response.has_chunk()) continue;
      const v1::RegionRange& chunk = response.chunk();
      sound = chunk.offset() == part.offset + moved && chunk.size() >= 0 &&
              chunk.size() <= size - moved;
      if (!sound) continue;
      if (!shared_.in_place) {
        std::memcpy(out_.data() + part.range.begin + moved, shared_.region.data() + chunk.offset(),
                    static_cast<size_t>(chunk.size()));
      }
      moved += chunk.size();
      begun_->store(true, std::memory_order_relaxed);
      if (options_.progress && chunk.size() > 0) options_.progress(chunk.size());
    }
    if (!sound) call->Cancel();
    auto ended = call->Finish();
    if (!sound)
      return LocalError(Code::kInternal, "The daemon reported bytes that were not requested");
    if (!ended) return ended;
    if (moved != size)
      return LocalError(Code::kDataLoss, "The download ended before its last byte");
    return {};
  }

  const SharedCall& shared_;
  const std::string& name_;
  const std::span<std::byte> out_;
  const int index_;
  const TransferOptions& options_;
  std::atomic<bool>* const begun_;
  const std::shared_ptr<grpc::Channel> channel_;
};

// Bytes of each call. Each thread has kPartsOfThread of them.
int64_t PartBytes(const SharedCall& call, int64_t largest_range, size_t num_threads, int64_t most) {
  if (call.in_place) return std::max<int64_t>(1, largest_range);
  const int64_t room =
      call.region.size() / (static_cast<int64_t>(num_threads) * kPartsOfThread) / kChunk * kChunk;
  const int64_t half = RoundUp((largest_range + 1) / kPartsOfThread, kChunk);
  return std::max(kChunk, std::min({std::max(half, kPutPart), room, most}));
}

int64_t Largest(const std::vector<Range>& ranges) {
  int64_t largest = 0;
  for (const Range& range : ranges) largest = std::max(largest, range.end - range.begin);
  return largest;
}

}  // namespace

int64_t BounceBytesForPut(int64_t size, int num_parts) {
  const auto threads = static_cast<int64_t>(Cut(size, num_parts).size());
  return threads * kPartsOfThread * kPutPart;
}

int64_t BounceBytesForFetch(int64_t size) {
  // For a view each call makes the daemon gather the view: few calls.
  return std::min(RoundUp(size, int64_t{32} << 20), SharedMemory::kMaxBounceBytes);
}

Result<ArrayInfo> PutShared(const SharedCall& call, const v1::PutArrayRequest& header,
                            std::span<const std::byte> data) {
  const auto ranges = Cut(static_cast<int64_t>(data.size()), call.channels.num_bulk());
  const int64_t part_bytes = PartBytes(call, Largest(ranges), ranges.size(), kPutPart);
  std::mutex mutex;
  ArrayInfo info;
  auto note = [&](const v1::PutArrayResponse& response) {
    std::lock_guard lock(mutex);
    // Any call may complete the array; that call returns the READY state.
    if (info.name.empty() || response.array().state() == v1::Array::STATE_READY)
      info = FromProto(response.array());
  };
  auto moved =
      RunRanges(ranges, call.options, [&](int i, Range range, const TransferOptions& options) {
        return PutThread(call, header, data, i, options).Run(range, part_bytes, note);
      });
  if (!moved) return moved.error();
  return info;
}

Result<void> FetchShared(const SharedCall& call, const std::string& name, std::span<std::byte> out,
                         std::atomic<bool>* begun) {
  const auto ranges = Cut(static_cast<int64_t>(out.size()), call.channels.num_bulk());
  const int64_t part_bytes =
      PartBytes(call, Largest(ranges), ranges.size(), SharedMemory::kMaxBounceBytes);
  return RunRanges(ranges, call.options, [&](int i, Range range, const TransferOptions& options) {
    return FetchThread(call, name, out, i, options, begun).Run(range, part_bytes);
  });
}

}  // namespace stride::internal
