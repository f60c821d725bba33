#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/memory_file.h"
#include "server/ops/client_function.h"
#include "server/ops/plan.h"
#include "server/wire/status_page.h"
#include "stride/v1/operation.pb.h"
#include "tests/conformance/device/recorder.h"
#include "tests/conformance/device/subject.h"
#include "tests/conformance/device/values.h"

namespace stride::conformance {

// The location of an array on the device. `offset` is that of its buffer; info.offset is added.
// Arena 0: no array, the slot of a scalar operand.
struct DeviceArray {
  uint64_t arena = 0;
  uint64_t offset = 0;
  ArrayInfo info;
};

// A started device with staging, a status page and one arena for small arrays: the role of the
// daemon and the command loop in a worker.
class Harness {
 public:
  static constexpr uint64_t kStagingBytes = 8 << 20;
  static constexpr uint64_t kArenaBytes = 64 << 20;
  static constexpr uint64_t kArena = 1;

  // `status_page_fd`: a file of kStatusPageBytes to share, or -1 to create one.
  static absl::StatusOr<std::unique_ptr<Harness>> Start(const SubjectUnderTest& subject,
                                                        int status_page_fd = -1, int fatal_fd = -1);
  ~Harness();

  worker::Device& device() { return *device_; }
  JournalWriter& recorder() { return *recorder_; }
  wire::StatusPage& status_page() { return *status_page_; }
  std::byte* staging() { return staging_.data(); }
  const SubjectUnderTest& subject() const { return subject_; }

  // A new arena, mapped; `size` is rounded up to the device's granularity. The harness owns the
  // descriptor.
  absl::Status CreateArena(uint64_t arena, uint64_t size);
  // Unmaps it and closes its descriptor: the memory returns to the system.
  absl::Status DropArena(uint64_t arena);
  int ArenaFd(uint64_t arena) const { return fds_.at(arena).get(); }
  // Frees all small arrays.
  void Reset() { used_ = 0; }

  // Space in the arena for small arrays, aligned to 256 bytes.
  uint64_t Allocate(uint64_t bytes);
  DeviceArray Put(const HostArray& array);
  HostArray Get(const DeviceArray& array);

  absl::Status Upload(uint64_t arena, uint64_t offset, const std::string& bytes);
  absl::StatusOr<std::string> Download(uint64_t arena, uint64_t offset, uint64_t size);
  // Starts a copy with the next id, and returns the id.
  uint64_t StartCopy(wire::Copy copy);

  // Assigns the next sequence to the task.
  uint64_t Submit(wire::Task task);
  // The same for the tasks of one packet; returns the last one's sequence.
  uint64_t SubmitAll(const std::vector<wire::Task>& tasks);
  absl::Status Run(wire::Task task);
  uint64_t last_sequence() const { return sequence_; }

  // Compiles and loads, once for equal code.
  absl::StatusOr<uint64_t> Load(const wire::Code& code);

  // A client's function that operations can then name.
  absl::Status Define(const v1::Function& function, const std::string& id);

  // Plans `operation` like the daemon and runs it; inputs in plan order. Creates outputs unless
  // `existing` is given.
  absl::StatusOr<DeviceArray> Compute(const v1::Operation& operation,
                                      const std::vector<DeviceArray>& inputs,
                                      const DeviceArray* existing = nullptr);
  // The same for operations with several results: existing[j] is the j-th target, or null.
  absl::StatusOr<std::vector<DeviceArray>> ComputeAll(
      const v1::Operation& operation, const std::vector<DeviceArray>& inputs,
      const std::vector<const DeviceArray*>& existing = {});
  // The plan's task, bound and with its module loaded, not yet submitted. `instead`: code that is
  // loaded instead of the plan's.
  absl::StatusOr<wire::Task> Prepare(const v1::Operation& operation,
                                     const std::vector<DeviceArray>& inputs,
                                     const DeviceArray* existing, DeviceArray* output,
                                     const wire::Code* instead = nullptr);
  absl::StatusOr<wire::Task> Prepare(const v1::Operation& operation,
                                     const std::vector<DeviceArray>& inputs,
                                     const std::vector<const DeviceArray*>& existing,
                                     std::vector<DeviceArray>* outputs,
                                     const wire::Code* instead = nullptr);

 private:
  explicit Harness(const SubjectUnderTest& subject) : subject_(subject) {}
  absl::Status StartDevice(int status_page_fd, int fatal_fd);

  const SubjectUnderTest subject_;
  std::unique_ptr<JournalWriter> recorder_;
  MemoryMap staging_, status_page_map_;
  wire::StatusPage* status_page_ = nullptr;
  std::unique_ptr<worker::Device> device_;
  std::unique_ptr<worker::CodeCompiler> compiler_;
  std::map<uint64_t, UniqueFd> fds_;
  std::map<std::string, uint64_t> modules_;
  struct Functions : ops::FunctionTable {
    const ops::ClientFunction* Find(std::string_view name) const override;
    std::map<std::string, ops::ClientFunction> known;
  };
  Functions functions_;
  uint64_t used_ = 0, sequence_ = 0, copy_ = 0, module_ = 0;
};

// Tests share one device: starting it takes longer than they do.
class DeviceTest : public testing::Test {
 protected:
  static void SetUpTestSuite();
  void SetUp() override;
  Harness& harness() { return *shared_; }

 private:
  static std::unique_ptr<Harness> shared_;
  static absl::Status reason_;  // the reason for its absence
  friend void EndSharedDevice();
};
// Called after the last test, before statics are destroyed.
void EndSharedDevice();

// Refused before it ran: a plan that does not fit the arenas or the code is the daemon's mistake,
// which a device may call INTERNAL or INVALID_ARGUMENT.
#define EXPECT_REFUSED(expression)                                               \
  do {                                                                           \
    const absl::Status refused = (expression);                                   \
    EXPECT_TRUE(absl::IsInternal(refused) || absl::IsInvalidArgument(refused) || \
                absl::IsFailedPrecondition(refused))                             \
        << refused;                                                              \
  } while (false)

// Short forms of operations.
v1::Operation UfuncOf(const std::string& function, int num_inputs);
v1::Operation ReductionOf(v1::Reduction::Function function, std::vector<int32_t> axes);
v1::Operation MatmulOf();

}  // namespace stride::conformance
