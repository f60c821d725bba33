#pragma once

#include <string>
#include <string_view>

#include "server/wire/plan.pb.h"

namespace stride::broker {

// SHA-256 of the bytes, as 64 hexadecimal digits.
std::string Sha256(std::string_view bytes);

// Equal messages give equal bytes.
std::string SerializeCode(const wire::Code& code);

// Whether the code holds text of a client's: kernels, or functions that its loops call.
bool HasClientText(const wire::Code& code);

// The name of compiled code: it depends on all that its compilation depends on.
std::string ContentKey(std::string_view target, std::string_view toolchain,
                       std::string_view serialized_code);

}  // namespace stride::broker
