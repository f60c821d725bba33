#include "server/api/ack_writer.h"

#include <utility>

namespace stride::api {
namespace {

constexpr int kMaxResults = 1000;
constexpr int64_t kGoodBytes = 256 << 10;  // beyond it larger messages gain nothing
constexpr int64_t kFraming = 16;

int64_t BytesOf(const v1::CommandResult& result) {
  return static_cast<int64_t>(result.ByteSizeLong()) + kFraming;
}

}  // namespace

google::protobuf::ArenaOptions AckWriter::OptionsFor(std::vector<char>& block) {
  google::protobuf::ArenaOptions options;
  options.initial_block = block.data();
  options.initial_block_size = block.size();
  options.start_block_size = options.max_block_size = kBlockBytes;
  return options;
}

v1::CommandResult* AckWriter::AddSmall() {
  CountSmall();
  const bool full = response_->results_size() >= kMaxResults || bytes_ >= kGoodBytes;
  if (full && !Flush()) return nullptr;
  v1::CommandResult* result = response_->add_results();
  uncounted_ = result;
  return result;
}

bool AckWriter::Add(std::unique_ptr<v1::CommandResult> result) {
  CountSmall();
  const int64_t size = BytesOf(*result);
  const bool full = response_->results_size() >= kMaxResults || bytes_ + size > kGoodBytes;
  if (full && !Flush()) return false;
  response_->mutable_results()->UnsafeArenaAddAllocated(result.get());
  large_.push_back(std::move(result));
  bytes_ += size;
  return true;
}

void AckWriter::CountSmall() {
  if (uncounted_ != nullptr) bytes_ += BytesOf(*uncounted_);
  uncounted_ = nullptr;
}

bool AckWriter::Flush() {
  if (response_->results_size() == 0) return true;
  const bool written = wire_.Write(*response_);
  Forget();
  Begin();
  return written;
}

void AckWriter::Begin() {
  response_ = google::protobuf::Arena::CreateMessage<v1::ExecuteResponse>(&arena_);
}

void AckWriter::Forget() {
  arena_.Reset();
  large_.clear();
  uncounted_ = nullptr;
  bytes_ = 0;
}

}  // namespace stride::api
