// Public structs to messages and back.
#pragma once

#include "client/cpp/src/proto_fwd.h"
#include "stride/array.h"
#include "stride/device.h"
#include "stride/job.h"
#include "stride/kernel.h"

namespace stride::internal {

void ToProto(const ArraySpec& spec, v1::ArraySpec* out);
void ToProto(std::chrono::nanoseconds duration, google::protobuf::Duration* out);
void ToProto(const Sharding& sharding, v1::Sharding* out);
Sharding FromProto(const v1::Sharding& sharding);
ArraySpec FromProto(const v1::ArraySpec& spec);
ArrayInfo FromProto(const v1::Array& array);
stride::Timeline FromProto(const v1::Timeline& timeline);
Device FromProto(const v1::Device& device);
DeviceSample FromProto(const v1::DeviceSample& sample);
Job FromProto(const v1::Job& job);
Module FromProto(const v1::Module& module);

}  // namespace stride::internal
