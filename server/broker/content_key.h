#pragma once

#include <string>
#include <string_view>

#include "server/wire/plan.pb.h"

namespace stride::broker {

// SHA-256 of the bytes, as 64 hexadecimal digits.
std::string Sha256(std::string_view bytes);

// Equal messages have equal bytes.
std::string SerializeCode(const wire::Code& code);

// Whether the code contains client text: kernels, or functions that its loops call.
bool HasClientText(const wire::Code& code);

// The name of compiled code, from all inputs of its compilation.
std::string ContentKey(std::string_view target, std::string_view toolchain,
                       std::string_view serialized_code);

}  // namespace stride::broker
