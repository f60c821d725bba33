// Packets of a hostile worker, through the channel into the ledger of its open requests. Each
// packet is a length byte, then its bytes; the daemon sends a new request before each.

#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/broker/event_ledger.h"
#include "server/wire/channel.h"
#include "server/wire/status.h"
#include "tests/fuzz/driver/proto_mutator.h"
#include "tests/fuzz/driver/require.h"

namespace {

using stride::fuzz::Require;
namespace broker = stride::broker;
namespace wire = stride::wire;

class Daemon {
 public:
  void Ask() {
    ++round_;
    ledger_.AddTasks(2 * round_);
    ledger_.AddCopy([this](absl::Status) { ++copies_answered_; });
    ++copies_asked_;
    ledger_.AddLoad(round_, [](absl::StatusOr<wire::ModuleLoaded>) {});
    ledger_.AddArena(round_);
    ledger_.AddCancel(round_);
  }

  absl::Status Take(const wire::Event& event) {
    switch (event.kind_case()) {
      case wire::Event::kArenaCreated:
        return ledger_.PutArena(event.arena_created().arena(),
                                wire::ToStatus(event.arena_created().status()).ok()
                                    ? absl::StatusOr<stride::UniqueFd>(stride::UniqueFd())
                                    : absl::AbortedError(""));
      case wire::Event::kModuleLoaded: {
        auto loaded = ledger_.TakeLoad(event.module_loaded().module());
        if (loaded.ok())
          (*loaded)(wire::ToStatus(event.module_loaded().status()).ok()
                        ? absl::StatusOr<wire::ModuleLoaded>(event.module_loaded())
                        : absl::AbortedError(""));
        return loaded.status();
      }
      case wire::Event::kTasksDone:
        for (const auto& result : event.tasks_done().results()) {
          if (absl::Status s = ledger_.CheckTask(result); !s.ok()) return s;
          Require(ledger_.last_result() <= ledger_.last_submitted(), "a result of nothing");
          (void)wire::ToStatus(result.status());
        }
        return absl::OkStatus();
      case wire::Event::kTasksCancelled:
        return ledger_.TakeCancel(event.tasks_cancelled().sequence());
      case wire::Event::kCopiesDone: {
        auto copies = ledger_.TakeCopies(event.copies_done());
        if (!copies.ok()) return copies.status();
        for (auto& copy : *copies) copy(wire::ToStatus(event.copies_done().status()));
        return absl::OkStatus();
      }
      default:
        return absl::InvalidArgumentError("");
    }
  }

  // Whatever it sent: every copy completes once, in the end.
  void Bury() {
    for (auto& copy : ledger_.TakeAllCopies()) copy(absl::AbortedError(""));
    for (auto& loaded : ledger_.TakeAllLoads()) loaded(absl::AbortedError(""));
    ledger_.FailArenas(absl::AbortedError(""));
    for (uint64_t arena = 1; arena <= round_; ++arena) {
      Require(ledger_.ArenaAnswered(arena), "an arena without an answer");
      (void)ledger_.TakeArena(arena);
    }
    Require(copies_answered_ == copies_asked_, "a copy answered twice, or never");
  }

 private:
  broker::EventLedger ledger_;
  uint64_t round_ = 0;
  int copies_asked_ = 0, copies_answered_ = 0;
};

std::string_view TakePacket(std::string_view* input) {
  size_t size = static_cast<uint8_t>(input->front());
  input->remove_prefix(1);
  std::string_view packet = input->substr(0, size);
  input->remove_prefix(packet.size());
  return packet;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size,
                                          unsigned seed) {
  std::string_view input(reinterpret_cast<char*>(bytes), size);
  std::vector<std::string> packets;
  while (!input.empty()) packets.emplace_back(TakePacket(&input));
  std::mt19937 random(seed);
  wire::Event event;
  if (packets.empty() || random() % 4 == 0) packets.emplace_back();
  std::string& packet = packets[random() % packets.size()];
  if (event.ParseFromString(packet)) {
    stride::fuzz::MutateMessage(&event, &random);
    packet = event.SerializeAsString();
  }
  std::string out;
  for (std::string& each : packets) {
    each.resize(std::min<size_t>(each.size(), 255));
    out.push_back(static_cast<char>(each.size()));
    out += each;
  }
  out.resize(std::min(out.size(), max_size));
  std::copy(out.begin(), out.end(), bytes);
  return out.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(bytes), size);
  auto sockets = wire::CreateSocketPair();
  Require(sockets.ok(), "no sockets");
  wire::Channel channel(std::move(sockets->first));
  Daemon daemon;
  for (int packets = 0; !input.empty() && packets < 64; ++packets) {
    daemon.Ask();
    std::string_view packet = TakePacket(&input);
    if (send(sockets->second.get(), packet.data(), packet.size(), MSG_NOSIGNAL) < 0) break;
    wire::Event event;
    std::vector<stride::UniqueFd> descriptors;
    auto outcome = channel.Receive(&event, &descriptors, absl::ZeroDuration());
    if (!outcome.ok() || *outcome != wire::Channel::Outcome::kMessage) break;
    if (!daemon.Take(event).ok()) break;
  }
  daemon.Bury();
  return 0;
}
