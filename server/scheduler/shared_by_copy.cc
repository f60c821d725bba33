#include "server/scheduler/shared_by_copy.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::scheduler {
namespace {

class CopiedUpload : public Upload {
 public:
  CopiedUpload(std::unique_ptr<Upload> upload, std::shared_ptr<Region> region)
      : upload_(std::move(upload)), region_(std::move(region)) {}

  int64_t remaining() const override { return upload_->remaining(); }
  absl::Status Write(std::string_view bytes) override { return upload_->Write(bytes); }
  absl::Status WriteShared(int64_t offset, int64_t size) override {
    if (!region_->Covers(offset, size)) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "chunk",
                          absl::StrCat("outside the region. Region: ", region_->size(),
                                       ", offset: ", offset, ", size: ", size));
    }
    if (size > remaining()) {
      return InvalidField(
          v1::ERROR_REASON_SIZE_MISMATCH, "chunk",
          absl::StrCat("more bytes than the range declares. Not yet sent: ", remaining()));
    }
    return upload_->Write(
        {reinterpret_cast<const char*>(region_->data() + offset), static_cast<size_t>(size)});
  }
  absl::StatusOr<v1::Array> Finish() override { return upload_->Finish(); }

 private:
  const std::unique_ptr<Upload> upload_;
  const std::shared_ptr<Region> region_;
};

class CopiedDownload : public Download {
 public:
  CopiedDownload(std::unique_ptr<Download> download, std::shared_ptr<Region> region, int64_t offset)
      : download_(std::move(download)), region_(std::move(region)), position_(offset) {}

  const v1::Array& array() const override { return download_->array(); }
  absl::StatusOr<Chunk> Next(int64_t max_bytes) override { return download_->Next(max_bytes); }
  absl::StatusOr<SharedChunk> NextShared(int64_t max_bytes) override {
    auto chunk = download_->Next(max_bytes);
    if (!chunk.ok()) return chunk.status();
    const auto size = static_cast<int64_t>(chunk->bytes.size());
    if (!region_->Covers(position_, size))
      return absl::InternalError("a download is longer than its region has room for");
    std::memcpy(region_->data() + position_, chunk->bytes.data(), chunk->bytes.size());
    return SharedChunk{std::exchange(position_, position_ + size), size};
  }

 private:
  const std::unique_ptr<Download> download_;
  const std::shared_ptr<Region> region_;
  int64_t position_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Upload>> SharedByCopy(absl::StatusOr<std::unique_ptr<Upload>> upload,
                                                     std::shared_ptr<Region> region) {
  if (!upload.ok() || region == nullptr) return upload;
  return std::make_unique<CopiedUpload>(*std::move(upload), std::move(region));
}

absl::StatusOr<std::unique_ptr<Download>> SharedByCopy(
    absl::StatusOr<std::unique_ptr<Download>> download, std::shared_ptr<Region> region,
    int64_t offset) {
  if (!download.ok() || region == nullptr) return download;
  return std::make_unique<CopiedDownload>(*std::move(download), std::move(region), offset);
}

}  // namespace stride::scheduler
