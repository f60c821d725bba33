#include <cstring>

#include "client/cli/bench/bench.h"

namespace stride::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Bytes {
  std::vector<std::byte> data, out;
};

Result<void> Measure(BenchSetup& setup, int num_streams, Bytes& bytes) {
  ConnectOptions connection = setup.connection;
  connection.num_bulk_channels = num_streams;
  auto client = Client::Connect(connection);
  if (!client) return client.error();
  PutOptions put = setup.context.Call<PutOptions>();
  put.device = setup.device;
  const auto size = static_cast<int64_t>(bytes.data.size());
  Samples up, down, copy;
  for (int round = -1; round < setup.options.num_rounds; ++round) {
    const auto start = Clock::now();
    auto array = client->PutBytes(bytes.data, {DataType::kUint8, {size}}, put);
    if (!array) return array.error();
    const auto arrived = Clock::now();
    auto fetched = client->FetchBytes(*array, bytes.out, DataType::kUnspecified,
                                      setup.context.Call<TransferOptions>());
    if (!fetched) return fetched;
    const auto back = Clock::now();
    if (round < 0 && bytes.out != bytes.data)
      return Error{.code = Code::kDataLoss,
                   .message = "The bytes that came back differ from those sent"};
    *array = Array();
    // Frees its memory for the next round.
    if (auto done = client->Synchronize(setup.context.Call()); !done) return done;
    const auto before = Clock::now();
    std::memcpy(bytes.out.data(), bytes.data.data(), bytes.data.size());
    const auto copied = Clock::now();
    if (round < 0) continue;  // the first round connects and touches the memory
    up.Add(arrived - start);
    down.Add(back - arrived);
    copy.Add(copied - before);
  }
  const std::string where = setup.short_device() + "/" + std::to_string(num_streams);
  const std::string what = std::to_string(size >> 20) + " MiB, " + std::to_string(num_streams) +
                           (num_streams == 1 ? " stream, " : " streams, ") + setup.short_device();
  setup.add({"cli_put/" + where, "Put of " + what, up, "memcpy", copy, size});
  setup.add({"cli_get/" + where, "Get of " + what, down, "memcpy", copy, size});
  return {};
}

}  // namespace

Result<void> BenchBandwidth(BenchSetup& setup) {
  Bytes bytes{std::vector<std::byte>(setup.options.bytes),
              std::vector<std::byte>(setup.options.bytes)};
  for (size_t i = 0; i < bytes.data.size(); ++i)
    bytes.data[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  for (int num_streams : setup.options.stream_counts) {
    if (auto measured = Measure(setup, num_streams, bytes); !measured) return measured;
  }
  return {};
}

}  // namespace stride::cli
