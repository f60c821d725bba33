#pragma once

#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "server/session/array.h"

namespace stride::engine {

// Layouts of an operation's arrays, which own them; null: a scalar, or a new output.
using Infos = absl::InlinedVector<const ArrayInfo*, 4>;

inline const ArrayInfo* InfoOf(const std::shared_ptr<session::Array>& array) {
  return array != nullptr ? &*array->info : nullptr;
}

inline Infos InfosOf(absl::Span<const std::shared_ptr<session::Array>> arrays) {
  Infos infos;
  infos.reserve(arrays.size());
  for (const auto& array : arrays) infos.push_back(InfoOf(array));
  return infos;
}

}  // namespace stride::engine
