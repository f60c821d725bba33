#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/printed_text.h"
#include "server/base/steady_time.h"
#include "server/session/array_description.h"
#include "stride/v1/array.pb.h"
#include "stride/v1/operation.pb.h"

namespace stride::engine {

class SubmitBatch;

// An accepted operation, as a future. Thread-safe. The work continues when the handle is dropped.
//
// `batch`: the batch that the calling thread has open for the operation's tenant; null: none.
class OperationHandle {
 public:
  virtual ~OperationHandle() = default;
  // Blocks until the operation has ended or `deadline`. Returns OK when it succeeded, else its
  // error. DEADLINE_EXCEEDED at `deadline` ends only the wait.
  virtual absl::Status Wait(SteadyTime deadline) = 0;
  // Does not block.
  virtual bool done() const = 0;
  // Requests the end: queued work never runs, and its outputs carry CANCELLED. Does not wait.
  virtual void Cancel(SubmitBatch* batch = nullptr) = 0;
  // Calls `callback` once with the result of Wait when the operation has ended, or now if it has.
  // The callback runs on an engine thread and must not block; it may outlive this handle.
  using Done = absl::AnyInvocable<void(const absl::Status&)>;
  virtual void OnDone(Done callback, SubmitBatch* batch = nullptr) = 0;
  // Describes each output. Names and shapes are known from acceptance on; state and error are
  // current. `add` makes room for one output. It runs in a transaction and must not call the
  // engine.
  virtual void Describe(absl::FunctionRef<v1::Array*()> add,
                        SubmitBatch* batch = nullptr) const = 0;
  std::vector<v1::Array> Describe(SubmitBatch* batch = nullptr) const {
    std::vector<v1::Array> arrays;
    Describe([&arrays] { return &arrays.emplace_back(); }, batch);
    return arrays;
  }
  // Appends notes from which the outputs can be described later, without this handle. Returns
  // false, and appends nothing, unless every output is still pending.
  virtual bool NotePending(session::PendingArrays* outputs, SubmitBatch* batch = nullptr) const {
    return false;
  }
  virtual v1::Timeline timeline() const = 0;
  // Bytes of an output in C order, known from acceptance on. 0: there is no such output.
  virtual int64_t OutputBytes(int output) const = 0;
  // Outputs, timeline and printed text in one transaction, after success. `wanted` selects
  // outputs whose bytes are returned too. Bytes are absent for a large output or one that the
  // daemon cannot read directly; ReadInline reads these.
  struct Outcome {
    std::vector<v1::Array> arrays;  // one for each output
    v1::Timeline timeline;
    std::vector<std::optional<v1::InlineArray>> values;  // one for each output
    PrintedText printed;                                 // for an operation without a session
  };
  virtual Outcome TakeOutcome(const std::vector<bool>& wanted) = 0;
  // Reads an output's bytes in C order, after success, for an output that requested inline_result.
  // Blocks for the download.
  virtual absl::StatusOr<v1::InlineArray> ReadInline(int output, SteadyTime deadline) = 0;
};

}  // namespace stride::engine
