// Random changes of a protobuf message that keep it valid, which random changes of bytes rarely do.
#pragma once

#include <cstdint>
#include <random>

#include "google/protobuf/message.h"

namespace stride::fuzz {

// Sets, clears, adds, removes or copies one field somewhere within `message`, with extreme values.
void MutateMessage(google::protobuf::Message* message, std::mt19937* random);

// For LLVMFuzzerCustomMutator: the bytes are a serialized message like `message`, which is used as
// scratch space. Sometimes changes plain bytes instead.
size_t MutateSerialized(google::protobuf::Message* message, uint8_t* bytes, size_t size,
                        size_t max_size, unsigned seed);

}  // namespace stride::fuzz
