// Forward declarations of messages, so that headers need not include the generated ones.
#pragma once

namespace google::protobuf {
class Duration;
}

namespace stride::v1 {
class Array;
class ArraySpec;
class Command;
class Device;
class DeviceSample;
class Job;
class Module;
class Operand;
class Operation;
class Result;
class Sharding;
class Timeline;
}  // namespace stride::v1
