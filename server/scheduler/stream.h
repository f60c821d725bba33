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

// Computes one operation in pieces, since its arrays do not fit its device together. The
// operation's task holds its place in the order of its arrays and only waits. Each piece is a task
// of its own on private buffers. The parts of inputs are inline bytes. The result of a piece is
// copied into the operation's output, in host memory or a file.
//
// Two pieces are in flight at once, so that one is computed while the bytes of the other are
// copied. Runs on its own thread, which begins transactions.
class Stream : public Conductor {
 public:
  // All accesses before `task` have ended.
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

  store::Allocation home_;  // the output's block
  int home_place_ = -1;
  std::deque<Flying> flying_;  // only Run changes it, in a transaction
  // The part of an input that the last piece used, by slot. Operands that are not cut are reused.
  struct Known {
    ops::Piece::Source source;
    std::shared_ptr<store::Buffer> buffer;
  };
  std::map<size_t, Known> known_;
  std::string partials_;
};

}  // namespace stride::scheduler
