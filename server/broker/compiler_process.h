#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/broker/child_process.h"
#include "server/broker/compiler_death.h"
#include "server/broker/sandbox.h"
#include "server/broker/spawner.h"
#include "server/wire/channel.h"
#include "server/wire/worker.pb.h"

namespace stride::broker {

// A worker executable in compile mode: answers one request at a time. Kill may be called from any
// thread; all other methods from one.
class CompilerProcess {
 public:
  struct Output {
    wire::CompileReply reply;
    std::string object;  // copied out of the process's memory, so that the process cannot change it
  };

  static absl::StatusOr<std::unique_ptr<CompilerProcess>> Start(const std::string& executable,
                                                                const SandboxPolicy& sandbox,
                                                                Spawner* spawner);

  // INVALID_ARGUMENT with the log when the code is wrong, UNIMPLEMENTED when the device kind cannot
  // run it; after these the process stays usable. After any other error it is not usable, and
  // `death` says whether it died. `timeout` is for an idle machine: time in which the process waits
  // for a processor does not count, up to a bound.
  absl::StatusOr<Output> Compile(const std::string& target, const std::string& serialized_code,
                                 absl::Duration timeout);

  bool usable() const { return usable_; }
  CompilerDeath death() const { return death_; }
  int num_compiled() const { return num_compiled_; }
  void Kill() const { child_.Kill(); }

 private:
  CompilerProcess(ChildProcess child, UniqueFd socket)
      : child_(std::move(child)), channel_(std::move(socket)) {}
  absl::Status SendRequest(const std::string& target, const std::string& serialized_code);
  absl::StatusOr<Output> Check(wire::CompileReply reply, std::vector<UniqueFd> descriptors);
  absl::StatusOr<wire::Channel::Outcome> Await(wire::CompileReply* reply,
                                               std::vector<UniqueFd>* descriptors,
                                               absl::Duration timeout);
  ChildExit End();  // reaps the process once its socket is closed
  absl::Status Dead(CompilerDeath death);
  absl::Status Lie() { return Dead(CompilerDeath::kLie); }

  ChildProcess child_;
  wire::Channel channel_;
  bool usable_ = true;
  CompilerDeath death_ = CompilerDeath::kNone;
  int num_compiled_ = 0;
  uint64_t last_id_ = 0;
};

}  // namespace stride::broker
