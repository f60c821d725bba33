// stride-worker-fake: speaks the worker protocol through the real runtime and follows task labels,
// the source to compile, or STRIDE_WORKER_FAKE_START.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/base/memory_file.h"
#include "server/wire/channel.h"
#include "server/worker/runtime/worker_main.h"

namespace stride::worker {
namespace {

constexpr int kSocket = 3;

[[noreturn]] void SleepForever() {
  for (;;) pause();
}

void SendRaw(const std::string& bytes) {
  (void)!send(kSocket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

void SendEvent(const wire::Event& event) { SendRaw(event.SerializeAsString()); }

void SendResult(uint64_t sequence, double seconds = 0) {
  wire::Event event;
  auto* result = event.mutable_tasks_done()->add_results();
  result->set_sequence(sequence);
  result->set_run_seconds(seconds);
  SendEvent(event);
}

void SendWithDescriptor(const wire::Event& event) {
  wire::Channel channel{UniqueFd(dup(kSocket))};
  (void)channel.Send(event, {STDIN_FILENO});
}

// A packet of garbage with `count` descriptors attached.
void SendDescriptors(size_t count) {
  std::vector<int> descriptors(count, STDIN_FILENO);
  std::vector<char> control(CMSG_SPACE(count * sizeof(int)));
  char byte = 'x';
  iovec content{&byte, 1};
  msghdr header{};
  header.msg_iov = &content;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* c = CMSG_FIRSTHDR(&header);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::memcpy(CMSG_DATA(c), descriptors.data(), count * sizeof(int));
  (void)!sendmsg(kSocket, &header, MSG_NOSIGNAL);
}

void Lie(const std::string& what, uint64_t sequence) {
  wire::Event event;
  if (what == "future") return SendResult(sequence + 1000);
  if (what == "skip") return SendResult(sequence + 1);
  if (what == "zero") return SendResult(0);
  if (what == "nan") return SendResult(sequence, std::numeric_limits<double>::quiet_NaN());
  if (what == "repeat") {
    SendResult(sequence);
    return SendResult(sequence);
  }
  if (what == "garbage") return SendRaw("\xff\xff\xff\xff garbage");
  if (what == "oversize") return SendRaw(std::string(wire::kMaxPacketBytes + 1, 'x'));
  if (what == "half") {
    wire::Event whole;
    whole.mutable_tasks_done()->add_results()->set_sequence(sequence);
    std::string bytes = whole.SerializeAsString();
    return SendRaw(bytes.substr(0, bytes.size() - 1));
  }
  if (what == "nothing")
    return SendRaw(wire::Event().SerializeAsString() + std::string("\x22\0", 2));
  if (what == "no copies") event.mutable_copies_done();
  if (what == "broken text") {
    // The serializer would refuse it: field 4 (tasks_done), 1 (a result), 2 (status), 2 (message).
    return SendRaw(std::string("\x22\x0a\x0a\x08\x08\x02\x12\x04\x08\x0d\x12\xff", 12));
  }
  if (what == "many descriptors") return SendDescriptors(wire::kMaxPacketDescriptors + 60);
  if (what == "descriptor flood") {
    for (;;) SendDescriptors(wire::kMaxPacketDescriptors);
  }
  if (what == "two arenas") {
    event.mutable_arena_created()->set_arena(1);
    return SendWithDescriptor(event);
  }
  if (what == "endless fatal") {
    event.mutable_fatal()->mutable_status()->set_code(13);
    event.mutable_fatal()->mutable_status()->set_message(std::string(100 << 10, 'x'));
    for (;;) SendEvent(event);
  }
  if (what == "last result") event.mutable_tasks_done()->add_results()->set_sequence(~uint64_t{0});
  if (what == "cancelled") event.mutable_tasks_cancelled()->set_sequence(sequence);
  if (what == "printed for another") {
    event.mutable_printed()->set_sequence(sequence + 1000);
    event.mutable_printed()->set_text("text");
  }
  if (what == "printed nothing") event.mutable_printed()->set_sequence(sequence);
  if (what == "printed too much") {
    event.mutable_printed()->set_sequence(sequence);
    event.mutable_printed()->set_text(std::string(kMaxPrintedPiece, 'x'));
    for (size_t i = 0; i <= kMaxPrintedBytes / kMaxPrintedPiece; ++i) SendEvent(event);
    return;
  }
  if (what == "copy") event.mutable_copies_done()->add_ids(77);
  if (what == "module") event.mutable_module_loaded()->set_module(77);
  if (what == "arena") event.mutable_arena_created()->set_arena(77);
  if (what == "pong") event.mutable_pong()->set_id(77);
  if (what == "started") event.mutable_started();
  if (what == "descriptor") {
    event.mutable_tasks_done()->add_results()->set_sequence(sequence);
    return SendWithDescriptor(event);
  }
  SendEvent(event);
}

class FakeDevice : public Device {
 public:
  absl::Status Start(const Environment& environment) override {
    environment_ = environment;
    const char* order = std::getenv("STRIDE_WORKER_FAKE_START");
    std::string start = order == nullptr ? "" : order;
    if (start == "hang") SleepForever();
    if (start == "die") _exit(9);
    if (start == "fail") return absl::ResourceExhaustedError("no memory for a context");
    if (start == "lie") SendResult(1);
    return absl::OkStatus();
  }

  absl::StatusOr<UniqueFd> CreateArena(uint64_t arena, uint64_t size) override {
    if (size == 13) SleepForever();
    if (size == 14) raise(SIGKILL);
    auto fd = CreateMemoryFile("fake-arena", size);
    if (!fd.ok()) return fd.status();
    auto copy = fd->Duplicate();
    if (absl::Status s = MapArena(arena, size, *std::move(copy)); !s.ok()) return s;
    return fd;
  }

  absl::Status MapArena(uint64_t arena, uint64_t size, UniqueFd fd) override {
    auto map = MemoryMap::Map(fd.get(), size, true);
    if (!map.ok()) return map.status();
    arenas_[arena] = *std::move(map);
    return absl::OkStatus();
  }
  absl::Status MapHostArena(uint64_t arena, uint64_t size, UniqueFd fd) override {
    return MapArena(arena, size, std::move(fd));
  }
  absl::Status UnmapArena(uint64_t arena) override {
    arenas_.erase(arena);
    return absl::OkStatus();
  }

  absl::StatusOr<wire::ModuleLoaded> LoadModule(uint64_t module, UniqueFd object,
                                                const wire::LoadModule& load) override {
    auto map = MemoryMap::Map(object.get(), load.size(), false);
    if (!map.ok()) return map.status();
    if (map->view() == "bad") return absl::InternalError("the object is bad");
    if (map->view() == "deaf") SleepForever();
    wire::ModuleLoaded loaded;
    loaded.add_kernels()->set_entry(std::string(map->view()));
    return loaded;
  }
  absl::Status UnloadModule(uint64_t) override { return absl::OkStatus(); }
  absl::Status LoadGraph(uint64_t, wire::Graph) override { return absl::OkStatus(); }
  absl::Status UnloadGraph(uint64_t) override { return absl::OkStatus(); }

  void Enqueue(const wire::Task& task) override {
    absl::string_view label = task.label();
    environment_.status_page->started_sequence = static_cast<uint32_t>(task.sequence());
    absl::Status status;
    if (label == "wait") return;  // in the queue, until it is cancelled
    if (label == "hang") return;  // never completes; the loop continues
    if (label == "stuck") SleepForever();
    if (label == "chatter") {
      for (int i = 0; i < 100000; ++i) std::fprintf(stderr, "line %d \x1b[31m\xff\n", i);
    }
    if (label == "long text") {
      status = absl::FailedPreconditionError(std::string(10 << 20, '\xfe'));
    }
    if (label == "print") environment_.completions->Printed(task.sequence(), {"a line\n", 3});
    if (label == "assert") {
      std::fprintf(stderr,
                   "k.cu:3: void k(int): block: [2,0,0], thread: [3,0,0] Assertion `n > 0` "
                   "failed.\n");
      environment_.completions->Fatal(task.sequence(),
                                      absl::FailedPreconditionError("device assert failed"),
                                      /*context_lost=*/false);
    }
    if (label == "fail") status = absl::FailedPreconditionError("the kernel failed");
    if (label == "fatal") {
      environment_.completions->Fatal(task.sequence(),
                                      absl::FailedPreconditionError("the device is poisoned"),
                                      /*context_lost=*/false);
    }
    if (label == "fatal elsewhere") {
      environment_.completions->Fatal(12345, absl::InternalError("the driver is gone"),
                                      /*context_lost=*/false);
    }
    int number = 0;
    if (absl::ConsumePrefix(&label, "exit ") && absl::SimpleAtoi(label, &number)) _exit(number);
    if (absl::ConsumePrefix(&label, "signal ") && absl::SimpleAtoi(label, &number)) {
      signal(number, SIG_DFL);
      raise(number);
    }
    if (absl::ConsumePrefix(&label, "lie ")) return Lie(std::string(label), task.sequence());
    environment_.status_page->completed_sequence = static_cast<uint32_t>(task.sequence());
    environment_.completions->TaskDone(task.sequence(), status, 0.25, /*more=*/false);
  }

  // Only of tasks that wait, please.
  void Cancel(absl::Span<const uint64_t> sequences) override {
    environment_.completions->TasksCancelled(sequences.front(), true);
    for (uint64_t sequence : sequences) {
      environment_.completions->TaskDone(sequence, absl::CancelledError("taken out"), 0,
                                         /*more=*/false);
    }
  }

  absl::Status MapRegion(uint64_t region, uint64_t size, UniqueFd fd) override {
    auto map = MemoryMap::Map(fd.get(), size, true);
    if (!map.ok()) return map.status();
    regions_[region] = *std::move(map);
    return absl::OkStatus();
  }
  absl::Status UnmapRegion(uint64_t region) override {
    regions_.erase(region);
    return absl::OkStatus();
  }

  void Copy(const wire::Copy& copy) override {
    if (copy.size() == 13) return;  // never completes
    auto found = arenas_.find(copy.arena());
    if (found == arenas_.end()) {
      return environment_.completions->CopyDone(copy.id(), absl::InternalError("no such arena"));
    }
    std::byte* memory = found->second.data() + copy.arena_offset();
    std::byte* staging = environment_.staging;
    if (copy.region() != 0) {
      auto region = regions_.find(copy.region());
      if (region == regions_.end()) {
        return environment_.completions->CopyDone(copy.id(), absl::InternalError("no such region"));
      }
      staging = region->second.data();
    }
    staging += copy.staging_offset();
    std::memcpy(copy.to_device() ? memory : staging, copy.to_device() ? staging : memory,
                copy.size());
    environment_.completions->CopyDone(copy.id(), absl::OkStatus());
  }
  void Drain() override {}

 private:
  Environment environment_;
  std::map<uint64_t, MemoryMap> arenas_, regions_;
};

// Ends the process as specified by `how`.
[[noreturn]] void DieAs(absl::string_view how) {
  int number = 0;
  if (absl::ConsumePrefix(&how, "exit ") && absl::SimpleAtoi(how, &number)) _exit(number);
  if (absl::ConsumePrefix(&how, "signal ") && absl::SimpleAtoi(how, &number)) {
    signal(number, SIG_DFL);  // a sanitizer would report it
    raise(number);
  }
  SleepForever();
}

// `TIMES FILE HOW`: the first TIMES processes die, each after adding a byte to the file.
void DieAtFirst(absl::string_view order) {
  std::vector<std::string> words = absl::StrSplit(order, absl::MaxSplits(' ', 2));
  int times = 0;
  if (words.size() != 3 || !absl::SimpleAtoi(words[0], &times)) _exit(64);
  int fd = open(words[1].c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  struct stat info = {};
  if (fd < 0 || fstat(fd, &info) != 0) _exit(64);
  if (info.st_size >= times) return;
  (void)!write(fd, "x", 1);
  DieAs(words[2]);
}

// The source's text is an instruction; the object is the input of Device::LoadModule.
class FakeCompiler : public CodeCompiler {
 public:
  absl::StatusOr<CompiledCode> Compile(const std::string& target, const wire::Code& code) override {
    absl::string_view order = code.source().text();
    ++count_;
    if (order == "wrong") return absl::InvalidArgumentError("line 1: that is wrong");
    if (order == "unheard of") return absl::UnimplementedError("textures");
    if (order == "crash") {
      signal(SIGSEGV, SIG_DFL);  // a sanitizer would report it
      raise(SIGSEGV);
    }
    if (absl::ConsumePrefix(&order, "die ")) DieAtFirst(order);
    if (order == "hang") SleepForever();
    if (order == "spin") raise(SIGXCPU);
    if (order == "lie") SendRaw("\xff garbage");
    if (absl::StartsWith(order, "slow"))
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CompiledCode result;
    result.object = absl::StartsWith(order, "object ") ? std::string(order.substr(7))
                                                       : absl::StrCat(order.size(), " bytes");
    result.log = absl::StrCat(getpid(), " ", count_);
    result.description.add_kernels()->set_entry("main");
    return result;
  }

 private:
  int count_ = 0;
};

wire::DeviceList List() {
  wire::DeviceList list;
  list.set_toolchain("fake compiler 1");
  for (int i = 0; i < 2; ++i) {
    auto* device = list.add_devices();
    device->set_id(absl::StrCat("fake:", i));
    device->set_kind("fake");
    device->set_index(i);
    device->set_target("fake:1");
  }
  return list;
}

}  // namespace
}  // namespace stride::worker

int main(int argc, char** argv) {
  using namespace stride::worker;
  return WorkerMain(argc, argv,
                    {.list = List,
                     .make_device = [] { return std::make_unique<FakeDevice>(); },
                     .make_compiler = [] { return std::make_unique<FakeCompiler>(); },
                     .needs =
                         [](WorkerMode) {
                           SandboxNeeds needs;
                           needs.file_bytes = 1 << 30;  // its arenas and objects
                           return needs;
                         }});
}
