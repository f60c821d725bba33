#include "server/scheduler/sharded_transfers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/scheduler/describe.h"

namespace stride::scheduler {
namespace {

// Shorter runs are gathered into messages: a copy costs less than a message.
constexpr int64_t kShortRun = int64_t{64} << 10;
constexpr int64_t kGatheredBytes = int64_t{1} << 20;

}  // namespace

PartRanges::PartRanges(const ArrayInfo& whole, const session::Shards& shards, int64_t begin,
                       int64_t end)
    : end_(end) {
  if (shards.replicated) {
    ranges_.assign(shards.parts.size(), {begin, end});
    return;
  }
  runs_.emplace(whole, shards.axis, shards.parts.size());
  for (size_t i = 0; i < shards.parts.size(); ++i) {
    const int part = static_cast<int>(i);
    ranges_.push_back({runs_->Before(part, begin), runs_->Before(part, end)});
  }
}

ops::ByteRuns::Run PartRanges::At(int64_t position) const {
  ops::ByteRuns::Run run{0, end_ - position};
  if (!runs_) return run;
  run = runs_->At(position);
  run.size = std::min(run.size, end_ - position);
  return run;
}

bool PartRanges::has_short_runs() const { return runs_ && runs_->run_bytes() < kShortRun; }

absl::Status ShardedUpload::Write(std::string_view bytes) {
  if (static_cast<int64_t>(bytes.size()) > remaining()) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_MISMATCH, "data",
        absl::StrCat("more bytes than the range declares. Declared: ", end_ - begin_));
  }
  while (!bytes.empty()) {
    const ops::ByteRuns::Run run = ranges_.At(position_);
    const auto count = std::min<int64_t>(run.size, static_cast<int64_t>(bytes.size()));
    const std::string_view piece = bytes.substr(0, count);
    for (size_t i = 0; i < parts_.size(); ++i) {
      const bool takes = ranges_.replicated() || static_cast<int>(i) == run.part;
      if (!takes || parts_[i] == nullptr) continue;
      if (absl::Status status = parts_[i]->Write(piece); !status.ok()) return status;
    }
    bytes.remove_prefix(count);
    position_ += count;
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Array> ShardedUpload::Finish() {
  if (remaining() > 0) {
    return InvalidField(v1::ERROR_REASON_SIZE_MISMATCH, "data",
                        absl::StrCat("fewer bytes than the range declares. Declared: ",
                                     end_ - begin_, ", sent: ", position_ - begin_));
  }
  for (const auto& part : parts_) {
    if (part == nullptr) continue;
    if (auto done = part->Finish(); !done.ok()) return done.status();
  }
  GlobalTransaction transaction(*core_);
  if (!array_->status().ok()) return array_->status();
  return Describe(*core_, *array_);
}

namespace {

class ShardedDownload : public Download {
 public:
  ShardedDownload(v1::Array description, PartRanges ranges,
                  std::vector<std::unique_ptr<Download>> parts, int64_t begin, int64_t end)
      : description_(std::move(description)),
        ranges_(std::move(ranges)),
        parts_(std::move(parts)),
        position_(begin),
        end_(end) {}

  const v1::Array& array() const override { return description_; }

  absl::StatusOr<Chunk> Next(int64_t max_bytes) override {
    if (position_ == end_) return Chunk{};
    if (ranges_.has_short_runs()) return Gather(std::min(max_bytes, kGatheredBytes));
    return NextOfRun(max_bytes);
  }

 private:
  absl::StatusOr<Chunk> NextOfRun(int64_t max_bytes) {
    const ops::ByteRuns::Run run = ranges_.At(position_);
    auto chunk = parts_[run.part]->Next(std::min(max_bytes, run.size));
    if (chunk.ok()) position_ += static_cast<int64_t>(chunk->bytes.size());
    return chunk;
  }

  absl::StatusOr<Chunk> Gather(int64_t max_bytes) {
    auto bytes = std::make_shared<std::string>();
    bytes->reserve(std::min(max_bytes, end_ - position_));
    while (position_ < end_ && static_cast<int64_t>(bytes->size()) < max_bytes) {
      auto chunk = NextOfRun(max_bytes - static_cast<int64_t>(bytes->size()));
      if (!chunk.ok()) return chunk.status();
      bytes->append(chunk->bytes);
    }
    Chunk gathered;
    gathered.bytes = *bytes;
    gathered.lease = std::move(bytes);
    return gathered;
  }

  const v1::Array description_;
  const PartRanges ranges_;
  const std::vector<std::unique_ptr<Download>> parts_;
  int64_t position_;
  const int64_t end_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<ShardedRead>> ShardedRead::Enqueue(
    TenantTransaction& transaction, Core* core, Scheduler* scheduler, Operations* operations,
    const TenantId& tenant, std::shared_ptr<session::Array> array, int64_t begin, int64_t end) {
  const std::shared_ptr<const session::Shards> shards = array->shards;
  auto read = std::make_shared<ShardedRead>(
      core, scheduler, array, PartRanges(array->info, *shards, begin, end), begin, end);
  for (size_t i = 0; i < shards->parts.size(); ++i) {
    const PartRanges::Range& range = read->ranges_.ranges()[i];
    const bool needed = range.begin < range.end && (i == 0 || !shards->replicated);
    read->accesses_.emplace_back();
    if (!needed) continue;
    auto access =
        ReadAccess::Enqueue(transaction, core, scheduler, operations, tenant, shards->parts[i]);
    if (!access.ok()) {
      // The destructors of the reads begin transactions.
      transaction.Defer([read = std::move(read)] {});
      return access.status();
    }
    read->accesses_.back() = *std::move(access);
  }
  return read;
}

absl::Status ShardedRead::Await(SteadyTime deadline) {
  for (const auto& access : accesses_) {
    if (access == nullptr) continue;
    if (absl::Status status = access->Await(deadline); !status.ok()) return status;
  }
  GlobalTransaction transaction(*core_);
  return array_->status();
}

std::unique_ptr<Download> ShardedRead::MakeDownload(v1::Array description,
                                                    SteadyTime deadline) const {
  std::vector<std::unique_ptr<Download>> parts;
  for (size_t i = 0; i < accesses_.size(); ++i) {
    parts.emplace_back();
    if (accesses_[i] == nullptr) continue;
    const PartRanges::Range& range = ranges_.ranges()[i];
    parts.back() = std::make_unique<ArrayDownload>(core_, scheduler_, accesses_[i], v1::Array(),
                                                   range.begin, range.end, deadline);
  }
  return std::make_unique<ShardedDownload>(std::move(description), ranges_, std::move(parts),
                                           begin_, end_);
}

}  // namespace stride::scheduler
