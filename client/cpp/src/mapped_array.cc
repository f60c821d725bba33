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
#include "client/cpp/src/ticket.h"
#include "stride/v1/region_service.grpc.pb.h"

namespace stride {
namespace internal {

// A loan of the daemon: the answer, the descriptor, the connection that keeps the loan, and on the
// host the mapping.
class Loan {
 public:
  Loan(v1::MapArrayResponse answer, Ticketed fetched)
      : answer_(std::move(answer)),
        fetched_(std::move(fetched)),
        strides_(answer_.strides().begin(), answer_.strides().end()) {}
  ~Loan() {
    if (memory_ != nullptr) munmap(memory_, size());
    if (getpid() != process_) return;  // a forked child has copies; the loan belongs to its parent
    char byte = 0;
    // The daemon closes its side when the loan has ended.
    if (shutdown(fetched_.connection.get(), SHUT_WR) == 0)
      (void)!recv(fetched_.connection.get(), &byte, sizeof(byte), 0);
  }
  Loan(const Loan&) = delete;

  Result<void> MapHost(bool hand_over) {
    struct stat info;
    // Otherwise an access could end in SIGBUS.
    if (fstat(fetched_.descriptor.get(), &info) != 0 || info.st_size < answer_.memory_bytes())
      return LocalError(Code::kInternal, "The array's memory is smaller than the daemon says");
    void* data = mmap(nullptr, size(), PROT_READ | PROT_WRITE, hand_over ? MAP_SHARED : MAP_PRIVATE,
                      fetched_.descriptor.get(), 0);
    if (data == MAP_FAILED) {
      return LocalError(Code::kUnavailable, std::string("The array's memory cannot be mapped: ") +
                                                std::strerror(errno));
    }
    memory_ = static_cast<std::byte*>(data);
    return {};
  }

  const v1::MapArrayResponse& answer() const { return answer_; }
  const std::vector<int64_t>& strides() const { return strides_; }
  int descriptor() const { return fetched_.descriptor.get(); }
  std::byte* data() const { return memory_ == nullptr ? nullptr : memory_ + answer_.offset(); }

 private:
  size_t size() const { return static_cast<size_t>(answer_.memory_bytes()); }

  const v1::MapArrayResponse answer_;
  const Ticketed fetched_;
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
  internal::Call call(options, (*core)->default_timeout);
  v1::MapArrayRequest request;
  request.set_name(*name);
  request.set_hand_over(options.hand_over);
  v1::MapArrayResponse answer;
  auto stub = v1::RegionService::NewStub((*core)->channels.control());
  if (auto status = stub->MapArray(call.context(), request, &answer); !status.ok())
    return internal::ToError(status);
  auto fetched =
      internal::FetchWithConnection((*core)->channels, answer.socket_path(), answer.ticket());
  if (!fetched) return fetched.error();
  const bool on_host = answer.device_kind() == "cpu";
  auto loan = std::make_shared<internal::Loan>(std::move(answer), *std::move(fetched));
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
