#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <chrono>
#include <functional>
#include <thread>

#include "client/cpp/src/bulk.h"
#include "client/cpp/src/local_raw_call.h"
#include "client/cpp/src/run_ranges.h"
#include "client/cpp/src/shared_transfer.h"
#include "client/cpp/src/status.h"
#include "stride/v1/array_service.pb.h"

namespace stride::internal {
namespace {

using google::protobuf::internal::WireFormatLite;

// Time within which a dead daemon is replaced.
constexpr auto kRestartTime = std::chrono::seconds(1);
constexpr auto kRestartPoll = std::chrono::milliseconds(20);

// FetchArrayResponse.data, length-delimited.
constexpr uint32_t kDataTag = (2 << 3) | 2;

// Copies the `data` of one FetchArrayResponse to `out`, once, from the transport's memory. Returns
// the number of bytes; nullopt when the message is malformed or has more than `room`.
std::optional<int64_t> CopyData(grpc::ByteBuffer* message, std::byte* out, int64_t room) {
  grpc::ProtoBufferReader reader(message);
  google::protobuf::io::CodedInputStream input(&reader);
  int64_t copied = 0;
  while (const uint32_t tag = input.ReadTag()) {
    if (tag != kDataTag) {
      if (!WireFormatLite::SkipField(&input, tag)) return std::nullopt;
      continue;
    }
    uint32_t size = 0;
    if (!input.ReadVarint32(&size) || size > room - copied) return std::nullopt;
    if (!input.ReadRaw(out + copied, static_cast<int>(size))) return std::nullopt;
    copied += size;
  }
  if (!input.ConsumedEntireMessage()) return std::nullopt;
  return copied;
}

Result<void> ReceiveRange(RawCall& call, const v1::FetchArrayRequest& request,
                          std::span<std::byte> out, Range range, const TransferOptions& options,
                          bool* begun) {
  const grpc::Slice slice(request.SerializeAsString());
  bool sound = true;
  int64_t at = range.begin;
  if (call.Write(grpc::ByteBuffer(&slice, 1)) && call.WritesDone()) {
    for (grpc::ByteBuffer message; sound && call.Read(&message);) {
      const auto copied = CopyData(&message, out.data() + at, range.end - at);
      sound = copied.has_value();
      if (!sound) break;
      at += *copied;
      *begun = *begun || *copied > 0;
      if (options.progress && *copied > 0) options.progress(*copied);
      message.Clear();
    }
  }
  if (!sound) call.Cancel();
  auto ended = call.Finish();
  if (!sound)
    return LocalError(Code::kInternal,
                      "The daemon sent more bytes than the array has, or a broken message");
  if (!ended) return ended;
  if (at != range.end)
    return LocalError(Code::kDataLoss, "The download ended before its last byte");
  return {};
}

// Retries for a short time when there is no daemon: another may be starting. Not after bytes have
// arrived, since later bytes might be of another version.
Result<void> UntilThere(const std::function<Result<void>(bool* begun)>& receive) {
  const auto give_up = std::chrono::steady_clock::now() + kRestartTime;
  for (;;) {
    bool begun = false;
    auto received = receive(&begun);
    if (received || received.error().code != Code::kUnavailable || begun) return received;
    if (std::chrono::steady_clock::now() > give_up) return received;
    std::this_thread::sleep_for(kRestartPoll);
  }
}

}  // namespace

Result<void> FetchBulk(const BulkWays& ways, const std::string& name, std::span<std::byte> out,
                       const TransferOptions& options, std::chrono::nanoseconds default_timeout) {
  const auto size = static_cast<int64_t>(out.size());
  const auto ranges = CutRanges(size, ways.channels.num_bulk());
  LocalCalls* const local = ranges.size() == 1 ? &ways.local : nullptr;
  auto fetched = ways.shared.Use(
      out.data(), size, BounceBytesForFetch(size),
      [&](const SharedRegion& region, std::optional<int64_t> in_place) {
        std::atomic<bool> begun = false;
        auto result = FetchShared(
            {ways.channels, local, region, in_place, options, default_timeout}, name, out, &begun);
        // The daemon is being replaced: regions have ended with it, and calls in messages wait for
        // the next one.
        if (!result && result.error().code == Code::kUnavailable && !begun)
          return Result<void>(RegionGone());
        return result;
      });
  if (fetched) return *std::move(fetched);
  return RunRanges(ranges, options,
                   [&](int i, Range range, const TransferOptions& call_options) -> Result<void> {
                     v1::FetchArrayRequest request;
                     request.set_name(name);
                     if (ranges.size() > 1) {
                       request.mutable_range()->set_begin(range.begin);
                       request.mutable_range()->set_end(range.end);
                     }
                     return UntilThere([&](bool* begun) {
                       auto call =
                           BeginRawCall(local, ways.channels.Bulk(i), RawCall::Method::kFetchArray,
                                        call_options, default_timeout);
                       return ReceiveRange(*call, request, out, range, call_options, begun);
                     });
                   });
}

}  // namespace stride::internal
