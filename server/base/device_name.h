#pragma once

#include <string_view>

namespace stride {

// Whether `asked` names this device: by its own name, or as `devices/{kind}:{index}`, its place
// among those of its kind (`devices/cuda:0`). Either name with `devices/` before it or without.
bool NamesDevice(std::string_view asked, std::string_view name, std::string_view kind, int index);

}  // namespace stride
