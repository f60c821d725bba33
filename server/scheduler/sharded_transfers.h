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

// A range of the whole's bytes in C order as ranges of its parts': each part's bytes come in the
// part's own order, so that one transfer a part does.
class PartRanges {
 public:
  PartRanges(const ArrayInfo& whole, const session::Shards& shards, int64_t begin, int64_t end);

  struct Range {
    int64_t begin = 0, end = 0;  // within the part
  };
  const std::vector<Range>& ranges() const { return ranges_; }
  bool replicated() const { return !runs_.has_value(); }
  // The part in which the byte at `position` lies, and how many from it on lie together there.
  ops::ByteRuns::Run At(int64_t position) const;
  // Whether runs are so short that several belong into one message.
  bool has_short_runs() const;

 private:
  std::optional<ops::ByteRuns> runs_;  // empty: replicated
  std::vector<Range> ranges_;          // of a replicated array: the same for each part
  int64_t end_;
};

// A range of an array that is spread over devices: deals the bytes out to its parts' uploads.
class ShardedUpload : public Upload {
 public:
  // `parts[i]`: of part i, or null where none of its bytes are in the range.
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

// Reads a range of such an array: holds off writers of the parts that it lies in.
class ShardedRead {
 public:
  // No transaction is open when the last owner
  // releases it.
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
  // After Await.
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
