#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/engine/core/array_spec.h"
#include "server/engine/service/download.h"
#include "server/engine/service/upload.h"
#include "server/ops/sharding.h"
#include "server/session/array.h"

namespace stride::engine {

// Maps a range of the whole array's bytes, in C order, to one range of each part. Each part's bytes
// come in the part's own order, so one transfer per part suffices.
class PartRanges {
 public:
  PartRanges(const ArrayInfo& whole, const session::Shards& shards, int64_t begin, int64_t end);

  // By part, in bytes of the part.
  const std::vector<Bytes>& ranges() const { return ranges_; }
  bool replicated() const { return !runs_.has_value(); }
  // The part that has the byte at `position`, and the number of bytes from there that are
  // contiguous in the part.
  ops::ByteRuns::Run At(int64_t position) const;
  // Whether runs are so short that one message gathers several.
  bool has_short_runs() const;

 private:
  std::optional<ops::ByteRuns> runs_;  // empty: replicated
  std::vector<Bytes> ranges_;          // by part; all the same if replicated
  int64_t end_;
};

// Writes a range of a sharded array: splits the bytes among its parts' uploads.
class ShardSink : public ByteSink {
 public:
  // `parts[i]`: the upload of part i; null if it takes none of the bytes.
  ShardSink(PartRanges ranges, std::vector<std::unique_ptr<Upload>> parts, int64_t begin)
      : ranges_(std::move(ranges)), parts_(std::move(parts)), position_(begin) {}

  absl::Status Write(std::string_view bytes) override;
  // Completes the parts' uploads.
  absl::Status Finish() override;

 private:
  const PartRanges ranges_;
  const std::vector<std::unique_ptr<Upload>> parts_;
  int64_t position_;
};

// Reads a range of a sharded array from its parts.
class ShardSource : public ByteSource {
 public:
  // `parts[i]`: reads the range of part i; null if the range has none of its bytes. `status`
  // returns the error of the whole array.
  ShardSource(SharedInfo whole, PartRanges ranges, std::vector<std::unique_ptr<ByteSource>> parts,
              Bytes range, std::function<absl::Status()> status)
      : whole_(std::move(whole)),
        ranges_(std::move(ranges)),
        parts_(std::move(parts)),
        range_(range),
        status_(std::move(status)),
        position_(range.begin) {}

  const ArrayInfo& info() const override { return whole_; }
  absl::Status Await(SteadyTime deadline) override;
  absl::StatusOr<Chunk> Next(int64_t max_bytes) override;

 private:
  absl::StatusOr<Chunk> NextOfRun(int64_t max_bytes);

  const SharedInfo whole_;
  const PartRanges ranges_;
  const std::vector<std::unique_ptr<ByteSource>> parts_;
  const Bytes range_;
  const std::function<absl::Status()> status_;
  int64_t position_;
};

}  // namespace stride::engine
