#include "server/api/inline_outputs.h"

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::api {

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

absl::Status InlineTooLarge(std::string_view field, int64_t size) {
  return InvalidField(
      v1::ERROR_REASON_SIZE_LIMIT, field,
      absl::StrCat("the result does not fit one message of at most ", kMaxMessageBytes,
                   " bytes; keep it under a handle and use FetchArray. Its size in bytes: ", size),
      {{"limit", std::to_string(kMaxMessageBytes)}, {"size", std::to_string(size)}});
}

}  // namespace stride::api
