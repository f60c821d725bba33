// Transfers arrays' bytes in parallel ranges: through memory shared with the daemon where it is
// available and pays, else in messages.
#pragma once

#include <span>
#include <string>

#include "client/cpp/src/channels.h"
#include "client/cpp/src/local_calls.h"
#include "client/cpp/src/shared_memory.h"
#include "stride/array.h"
#include "stride/call_options.h"

namespace stride::internal {

struct BulkWays {
  Channels& channels;
  LocalCalls& local;  // for an array that is one call: its answer is awaited
  SharedMemory& shared;
};

// Sends `data` as the whole content of an array. `parent` and `array_id` as in CreateArrayRequest.
// The transport borrows slices of `data` until this returns, whatever the outcome.
Result<ArrayInfo> PutBulk(const BulkWays& ways, const std::string& parent,
                          const std::string& array_id, const ArraySpec& spec,
                          std::span<const std::byte> data, const PutOptions& options,
                          std::chrono::nanoseconds default_timeout);

// PutBulk for a named array that resumes after a restart of the daemon during the upload: the
// daemon reports the bytes that it has, and only the others are sent. Fails when no daemon answers
// for 30 s.
Result<ArrayInfo> PutNamed(const BulkWays& ways, const std::string& parent,
                           const std::string& array_id, const ArraySpec& spec,
                           std::span<const std::byte> data, const PutOptions& options,
                           std::chrono::nanoseconds default_timeout);

// Receives an array's content, of exactly `out.size()` bytes.
Result<void> FetchBulk(const BulkWays& ways, const std::string& name, std::span<std::byte> out,
                       const TransferOptions& options, std::chrono::nanoseconds default_timeout);

// A part of the content, by byte offsets.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const Range&) const = default;
};

// Splits content for at most `max_parts` streams: few parts, each worth a stream of its own, at
// offsets of whole MiB. Never empty.
std::vector<Range> CutRanges(int64_t size, int max_parts);

}  // namespace stride::internal
