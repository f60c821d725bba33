#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/api/command_wire.h"
#include "stride/v1/compute_service.pb.h"

namespace stride::api {

// Gathers results into messages: a message costs tens of microseconds whatever it holds. One
// thread.
class AckWriter {
 public:
  // Of a result that still fits a message of 4 MiB with its framing.
  static constexpr int64_t kMaxResultBytes = (int64_t{4} << 20) - 256;

  explicit AckWriter(CommandWire* wire) : wire_(*wire) {}
  ~AckWriter() { Forget(); }

  // Writes first when the message would grow too large. False when nobody reads, as of Flush.
  bool Add(std::shared_ptr<v1::CommandResult> result);
  bool Flush();

 private:
  void Forget();

  CommandWire& wire_;
  // Lists the results without owning them.
  v1::ExecuteResponse response_;
  std::vector<std::shared_ptr<v1::CommandResult>> results_;
  int64_t bytes_ = 0;
};

}  // namespace stride::api
