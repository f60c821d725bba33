#pragma once

#include <string_view>

namespace stride {

// Whether `asked` names this device: by its own name, or as `devices/{kind}:{index}`, the index
// among devices of its kind (`devices/cuda:0`). The prefix `devices/` is optional.
bool NamesDevice(std::string_view asked, std::string_view name, std::string_view kind, int index);

}  // namespace stride
