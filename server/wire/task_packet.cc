#include "server/wire/task_packet.h"

#include "google/protobuf/io/coded_stream.h"

namespace stride::wire {
namespace {

using google::protobuf::io::CodedOutputStream;

constexpr size_t kMaxFrameBytes = 10;  // a tag and a length, each of at most 5

// Writes the tag and length that precede an embedded message in protobuf's encoding; returns their
// end.
uint8_t* WriteFrame(int field, size_t size, uint8_t* out) {
  constexpr uint32_t kLengthDelimited = 2;
  out =
      CodedOutputStream::WriteTagToArray(static_cast<uint32_t>(field) << 3 | kLengthDelimited, out);
  return CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(size), out);
}

}  // namespace

void TaskPacket::Add(const Task& task, size_t size) {
  const size_t begin = bytes_.size();
  bytes_.resize(begin + kMaxFrameBytes + size);
  auto* start = reinterpret_cast<uint8_t*>(bytes_.data());
  uint8_t* out = WriteFrame(Submit::kTasksFieldNumber, size, start + begin);
  out = task.SerializeWithCachedSizesToArray(out);
  bytes_.resize(static_cast<size_t>(out - start));
  tasks_.push_back({task.sequence(), begin, bytes_.size()});
}

void TaskPacket::Clear() {
  tasks_.clear();
  bytes_.clear();
}

Submit TaskPacket::Decode() const {
  Submit submit;
  submit.ParseFromArray(bytes_.data(), static_cast<int>(bytes_.size()));
  return submit;
}

std::string TaskPacket::CommandHeader(size_t submit_bytes) {
  uint8_t frame[kMaxFrameBytes];
  const uint8_t* end = WriteFrame(Command::kSubmitFieldNumber, submit_bytes, frame);
  return std::string(reinterpret_cast<const char*>(frame), static_cast<size_t>(end - frame));
}

}  // namespace stride::wire
