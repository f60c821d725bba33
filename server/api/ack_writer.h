#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "google/protobuf/arena.h"
#include "server/api/command_wire.h"
#include "stride/v1/compute_service.pb.h"

namespace stride::api {

// Collects results into messages, since each message costs tens of microseconds regardless of its
// size. One thread.
class AckWriter {
 public:
  // Largest result in bytes that fits a message of 4 MiB with its framing.
  static constexpr int64_t kMaxResultBytes = (int64_t{4} << 20) - 256;

  explicit AckWriter(CommandWire* wire) : wire_(*wire) { Begin(); }
  ~AckWriter() { Forget(); }

  // Returns the next result, empty, for a few hundred bytes; the caller fills it before any other
  // call of this object. Writes first when the message is large. Null when the client no longer
  // reads.
  v1::CommandResult* AddSmall();
  // Adds a result of any size, which is destroyed once it is written. Writes first when the message
  // would become too large. False, as for Flush, when the client no longer reads.
  bool Add(std::unique_ptr<v1::CommandResult> result);
  bool Flush();

 private:
  static constexpr size_t kBlockBytes = 64 << 10;
  static google::protobuf::ArenaOptions OptionsFor(std::vector<char>& block);
  void Begin();
  void Forget();
  // Adds the final size of the last small result.
  void CountSmall();

  CommandWire& wire_;
  // Memory of small results until they are written; most messages need no other memory.
  std::vector<char> block_ = std::vector<char>(kBlockBytes);
  google::protobuf::Arena arena_{OptionsFor(block_)};
  v1::ExecuteResponse* response_ = nullptr;  // lists the large ones without owning them
  std::vector<std::unique_ptr<v1::CommandResult>> large_;
  const v1::CommandResult* uncounted_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace stride::api
