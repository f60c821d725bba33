#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "google/protobuf/arena.h"
#include "server/api/command_wire.h"
#include "stride/v1/compute_service.pb.h"

namespace stride::api {

// Gathers results into messages: a message costs tens of microseconds whatever it holds. One
// thread.
class AckWriter {
 public:
  // Of a result that still fits a message of 4 MiB with its framing.
  static constexpr int64_t kMaxResultBytes = (int64_t{4} << 20) - 256;

  explicit AckWriter(CommandWire* wire) : wire_(*wire) { Begin(); }
  ~AckWriter() { Forget(); }

  // The next result, empty, for one of a few hundred bytes; to be filled before anything else is
  // asked of this. Writes first when the message has grown large. Null when nobody reads.
  v1::CommandResult* AddSmall();
  // One of any size, whose memory goes once it is written. Writes first when the message would grow
  // too large. False when nobody reads, as of Flush.
  bool Add(std::unique_ptr<v1::CommandResult> result);
  bool Flush();

 private:
  static constexpr size_t kBlockBytes = 64 << 10;
  static google::protobuf::ArenaOptions OptionsFor(std::vector<char>& block);
  void Begin();
  void Forget();
  // What the last small one has become.
  void CountSmall();

  CommandWire& wire_;
  // Small results lie here until they are written; most messages take no other memory.
  std::vector<char> block_ = std::vector<char>(kBlockBytes);
  google::protobuf::Arena arena_{OptionsFor(block_)};
  v1::ExecuteResponse* response_ = nullptr;  // lists the large ones without owning them
  std::vector<std::unique_ptr<v1::CommandResult>> large_;
  const v1::CommandResult* uncounted_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace stride::api
