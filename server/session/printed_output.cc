#include "server/session/printed_output.h"

#include <utility>

#include "absl/status/statusor.h"

namespace stride::session {
namespace {

constexpr int64_t kChargedBytes = 64 << 10;  // charged at a time: few large charges

// Room for `bytes`, in multiples of kChargedBytes.
int64_t Rounded(size_t bytes) {
  return (static_cast<int64_t>(bytes) + kChargedBytes - 1) / kChargedBytes * kChargedBytes;
}

bool Charge(ControlCharge* charge, int64_t bytes, const std::shared_ptr<ControlAccount>& account) {
  const int64_t more = bytes - charge->bytes();
  if (account == nullptr || more <= 0) return true;
  if (charge->account() != nullptr) return charge->Grow(more).ok();
  absl::StatusOr<ControlCharge> taken = account->Take(more);
  if (taken.ok()) *charge = *std::move(taken);
  return taken.ok();
}

}  // namespace

void PrintedOutput::Append(std::string_view text, uint64_t dropped_lines,
                           const std::shared_ptr<ControlAccount>& account) {
  size_t limit = kMostBytes;
  if (!Charge(&charge_, Rounded(pending_.text.size() + text.size()), account))
    limit = static_cast<size_t>(charge_.bytes());
  pending_.Append(text, dropped_lines, limit);
}

PrintedOutput::Piece PrintedOutput::Take(size_t most) {
  Piece piece;
  if (pending_.text.size() <= most) {
    piece.printed = std::exchange(pending_, {});
    charge_ = ControlCharge();
    return piece;
  }
  const size_t end = std::string_view(pending_.text).substr(0, most).rfind('\n');
  const size_t size = end == std::string_view::npos ? most : end + 1;
  piece.printed.text = pending_.text.substr(0, size);
  piece.more = true;
  pending_.text.erase(0, size);
  return piece;
}

}  // namespace stride::session
