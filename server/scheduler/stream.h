#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/ops/pieces.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/task.h"

namespace stride::scheduler {

// One operation whose arrays do not fit its device together, computed in pieces. Its own task has
// its place in the order of its arrays and does nothing but wait; each piece is a task of its own,
// on buffers that nobody else knows: the inputs' parts come as inline bytes, and what the piece
// made is copied into the operation's output, which lies where idle arrays go (host memory or a
// file).
//
// Two pieces are under way at once, so that one is computed while the bytes of the other are
// copied. Runs on a thread of its own, between transactions.
class Stream : public Conductor {
 public:
  // `task` has ended waiting for all before it.
  Stream(Core* core, Scheduler* scheduler, std::shared_ptr<Task> task, Lane* lane,
         ops::Pieces pieces);

  void Run() override;
  void Stop(TenantTransaction& transaction) override;

 private:
  struct Flying {
    ops::Piece piece;
    std::shared_ptr<Task> task;
    std::shared_ptr<store::Buffer> output;
  };

  absl::Status Execute();
  absl::Status PlaceOutput();
  absl::Status Start(int64_t index);
  absl::Status EndFirst();
  absl::Status Await(const Task& task);
  absl::StatusOr<std::shared_ptr<store::Buffer>> InputOf(size_t slot,
                                                         const ops::Piece::Source& source);
  std::shared_ptr<store::Buffer> BufferWith(std::string bytes);
  absl::Status ReadRegion(const std::shared_ptr<store::Buffer>& buffer, const ops::Region& region,
                          std::string* bytes);
  absl::Status ReadRuns(const store::Buffer& buffer, const ops::Region& region, std::string* bytes);
  absl::Status WriteRegion(const ops::Region& region, const std::string& bytes);
  absl::Status WriteCloseRuns(const ops::Region& region, const std::string& bytes);
  void EndAll();

  Core* const core_;
  Scheduler* const scheduler_;
  const std::shared_ptr<Task> task_;
  Lane* const lane_;
  const ops::Pieces pieces_;
  const std::vector<Use> uses_;  // the task's
  const std::shared_ptr<store::Buffer> output_;

  store::Allocation home_;  // of the output
  int home_place_ = -1;
  std::deque<Flying> flying_;  // changed by Run alone, in a transaction
  // Of each slot: the part that the last piece had. Operands that are not cut stay as they are.
  struct Known {
    ops::Piece::Source source;
    std::shared_ptr<store::Buffer> buffer;
  };
  std::map<size_t, Known> known_;
  std::string partials_;
};

}  // namespace stride::scheduler
