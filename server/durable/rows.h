#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stride::durable {

// What is kept of a named array. `record` is a recovery::ArrayRecord, to this folder only bytes.
struct ArrayRow {
  uint64_t id = 0;
  uint64_t content = 0;  // of its bytes; 0: it has failed, the record tells how
  std::string record;
};

// The bytes behind one or more arrays: one file.
struct ContentRow {
  uint64_t id = 0;
  int64_t size = 0;  // bytes
  uint32_t crc = 0;  // CRC-32C
  std::string device;
};

// What is kept of a job.
struct JobRow {
  uint64_t id = 0;
  std::string accepted;  // a recovery::DurableJobRecord
  bool changed_kept =
      false;  // what is kept of arrays has changed in a way that forbids to run it again
  bool cancel_requested = false;
  std::string ended;  // a v1::Job without its operations; empty: it has not ended
};

// A function or program that a client registered.
struct DefinitionRow {
  enum Kind : uint64_t { kFunction = 1, kProgram = 2 };  // on disk: never change one
  uint64_t id = 0;
  uint64_t kind = 0;
  std::string record;  // a recovery::FunctionRecord or ProgramRecord
};

// Things that change together or not at all.
struct Change {
  std::vector<ContentRow> contents;
  std::vector<ArrayRow> arrays;
  std::vector<uint64_t> erased_arrays;
  std::vector<JobRow> jobs;
  std::vector<uint64_t> changed_kept_jobs;
  std::vector<uint64_t> cancelled_jobs;
  std::vector<std::pair<uint64_t, std::string>> ended_jobs;
  std::vector<uint64_t> erased_jobs;
  std::vector<DefinitionRow> definitions;
  std::vector<uint64_t> erased_definitions;
  bool restored = false;  // all that was found at the start is there again
  // Called once, on the store's thread, without a lock: whether it is on disk now. False: the store
  // was closed before.
  std::function<void(bool committed)> done;
};

// All that is kept, as found at the start.
struct Rows {
  std::map<uint64_t, ContentRow> contents;
  std::map<uint64_t, ArrayRow> arrays;
  std::map<uint64_t, JobRow> jobs;
  std::map<uint64_t, DefinitionRow> definitions;
};

}  // namespace stride::durable
