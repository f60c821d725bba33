// Descriptions of arrays as JSON.
#pragma once

#include "client/cli/json.h"
#include "stride/array.h"

namespace stride::cli {

Json ToJson(const ArrayInfo& info);
const char* StateName(ArrayInfo::State state);

}  // namespace stride::cli
