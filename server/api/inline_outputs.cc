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

std::string OutputPlace::field() const {
  if (!of_kernel) return absl::StrCat("outputs[", index, "]");
  const std::string argument = absl::StrCat("kernel_launch.arguments[", index, "]");
  if (member < 0) return argument + ".new_array.output";
  return absl::StrCat(argument, ".aggregate.members[", member, "].new_array.output");
}

OutputPlaces OutputsOf(const v1::Operation& operation) {
  OutputPlaces places;
  if (operation.has_kernel_launch()) {
    const auto& arguments = operation.kernel_launch().arguments();
    for (int i = 0; i < arguments.size(); ++i) {
      if (arguments[i].has_new_array())
        places.push_back({&arguments[i].new_array().output(), i, /*of_kernel=*/true});
      const auto& members = arguments[i].aggregate().members();
      for (int m = 0; m < members.size(); ++m) {
        if (members[m].has_new_array())
          places.push_back({&members[m].new_array().output(), i, /*of_kernel=*/true, m});
      }
    }
    return places;
  }
  for (int i = 0; i < operation.outputs_size(); ++i) places.push_back({&operation.outputs(i), i});
  return places;
}

std::vector<bool> WantedInline(const v1::Operation& operation) {
  const OutputPlaces places = OutputsOf(operation);
  const auto is_wanted = [](const OutputPlace& place) { return place.output->inline_result(); };
  if (std::none_of(places.begin(), places.end(), is_wanted)) return {};
  std::vector<bool> wanted;
  for (const OutputPlace& place : places) wanted.push_back(is_wanted(place));
  return wanted;
}

absl::Status CheckInlineSize(const std::vector<bool>& wanted,
                             const scheduler::OperationHandle& handle) {
  int64_t total = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) total += handle.OutputBytes(static_cast<int>(i)) + kResultOverhead;
  }
  return total > kMaxMessageBytes ? InlineTooLarge("outputs", total) : absl::OkStatus();
}

bool AddResults(const std::vector<bool>& wanted, scheduler::OperationHandle::Outcome outcome,
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

absl::Status ReadMissing(const std::vector<bool>& wanted, scheduler::OperationHandle& handle,
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
