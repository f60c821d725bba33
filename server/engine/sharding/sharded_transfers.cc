#include "server/engine/sharding/sharded_transfers.h"

#include <algorithm>
#include <string>
#include <utility>

namespace stride::engine {
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

absl::Status ShardSink::Write(std::string_view bytes) {
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

absl::Status ShardSink::Finish() {
  for (const auto& part : parts_) {
    if (part == nullptr) continue;
    if (auto done = part->Finish(); !done.ok()) return done.status();
  }
  return absl::OkStatus();
}

absl::Status ShardSource::Await(SteadyTime deadline) {
  position_ = range_.begin;
  for (const auto& part : parts_) {
    if (part == nullptr) continue;
    if (absl::Status status = part->Await(deadline); !status.ok()) return status;
  }
  return status_();
}

absl::StatusOr<ByteSource::Chunk> ShardSource::Next(int64_t max_bytes) {
  if (!ranges_.has_short_runs()) return NextOfRun(max_bytes);
  const int64_t size = std::min({max_bytes, kGatheredBytes, range_.end - position_});
  auto bytes = std::make_shared<std::string>();
  bytes->reserve(size);
  while (static_cast<int64_t>(bytes->size()) < size) {
    auto chunk = NextOfRun(size - static_cast<int64_t>(bytes->size()));
    if (!chunk.ok()) return chunk.status();
    bytes->append(chunk->bytes);
  }
  return Chunk{*bytes, bytes};
}

absl::StatusOr<ByteSource::Chunk> ShardSource::NextOfRun(int64_t max_bytes) {
  const ops::ByteRuns::Run run = ranges_.At(position_);
  auto chunk = parts_[run.part]->Next(std::min(max_bytes, run.size));
  if (chunk.ok()) position_ += static_cast<int64_t>(chunk->bytes.size());
  return chunk;
}

}  // namespace stride::engine
