#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/worker.pb.h"

namespace stride::wire {

// Tasks on their way to a worker: a Submit that is encoded while it is gathered, so that no message
// of it is kept, nor looked through again when it is sent. Used again, it takes no memory.
class TaskPacket {
 public:
  // `size` is what the task's ByteSizeLong has just answered.
  void Add(const Task& task, size_t size);
  void Add(const Task& task) { Add(task, task.ByteSizeLong()); }
  void Clear();

  struct Entry {
    uint64_t sequence;
    size_t begin, end;  // in bytes(), with what frames it
  };
  const std::vector<Entry>& tasks() const { return tasks_; }
  bool empty() const { return tasks_.empty(); }
  // The encoded Submit.
  std::string_view bytes() const { return bytes_; }
  // The Submit itself, for those who want to look at it.
  Submit Decode() const;

  // What a Command with a Submit of so many encoded bytes begins with.
  static std::string CommandHeader(size_t submit_bytes);

 private:
  std::vector<Entry> tasks_;
  std::string bytes_;
};

}  // namespace stride::wire
