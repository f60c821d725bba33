#include "client/cpp/src/raw_call.h"

namespace stride::internal {

RawCall::RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                 const CallOptions& options, std::chrono::nanoseconds default_timeout)
    : call_(options, default_timeout), stub_(std::shared_ptr<grpc::ChannelInterface>(channel)) {
  stream_ = stub_.PrepareCall(call_.context(), method, &queue_);
  stream_->StartCall(this);
  started_ = Next();
}

RawCall::~RawCall() {
  if (!finished_) {
    Cancel();
    Finish();
  }
  queue_.Shutdown();
  void* tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) {
  }
}

// One operation is under way at a time, so the next event is its end.
bool RawCall::Next() {
  void* tag;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

bool RawCall::Write(const grpc::ByteBuffer& message) {
  if (!started_) return false;
  stream_->Write(message, this);
  return Next();
}

bool RawCall::WritesDone() {
  if (!started_) return false;
  stream_->WritesDone(this);
  return Next();
}

bool RawCall::Read(grpc::ByteBuffer* message) {
  if (!started_) return false;
  stream_->Read(message, this);
  return Next();
}

grpc::Status RawCall::Finish() {
  finished_ = true;
  grpc::Status status;
  stream_->Finish(&status, this);
  Next();
  return status;
}

}  // namespace stride::internal
