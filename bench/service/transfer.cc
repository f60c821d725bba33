#include <cstring>

#include "bench/service/bench.h"
#include "bench/service/raw_socket.h"

namespace stride::bench {
namespace {

constexpr int kStreams[] = {1, 4};

std::string MiB(int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

Times MeasureMemcpy(const std::vector<std::byte>& from, std::vector<std::byte>& to, int rounds) {
  Times times;
  for (int i = 0; i <= rounds; ++i) {
    const double seconds = SecondsOf([&] { std::memcpy(to.data(), from.data(), from.size()); });
    if (i > 0) times.Add(seconds);
  }
  return times;
}

struct Case {
  const Setup& setup;
  const Transport& transport;
  std::string device;
  int num_streams;
  bool first;  // the device's first
};

Result<void> MeasureOne(const Case& c, const std::vector<std::byte>& data,
                        std::vector<std::byte>& out, const Times& copy, Report& report) {
  BENCH_TRY(client, Client::Connect({.address = c.transport.daemon,
                                     .num_bulk_channels = c.num_streams,
                                     .share_memory = false}));
  RawSocketClient raw(c.transport.raw, c.num_streams);
  const auto size = static_cast<int64_t>(data.size());
  PutOptions put;
  put.device = c.device;
  Times first, up, down, raw_up, raw_down;
  for (int round = 0; round <= c.setup.num_rounds; ++round) {
    auto start = Clock::now();
    BENCH_TRY(array, client.PutBytes(data, {DataType::kUint8, {size}}, put));
    (round == 0 ? first : up).Add(SecondsSince(start));
    start = Clock::now();
    BENCH_OK(client.FetchBytes(array, out));
    if (round > 0) down.Add(SecondsSince(start));
    if (round == 0 && out != data) return Broken("The bytes that came back differ from those sent");
    array = Array();
    BENCH_OK(client.Synchronize());  // its memory is free for the next

    start = Clock::now();
    if (!raw.Send(data)) return Broken("The raw socket broke");
    if (round > 0) raw_up.Add(SecondsSince(start));
    start = Clock::now();
    if (!raw.Receive(out)) return Broken("The raw socket broke");
    if (round > 0) raw_down.Add(SecondsSince(start));
  }
  const std::string streams = std::to_string(c.num_streams);
  const std::string id = c.transport.name + "/" + ShortName(c.device) + "/" + streams;
  const std::string what = " " + MiB(size) + ", " + streams +
                           (c.num_streams > 1 ? " streams, " : " stream, ") + c.transport.name +
                           ", " + ShortName(c.device);
  auto add = [&](const std::string& name, const std::string& text, const Times& ours,
                 const char* baseline_name, const Times& baseline) {
    report.Add({name + "/" + id, text + what, ours, baseline_name, baseline, size});
  };
  // Later ones find memory that earlier ones have touched.
  if (c.first)
    add("upload_first", "Into fresh memory, upload", first, "raw socket, warm memory", raw_up);
  add("upload", "Upload", up, "raw socket", raw_up);
  add("download", "Download", down, "raw socket", raw_down);
  add("upload_memcpy", "Upload", up, "memcpy, one thread", copy);
  add("download_memcpy", "Download", down, "memcpy, one thread", copy);
  return {};
}

}  // namespace

Result<void> MeasureTransfer(const Setup& setup, Report& report) {
  report.Section("Arrays in and out");
  std::vector<std::byte> data(setup.transfer_bytes), out(setup.transfer_bytes);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  const Times copy = MeasureMemcpy(data, out, setup.num_rounds);
  for (const auto& device : setup.devices) {
    bool first = true;
    for (const auto& transport : setup.transports) {
      for (int streams : kStreams) {
        BENCH_OK(MeasureOne({setup, transport, device, streams, first}, data, out, copy, report));
        first = false;
      }
    }
  }
  return {};
}

}  // namespace stride::bench
