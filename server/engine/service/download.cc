#include "server/engine/service/download.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/engine/service/region.h"

namespace stride::engine {

absl::StatusOr<int64_t> ByteSource::NextShared(const std::shared_ptr<Region>& region,
                                               int64_t offset, int64_t max_bytes) {
  auto chunk = Next(max_bytes);
  if (!chunk.ok()) return chunk.status();
  const auto size = static_cast<int64_t>(chunk->bytes.size());
  std::memcpy(region->data() + offset, chunk->bytes.data(), chunk->bytes.size());
  return size;
}

Download::Download(int64_t size, std::unique_ptr<ByteSource> source, std::shared_ptr<Region> region,
                   int64_t region_offset)
    : size_(size),
      region_(std::move(region)),
      region_offset_(region_offset),
      source_(std::move(source)) {}

Download::~Download() = default;

int64_t Download::Limit(int64_t max_bytes) const { return std::min(max_bytes, size_ - position_); }

absl::Status Download::Await(SteadyTime deadline) {
  position_ = 0;
  return source_->Await(deadline);
}

absl::StatusOr<Download::Chunk> Download::Next(int64_t max_bytes) {
  if (position_ == size_) return Chunk{};
  auto chunk = source_->Next(Limit(max_bytes));
  if (chunk.ok()) position_ += static_cast<int64_t>(chunk->bytes.size());
  return chunk;
}

absl::StatusOr<Download::SharedChunk> Download::NextShared(int64_t max_bytes) {
  const int64_t limit = Limit(max_bytes), offset = region_offset_ + position_;
  if (region_ == nullptr || !region_->Covers(offset, limit))
    return absl::InternalError("a download without room in a region");
  if (limit == 0) return SharedChunk{offset, 0};
  auto size = source_->NextShared(region_, offset, limit);
  if (!size.ok()) return size.status();
  position_ += *size;
  return SharedChunk{offset, *size};
}

absl::StatusOr<v1::InlineArray> Download::Read(SteadyTime deadline) {
  if (absl::Status status = Await(deadline); !status.ok()) return status;
  v1::InlineArray out = EmptyInline(source_->info());
  out.mutable_data()->reserve(static_cast<size_t>(size_));
  while (position_ < size_) {
    auto chunk = Next(size_);
    if (!chunk.ok()) return chunk.status();
    out.mutable_data()->append(chunk->bytes);
  }
  return out;
}

v1::InlineArray EmptyInline(const ArrayInfo& info) {
  v1::InlineArray out;
  out.mutable_spec()->set_data_type(static_cast<v1::DataType>(info.dtype));
  for (int64_t extent : info.shape) out.mutable_spec()->add_shape(extent);
  return out;
}

}  // namespace stride::engine
