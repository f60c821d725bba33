#include "server/api/inline_outputs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"

namespace stride::api {
namespace {

// Framing and description of one result, generously.
constexpr int64_t kResultOverhead = 1024;

}  // namespace

std::vector<bool> WantedInline(const ops::OperationView& operation) {
  const auto is_wanted = [](const v1::Output* output) { return output->inline_result(); };
  const ops::OutputList& outputs = operation.outputs();
  if (std::none_of(outputs.begin(), outputs.end(), is_wanted)) return {};
  std::vector<bool> wanted;
  for (const v1::Output* output : outputs) wanted.push_back(is_wanted(output));
  return wanted;
}

absl::Status CheckInlineSize(const std::vector<bool>& wanted,
                             const engine::OperationHandle& handle) {
  int64_t total = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) total += handle.OutputBytes(static_cast<int>(i)) + kResultOverhead;
  }
  return total > kMaxMessageBytes ? InlineTooLarge("outputs", total) : absl::OkStatus();
}

bool AddResults(const std::vector<bool>& wanted, engine::OperationHandle::Outcome outcome,
                Results* results) {
  bool complete = true;
  for (size_t i = 0; i < outcome.arrays.size(); ++i) {
    v1::Result* result = results->Add();
    *result->mutable_array() = std::move(outcome.arrays[i]);
    if (i >= wanted.size() || !wanted[i]) continue;
    complete = complete && outcome.values[i].has_value();
    if (outcome.values[i].has_value())
      *result->mutable_inline_array() = *std::move(outcome.values[i]);
  }
  return complete;
}

absl::Status ReadMissing(const std::vector<bool>& wanted, engine::OperationHandle& handle,
                         SteadyTime deadline, Results* results) {
  for (int i = 0; i < results->size() && i < static_cast<int>(wanted.size()); ++i) {
    v1::Result* result = results->Mutable(i);
    if (!wanted[i] || result->has_inline_array()) continue;
    auto value = handle.ReadInline(i, deadline);
    if (!value.ok()) return value.status();
    *result->mutable_inline_array() = *std::move(value);
  }
  return absl::OkStatus();
}

absl::Status InlineTooLarge(std::string_view field, int64_t size) {
  return InvalidField(
      v1::ERROR_REASON_SIZE_LIMIT, field,
      absl::StrCat("the result does not fit one message of at most ", kMaxMessageBytes,
                   " bytes; keep it under a handle and use FetchArray. Its size in bytes: ", size),
      {{"limit", std::to_string(kMaxMessageBytes)}, {"size", std::to_string(size)}});
}

}  // namespace stride::api
