#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"
#include "server/ops/sharding.h"
#include "server/scheduler/arrays.h"
#include "server/scheduler/service/download.h"
#include "server/scheduler/service/upload.h"
#include "server/scheduler/transfers.h"

namespace stride::scheduler {

// Maps a range of the whole array's bytes, in C order, to one range of each part. Each part's bytes
// come in the part's own order, so one transfer per part suffices.
class PartRanges {
 public:
  PartRanges(const ArrayInfo& whole, const session::Shards& shards, int64_t begin, int64_t end);

  struct Range {
    int64_t begin = 0, end = 0;  // within the part
  };
  const std::vector<Range>& ranges() const { return ranges_; }
  bool replicated() const { return !runs_.has_value(); }
  // The part that has the byte at `position`, and the number of bytes from there that are
  // contiguous in the part.
  ops::ByteRuns::Run At(int64_t position) const;
  // Whether runs are so short that one message gathers several.
  bool has_short_runs() const;

 private:
  std::optional<ops::ByteRuns> runs_;  // empty: replicated
  std::vector<Range> ranges_;          // by part; all the same if replicated
  int64_t end_;
};

// An upload of a range of a sharded array: splits the bytes among its parts' uploads.
class ShardedUpload : public Upload {
 public:
  // `parts[i]`: the upload of part i; null if the range has none of its bytes.
  ShardedUpload(Core* core, std::shared_ptr<session::Array> array, PartRanges ranges,
                std::vector<std::unique_ptr<RangedUpload>> parts, int64_t begin, int64_t end)
      : core_(core),
        array_(std::move(array)),
        ranges_(std::move(ranges)),
        parts_(std::move(parts)),
        begin_(begin),
        end_(end),
        position_(begin) {}

  int64_t remaining() const override { return end_ - position_; }
  absl::Status Write(std::string_view bytes) override;
  absl::StatusOr<v1::Array> Finish() override;

 private:
  Core* const core_;
  const std::shared_ptr<session::Array> array_;
  const PartRanges ranges_;
  const std::vector<std::unique_ptr<RangedUpload>> parts_;
  const int64_t begin_, end_;
  int64_t position_;
};

// Reads a range of a sharded array. Writers of the parts in the range wait until it ends.
class ShardedRead {
 public:
  // The last owner releases it without a transaction: the destructor begins one.
  static absl::StatusOr<std::shared_ptr<ShardedRead>> Enqueue(
      TenantTransaction& transaction, Core* core, Scheduler* scheduler, Operations* operations,
      const TenantId& tenant, std::shared_ptr<session::Array> array, int64_t begin, int64_t end);
  ShardedRead(Core* core, Scheduler* scheduler, std::shared_ptr<session::Array> array,
              PartRanges ranges, int64_t begin, int64_t end)
      : core_(core),
        scheduler_(scheduler),
        array_(std::move(array)),
        ranges_(std::move(ranges)),
        begin_(begin),
        end_(end) {}

  absl::Status Await(SteadyTime deadline);
  const session::Array& array() const { return *array_; }
  // Call after Await.
  std::unique_ptr<Download> MakeDownload(v1::Array description, SteadyTime deadline) const;

 private:
  Core* const core_;
  Scheduler* const scheduler_;
  const std::shared_ptr<session::Array> array_;
  const PartRanges ranges_;
  const int64_t begin_, end_;
  std::vector<std::shared_ptr<ReadAccess>> accesses_;  // by part; null: none of its bytes
};

}  // namespace stride::scheduler
