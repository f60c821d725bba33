#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/worker.pb.h"

namespace stride::wire {

// A Submit that is encoded while its tasks are added: no message is kept, and sending needs no
// second pass. A reused packet allocates no memory.
class TaskPacket {
 public:
  // `size`: the task's ByteSizeLong, which must have been called last.
  void Add(const Task& task, size_t size);
  void Add(const Task& task) { Add(task, task.ByteSizeLong()); }
  void Clear();

  struct Entry {
    uint64_t sequence;
    size_t begin, end;  // in bytes(), frame included
  };
  const std::vector<Entry>& tasks() const { return tasks_; }
  bool empty() const { return tasks_.empty(); }
  // The encoded Submit.
  std::string_view bytes() const { return bytes_; }
  // Parses the Submit.
  Submit Decode() const;

  // The bytes that precede a Submit of this encoded size in a Command.
  static std::string CommandHeader(size_t submit_bytes);

 private:
  std::vector<Entry> tasks_;
  std::string bytes_;
};

}  // namespace stride::wire
