#include "server/engine/service/upload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/engine/service/region.h"

namespace stride::engine {

absl::Status ByteSink::WriteShared(const Region& region, int64_t offset, int64_t size) {
  return Write({reinterpret_cast<const char*>(region.data() + offset), static_cast<size_t>(size)});
}

Upload::Upload(int64_t size, std::unique_ptr<WriteAccess> access, std::unique_ptr<ByteSink> sink,
               std::shared_ptr<Region> region)
    : size_(size), region_(std::move(region)), sink_(std::move(sink)), access_(std::move(access)) {}

Upload::~Upload() {
  // No copy may write the array once the access has ended.
  if (!complete_ && (in_place_ || sink_->Finish().ok())) access_->Keep(written_);
}

absl::Status Upload::CheckSize(const char* field, int64_t size) const {
  if (size <= remaining()) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_SIZE_MISMATCH, field,
                      absl::StrCat("more bytes than the range declares. Declared: ", size_));
}

absl::Status Upload::Write(std::string_view bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  if (absl::Status status = CheckSize("data", size); !status.ok()) return status;
  if (absl::Status status = sink_->Write(bytes); !status.ok()) return status;
  written_ += size;
  return absl::OkStatus();
}

absl::Status Upload::WriteShared(int64_t offset, int64_t size) {
  if (region_ == nullptr || !region_->Covers(offset, size)) {
    return InvalidField(
        v1::ERROR_REASON_INVALID_FIELD, "chunk",
        absl::StrCat("outside the region. Region: ", region_ == nullptr ? 0 : region_->size(),
                     ", offset: ", offset, ", size: ", size));
  }
  if (absl::Status status = CheckSize("chunk", size); !status.ok()) return status;
  if (absl::Status status = sink_->WriteShared(*region_, offset, size); !status.ok()) return status;
  written_ += size;
  return absl::OkStatus();
}

absl::StatusOr<v1::Array> Upload::Finish() {
  if (remaining() > 0) {
    return InvalidField(v1::ERROR_REASON_SIZE_MISMATCH, region_ != nullptr ? "chunk" : "data",
                        absl::StrCat("fewer bytes than the range declares. Declared: ", size_,
                                     ", sent: ", written_));
  }
  if (absl::Status status = sink_->Finish(); !status.ok()) return status;
  in_place_ = true;
  auto array = access_->Complete();
  complete_ = array.ok();
  return array;
}

}  // namespace stride::engine
