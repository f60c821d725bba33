#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/base/printed_text.h"
#include "server/session/control_account.h"

namespace stride::session {

// Text that the kernels of one session printed and no client has read. Bounded: it counts among the
// tenant's control bytes; lines beyond the limits are counted and dropped. Guarded like its
// session.
class PrintedOutput {
 public:
  static constexpr size_t kMostBytes = 4 << 20;

  // `account` may be null: then only kMostBytes limits it.
  void Append(std::string_view text, uint64_t dropped_lines,
              const std::shared_ptr<ControlAccount>& account);

  struct Piece {
    PrintedText printed;  // dropped_lines: set in the last piece
    bool more = false;
  };
  // Removes and returns the oldest text. Splits only lines longer than `most` bytes.
  Piece Take(size_t most);

 private:
  PrintedText pending_;
  ControlCharge charge_;
};

}  // namespace stride::session
