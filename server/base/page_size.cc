#include "server/base/page_size.h"

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride {
namespace {

constexpr int kDefault = 100;
constexpr int kMost = 1000;

}  // namespace

absl::StatusOr<int> PageSize(int requested) {
  if (requested >= 0 && requested <= kMost) return requested > 0 ? requested : kDefault;
  return InvalidField(
      v1::ERROR_REASON_INVALID_FIELD, "page_size",
      absl::StrCat("from 0 (default ", kDefault, ") to ", kMost, ". Got: ", requested),
      {{"value", absl::StrCat(requested)}, {"limit", absl::StrCat(kMost)}});
}

}  // namespace stride
