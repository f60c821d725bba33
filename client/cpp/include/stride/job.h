// Work that outlives its client.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "stride/operation.h"

namespace stride {

struct JobSpec {
  // On named arrays, or on handles of the job's own (Operand::JobHandle, Operation::ToJobHandle).
  std::vector<Operation> operations;
  std::chrono::nanoseconds timeout{0};  // zero: no limit
  std::string label;
  int priority = 0;  // -10 to 10, for operations without a priority of their own
  std::string id;    // empty: the daemon chooses one
  // Makes creation safe to repeat. Empty: the client chooses one.
  std::string request_id;
  bool validate_only = false;
};

struct Job {
  enum class State { kUnspecified, kQueued, kScheduled, kRunning, kSucceeded, kFailed, kCancelled };
  std::string name;
  State state = State::kUnspecified;
  std::string label;
  std::optional<Error> error;
  std::chrono::system_clock::time_point create_time, end_time;
  std::vector<Timeline> timelines;
  std::vector<ArrayInfo> results;

  bool final() const { return state >= State::kSucceeded; }
};

const char* Name(Job::State state);

}  // namespace stride
