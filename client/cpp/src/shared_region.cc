#include "client/cpp/src/shared_region.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "client/cpp/src/call.h"
#include "client/cpp/src/status.h"
#include "client/cpp/src/ticket.h"
#include "stride/v1/region_service.grpc.pb.h"

namespace stride::internal {
namespace {

constexpr auto kCallTimeout = std::chrono::seconds(10);
constexpr auto kDeleteTimeout = std::chrono::seconds(2);

Result<std::byte*> Map(const Descriptor& fd, int64_t size) {
  struct stat info;
  // Otherwise an access could end in SIGBUS.
  if (fstat(fd.get(), &info) != 0 || info.st_size < size)
    return LocalError(Code::kInternal, "The daemon's region is smaller than it says");
  void* data = mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (data == MAP_FAILED) {
    return LocalError(Code::kUnavailable,
                      std::string("The daemon's region cannot be mapped: ") + std::strerror(errno));
  }
  return static_cast<std::byte*>(data);
}

}  // namespace

Result<std::shared_ptr<SharedRegion>> SharedRegion::Create(Channels& channels,
                                                           const std::string& session,
                                                           int64_t bytes) {
  Call call({.timeout = kCallTimeout}, {});
  v1::CreateRegionRequest request;
  request.set_parent(session);
  request.set_size_bytes(bytes);
  v1::CreateRegionResponse made;
  auto stub = v1::RegionService::NewStub(channels.control());
  if (auto status = stub->CreateRegion(call.context(), request, &made); !status.ok())
    return ToError(status);
  const int64_t size = made.region().size_bytes();
  if (size < bytes) return LocalError(Code::kInternal, "The daemon's region is too small");
  auto fd = FetchDescriptor(channels, made.socket_path(), made.ticket());
  Result<std::byte*> data = nullptr;
  if (fd) data = Map(*fd, size);
  if (fd && data) return std::make_shared<SharedRegion>(made.region().name(), session, *data, size);
  SharedRegion(made.region().name(), session, nullptr, 0).Delete(channels);
  return fd ? data.error() : fd.error();
}

SharedRegion::~SharedRegion() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(size_));
}

void SharedRegion::KeepBytes() const {
  const auto size = static_cast<size_t>(size_);
  const std::vector<std::byte> kept(data_, data_ + size_);
  void* own =
      mmap(data_, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (own != MAP_FAILED) std::memcpy(own, kept.data(), size);
}

void SharedRegion::Delete(Channels& channels) const {
  Call call({.timeout = kDeleteTimeout}, {});
  v1::DeleteRegionRequest request;
  request.set_name(name_);
  v1::DeleteRegionResponse response;
  (void)v1::RegionService::NewStub(channels.control())
      ->DeleteRegion(call.context(), request, &response);
}

}  // namespace stride::internal
