#include <algorithm>
#include <cstring>
#include <thread>

#include "bench/service/bench.h"
#include "bench/service/pinned_dma.h"
#include "bench/service/raw_socket.h"

namespace stride::bench {
namespace {

// Splits a copy evenly among threads. Starting the threads is part of the time.
void CopyInThreads(std::byte* to, const std::byte* from, size_t size, int num_threads) {
  std::vector<std::thread> threads;
  const size_t step = (size + num_threads - 1) / num_threads;
  for (size_t at = 0; at < size; at += step)
    threads.emplace_back([=] { std::memcpy(to + at, from + at, std::min(step, size - at)); });
  for (auto& thread : threads) thread.join();
}

Times MeasureCopies(const std::vector<std::byte>& from, std::vector<std::byte>& to, int num_threads,
                    int rounds) {
  Times times;
  for (int i = 0; i <= rounds; ++i) {
    const double seconds =
        SecondsOf([&] { CopyInThreads(to.data(), from.data(), from.size(), num_threads); });
    if (i > 0) times.Add(seconds);
  }
  return times;
}

struct Pair {
  Times up, down;
};

struct Bytes {
  std::span<const std::byte> from;
  std::span<std::byte> to;
};

Result<Pair> MeasurePair(Client& client, const std::string& device, const Bytes& bytes,
                         int rounds) {
  Pair times;
  PutOptions put;
  put.device = device;
  const auto size = static_cast<int64_t>(bytes.from.size());
  for (int round = 0; round <= rounds; ++round) {
    auto start = Clock::now();
    BENCH_TRY(array, client.PutBytes(bytes.from, {DataType::kUint8, {size}}, put));
    if (round > 0) times.up.Add(SecondsSince(start));
    start = Clock::now();
    BENCH_OK(client.FetchBytes(array, bytes.to));
    if (round > 0) times.down.Add(SecondsSince(start));
    if (round == 0 && !std::equal(bytes.to.begin(), bytes.to.end(), bytes.from.begin()))
      return Broken("The bytes that came back differ from those sent");
    array = Array();
    BENCH_OK(client.Synchronize());  // its memory is free for the next
  }
  return times;
}

Result<Pair> MeasureRaw(RawSocketClient& raw, const Bytes& bytes, int rounds) {
  Pair times;
  for (int round = 0; round <= rounds; ++round) {
    auto start = Clock::now();
    if (!raw.Send(bytes.from)) return Broken("The raw socket broke");
    if (round > 0) times.up.Add(SecondsSince(start));
    start = Clock::now();
    if (!raw.Receive(bytes.to)) return Broken("The raw socket broke");
    if (round > 0) times.down.Add(SecondsSince(start));
  }
  return times;
}

bool IsOnHost(const std::string& device) { return ShortName(device).starts_with("cpu:"); }

}  // namespace

Result<void> MeasureShared(const Setup& setup, Report& report) {
  const auto local = std::find_if(setup.transports.begin(), setup.transports.end(),
                                  [](const Transport& t) { return t.name == "unix"; });
  if (local == setup.transports.end()) return {};
  report.Section("Arrays in and out by shared memory");
  const int64_t size = setup.transfer_bytes;
  const int rounds = setup.num_rounds;
  std::vector<std::byte> data(size), out(size);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  const int num_threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, 8);
  const Times one = MeasureCopies(data, out, 1, rounds);
  const Times several = MeasureCopies(data, out, num_threads, rounds);
  BENCH_TRY(client, Client::Connect({.address = local->daemon}));
  BENCH_TRY(messages, Client::Connect({.address = local->daemon, .share_memory = false}));
  RawSocketClient raw(local->raw, std::max(2, num_threads / 2));
  for (const auto& device : setup.devices) {
    const Bytes own{data, out};
    BENCH_TRY(sockets, MeasureRaw(raw, own, rounds));
    BENCH_TRY(plain, MeasurePair(messages, device, own, rounds));
    BENCH_TRY(copied, MeasurePair(client, device, own, rounds));
    BENCH_TRY(from, client.AllocateShared(size));
    BENCH_TRY(to, client.AllocateShared(size));
    std::memcpy(from.data(), data.data(), data.size());
    BENCH_TRY(in_place,
              MeasurePair(client, device, {{from.data(), data.size()}, {to.data(), data.size()}},
                          rounds));
    auto add = [&](const std::string& id, const std::string& text, const Times& ours,
                   const std::string& baseline_name, const Times& baseline) {
      report.Add({id + "/" + ShortName(device),
                  text + " " + std::to_string(size >> 20) + " MiB, " + ShortName(device), ours,
                  baseline_name, baseline, size});
    };
    std::optional<PinnedDma> dma;
    if (!IsOnHost(device)) dma = MeasurePinnedDma(out, rounds);
    const std::string threads = "memcpy, " + std::to_string(num_threads) + " threads";
    const struct {
      std::string id, text;
      const Times &own, &mine, &socket, &message;
    } rows[] = {{"up", "Up", copied.up, in_place.up, sockets.up, plain.up},
                {"down", "Down", copied.down, in_place.down, sockets.down, plain.down}};
    for (const auto& row : rows) {
      add("shared_" + row.id, row.text + " by shared region", row.own, "raw Unix sockets",
          row.socket);
      add("shared_" + row.id + "_messages", row.text + " by shared region", row.own, "messages",
          row.message);
      add("shared_" + row.id + "_memcpy", row.text + " by shared region", row.own, threads,
          several);
      add("in_place_" + row.id, row.text + " from and to shared memory", row.mine,
          "raw Unix sockets", row.socket);
      add("in_place_" + row.id + "_memcpy1", row.text + " from and to shared memory", row.mine,
          "memcpy, one thread", one);
      add("in_place_" + row.id + "_memcpy", row.text + " from and to shared memory", row.mine,
          threads, several);
      if (!dma) continue;
      const Times& pinned = row.id == "up" ? dma->up : dma->down;
      add("shared_" + row.id + "_dma", row.text + " by shared region", row.own,
          "pinned DMA in one process", pinned);
      add("in_place_" + row.id + "_dma", row.text + " from and to shared memory", row.mine,
          "pinned DMA in one process", pinned);
    }
  }
  return {};
}

}  // namespace stride::bench
