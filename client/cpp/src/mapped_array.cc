#include "stride/mapped_array.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "client/cpp/src/array_state.h"
#include "client/cpp/src/call.h"
#include "client/cpp/src/core.h"
#include "client/cpp/src/status.h"
#include "stride/v1/region_service.pb.h"

namespace stride {
namespace internal {

constexpr timeval kEndTimeout = {2, 0};

// A loan of the daemon: the answer, the memory's descriptor and pin, and on the host the mapping.
class Loan {
 public:
  Loan(v1::MapArrayResponse answer, LocalMemory lent)
      : answer_(std::move(answer)),
        lent_(std::move(lent)),
        strides_(answer_.strides().begin(), answer_.strides().end()) {
    setsockopt(lent_.pin.get(), SOL_SOCKET, SO_RCVTIMEO, &kEndTimeout, sizeof(kEndTimeout));
  }
  ~Loan() {
    if (memory_ != nullptr) munmap(memory_, size());
    if (getpid() != process_) return;  // a forked child has copies; the loan belongs to its parent
    char byte = 0;
    // The daemon closes its side when the loan has ended.
    if (shutdown(lent_.pin.get(), SHUT_WR) == 0)
      (void)!recv(lent_.pin.get(), &byte, sizeof(byte), 0);
  }
  Loan(const Loan&) = delete;

  Result<void> MapHost(bool hand_over) {
    struct stat info;
    // Otherwise an access could end in SIGBUS.
    if (fstat(lent_.memory.get(), &info) != 0 || info.st_size < answer_.memory_bytes())
      return LocalError(Code::kInternal, "The array's memory is smaller than the daemon says");
    void* data = mmap(nullptr, size(), PROT_READ | PROT_WRITE, hand_over ? MAP_SHARED : MAP_PRIVATE,
                      lent_.memory.get(), 0);
    if (data == MAP_FAILED) {
      return LocalError(Code::kUnavailable, std::string("The array's memory cannot be mapped: ") +
                                                std::strerror(errno));
    }
    memory_ = static_cast<std::byte*>(data);
    return {};
  }

  const v1::MapArrayResponse& answer() const { return answer_; }
  const std::vector<int64_t>& strides() const { return strides_; }
  int descriptor() const { return lent_.memory.get(); }
  std::byte* data() const { return memory_ == nullptr ? nullptr : memory_ + answer_.offset(); }

 private:
  size_t size() const { return static_cast<size_t>(answer_.memory_bytes()); }

  const v1::MapArrayResponse answer_;
  const LocalMemory lent_;
  const std::vector<int64_t> strides_;
  const pid_t process_ = getpid();
  std::byte* memory_ = nullptr;
};

}  // namespace internal

Result<MappedArray> MappedArray::Map(const Array& array, const MapOptions& options) {
  if (!array) return internal::LocalError(Code::kInvalidArgument, "This Array stands for nothing");
  auto core = array.state()->core();
  if (!core) return core.error();
  // Wait here until the daemon has accepted the array's operation, which was sent over another
  // connection.
  auto spec = array.state()->Spec(options);
  if (!spec) return spec.error();
  (*core)->AwaitWrites(options);
  auto name = array.state()->Name();
  if (!name) return name.error();
  if (!(*core)->channels.by_unix_socket()) {
    auto error = internal::LocalError(
        Code::kFailedPrecondition,
        "Memory can be mapped only by a client that is connected by the daemon's Unix socket: "
        "connect to unix:PATH, or fetch a copy");
    error.reason = "WRONG_STATE";
    return error;
  }
  v1::MapArrayRequest request;
  request.set_name(*name);
  request.set_hand_over(options.hand_over);
  v1::MapArrayResponse answer;
  const auto timeout = internal::TimeoutOf(options, (*core)->default_timeout);
  auto lent = (*core)->local.CallForMemory(v1::LOCAL_FRAME_MAP_ARRAY, request, options,
                                           internal::LocalDeadlineAfter(timeout), &answer);
  if (!lent) return lent.error();
  const bool on_host = answer.device_kind() == "cpu";
  auto loan = std::make_shared<internal::Loan>(std::move(answer), *std::move(lent));
  if (on_host) {
    if (auto mapped = loan->MapHost(options.hand_over); !mapped) return mapped.error();
  }
  return MappedArray(std::move(loan));
}

MappedArray::MappedArray(std::shared_ptr<internal::Loan> loan) : loan_(std::move(loan)) {}
MappedArray::MappedArray(MappedArray&&) noexcept = default;
MappedArray& MappedArray::operator=(MappedArray&&) noexcept = default;
MappedArray::~MappedArray() = default;

std::byte* MappedArray::data() const { return loan_->data(); }
const std::vector<int64_t>& MappedArray::strides() const { return loan_->strides(); }
const std::string& MappedArray::device() const { return loan_->answer().device(); }
const std::string& MappedArray::device_kind() const { return loan_->answer().device_kind(); }
int MappedArray::descriptor() const { return loan_->descriptor(); }
int64_t MappedArray::memory_bytes() const { return loan_->answer().memory_bytes(); }
int64_t MappedArray::offset() const { return loan_->answer().offset(); }

}  // namespace stride
