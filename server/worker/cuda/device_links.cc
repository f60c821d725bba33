#include "server/worker/cuda/device_links.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/environment.h"
#include "server/worker/cuda/driver/arena.h"
#include "server/worker/cuda/driver/cuda_status.h"
#include "server/worker/cuda/driver/handles.h"

namespace stride::cuda {
namespace {

// Long enough to measure NVLink (0.2 ms), and still short over PCIe.
constexpr uint64_t kProbeBytes = uint64_t{64} << 20;
constexpr int kNumProbes = 3;
constexpr absl::Duration kPatience = absl::Seconds(2);

// A device's resources for test copies.
struct End {
  CUdevice device = 0;
  Context context;
  Stream stream;
  ArenaMapping::Created arena;
};

absl::StatusOr<End> OpenEnd(const Driver& driver, int index) {
  End end;
  STRIDE_CUDA_RETURN(driver.cuDeviceGet(&end.device, index), "opening a device");
  absl::StatusOr<Context> context = Context::Retain(driver, end.device);
  if (!context.ok()) return context.status();
  end.context = *std::move(context);
  absl::StatusOr<Stream> stream = Stream::Create(driver);
  if (!stream.ok()) return stream.status();
  end.stream = *std::move(stream);
  absl::StatusOr<ArenaMapping::Created> arena =
      ArenaMapping::Create(driver, end.device, kProbeBytes);
  if (!arena.ok()) return arena.status();
  end.arena = *std::move(arena);
  return end;
}

// Measures copies like those of `to`'s worker from an arena of `from`: imported, with access for
// `to`. Bytes per second.
absl::StatusOr<double> MeasureRate(const Driver& driver, const End& from, const End& to) {
  if (absl::Status status = to.context.MakeCurrent(); !status.ok()) return status;
  absl::StatusOr<ArenaMapping> source =
      ArenaMapping::Import(driver, to.device, kProbeBytes, from.arena.fd);
  if (!source.ok()) return source.status();
  absl::Duration best = absl::InfiniteDuration();
  for (int i = 0; i <= kNumProbes; ++i) {
    const SteadyTime start = Now();
    STRIDE_CUDA_RETURN(driver.cuMemcpyDtoDAsync(to.arena.mapping.address(), source->address(),
                                                kProbeBytes, to.stream.get()),
                       "copying between devices");
    STRIDE_CUDA_RETURN(driver.cuStreamSynchronize(to.stream.get()), "copying between devices");
    if (i > 0) best = std::min(best, Now() - start);  // the first one includes setup
  }
  return static_cast<double>(kProbeBytes) / absl::ToDoubleSeconds(best);
}

}  // namespace

std::vector<wire::Link> FindLinks(const Driver& driver,
                                  const std::vector<wire::DeviceDescription>& devices) {
  std::vector<wire::Link> links;
  if (devices.size() < 2) return links;
  const SteadyTime give_up = Now() + kPatience;
  std::map<int, absl::StatusOr<End>> ends;
  auto end_of = [&](int index) -> const absl::StatusOr<End>& {
    auto found = ends.find(index);
    if (found == ends.end()) found = ends.emplace(index, OpenEnd(driver, index)).first;
    return found->second;
  };
  for (const auto& from : devices) {
    for (const auto& to : devices) {
      if (from.id() == to.id()) continue;
      wire::Link& link = links.emplace_back();
      link.set_from(from.id());
      link.set_to(to.id());
      CUdevice source = 0, target = 0;
      int can = 0;
      const bool known = driver.cuDeviceGet(&source, from.index()) == CUDA_SUCCESS &&
                         driver.cuDeviceGet(&target, to.index()) == CUDA_SUCCESS &&
                         driver.cuDeviceCanAccessPeer(&can, target, source) == CUDA_SUCCESS;
      link.set_peer(known && can != 0);
      if (!link.peer() || Now() > give_up) continue;
      const absl::StatusOr<End>&a = end_of(from.index()), &b = end_of(to.index());
      if (!a.ok() || !b.ok()) continue;
      absl::StatusOr<double> rate = MeasureRate(driver, *a, *b);
      // A device whose memory cannot be read is not a peer.
      if (rate.ok()) {
        link.set_bytes_per_second(*rate);
      } else {
        link.set_peer(false);
      }
    }
  }
  // Destroy each in its own context.
  for (auto& [index, end] : ends) {
    if (end.ok() && end->context.MakeCurrent().ok()) end->arena.mapping = ArenaMapping();
  }
  return links;
}

}  // namespace stride::cuda
