#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stride::durable {

// A named array on disk. `record` is a recovery::ArrayRecord, which this folder does not parse.
struct ArrayRow {
  uint64_t id = 0;
  // id of its content; 0: the array has failed, and the record holds the error
  uint64_t content = 0;
  std::string record;
};

// The file with the bytes of one or more arrays.
struct ContentRow {
  uint64_t id = 0;
  int64_t size = 0;  // bytes
  uint32_t crc = 0;  // CRC-32C
  std::string device;
};

// A job on disk.
struct JobRow {
  uint64_t id = 0;
  std::string accepted;       // a recovery::DurableJobRecord
  bool changed_kept = false;  // a change to saved arrays forbids to run the job again
  bool cancel_requested = false;
  std::string ended;  // a v1::Job without its operations; empty: not ended yet
};

// A function or program that a client registered.
struct DefinitionRow {
  enum Kind : uint64_t { kFunction = 1, kProgram = 2 };  // on disk: never change a value
  uint64_t id = 0;
  uint64_t kind = 0;
  std::string record;  // a recovery::FunctionRecord or ProgramRecord
};

// Changes that are committed together or not at all.
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
  bool restored = false;  // everything found at the start has been restored
  // Called once, on the store's thread, without a lock. True: it is on disk. False: the store was
  // closed before the commit.
  std::function<void(bool committed)> done;
};

// All saved rows, as found at the start.
struct Rows {
  std::map<uint64_t, ContentRow> contents;
  std::map<uint64_t, ArrayRow> arrays;
  std::map<uint64_t, JobRow> jobs;
  std::map<uint64_t, DefinitionRow> definitions;
};

}  // namespace stride::durable
