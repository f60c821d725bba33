#include "server/api/ack_writer.h"

#include <utility>

namespace stride::api {
namespace {

constexpr int kMaxResults = 1000;
constexpr int64_t kGoodBytes = 256 << 10;  // beyond it larger messages gain nothing
constexpr int64_t kFraming = 16;

}  // namespace

bool AckWriter::Add(std::shared_ptr<v1::CommandResult> result) {
  int64_t size = static_cast<int64_t>(result->ByteSizeLong()) + kFraming;
  bool full = response_.results_size() >= kMaxResults || bytes_ + size > kGoodBytes;
  if (full && !Flush()) return false;
  response_.mutable_results()->UnsafeArenaAddAllocated(result.get());
  results_.push_back(std::move(result));
  bytes_ += size;
  return true;
}

bool AckWriter::Flush() {
  if (response_.results_size() == 0) return true;
  bool written = wire_.Write(response_);
  Forget();
  return written;
}

void AckWriter::Forget() {
  response_.mutable_results()->UnsafeArenaExtractSubrange(0, response_.results_size(), nullptr);
  results_.clear();
  bytes_ = 0;
}

}  // namespace stride::api
