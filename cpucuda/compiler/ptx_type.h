#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace stride::cpucuda {

// A PTX type: u32, s64, f32, b16, pred.
struct PtxType {
  char kind = 'b';
  unsigned bits = 32;
  bool is_signed() const { return kind == 's'; }
  bool is_float() const { return kind == 'f'; }
};

// Nothing for a type that the device does not have.
std::optional<PtxType> TypeOf(absl::string_view name);

}  // namespace stride::cpucuda
