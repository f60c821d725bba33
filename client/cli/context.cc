#include "client/cli/context.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

namespace stride::cli {
namespace {

// The daemon gives its devices 10 s.
constexpr auto kDevicesTried = std::chrono::seconds(11);

}  // namespace

Context::Context(CommandLine line, Cancellation cancellation)
    : line_(std::move(line)), cancellation_(std::move(cancellation)) {}

bool Context::color() const {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) && !(no_color && *no_color) &&
         !(term && std::string_view(term) == "dumb");
}

std::string Context::device() const {
  const auto device = line_.Value("device");
  if (!device || device->empty()) return "";
  return device->find('/') == std::string::npos ? "devices/" + *device : *device;
}

std::optional<std::chrono::nanoseconds> ParseTime(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // The upper bound keeps the nanoseconds within 63 bits.
  if (error != std::errc() || !(value > 0) || value > 1e6) return std::nullopt;
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  double seconds = 0;
  if (unit.empty() || unit == "s") seconds = value;
  if (unit == "ms") seconds = value / 1e3;
  if (unit == "m") seconds = value * 60;
  if (unit == "h") seconds = value * 3600;
  if (seconds == 0) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

Result<void> Context::CheckCommonOptions() {
  if (const auto text = line_.Value("timeout")) {
    const auto time = ParseTime(*text);
    if (!time)
      return Error{.code = Code::kInvalidArgument,
                   .message = "--timeout " + *text + " is not a time such as 30, 1.5s or 2m"};
    timeout_ = *time;
  }
  return {};
}

bool MayBeServed(const std::string& address) {
  if (!address.starts_with("unix:")) return true;
  std::string path = address.substr(5);
  if (path.starts_with("//")) path = path.substr(2);
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

Result<ConnectOptions> Context::Connection() const {
  ConnectOptions options;
  options.tls_ca = line_.Value("tls-ca").value_or("");
  options.tls_cert = line_.Value("tls-cert").value_or("");
  options.tls_key = line_.Value("tls-key").value_or("");
  options.default_timeout = timeout_;
  if (const auto path = line_.Value("token-file")) {
    std::ifstream file(*path);
    if (!(file >> options.token))
      return Error{.code = Code::kInvalidArgument, .message = "No token in " + *path};
  }
  return options;
}

Result<Client*> Context::Connect(bool keeps_state,
                                 const std::vector<std::string>& private_arguments) {
  if (client_) return &*client_;
  std::string address = line_.Value("address").value_or("");
  const char* environment = std::getenv("STRIDE_ADDRESS");
  const bool named = !address.empty() || (environment && *environment);
  if (address.empty()) address = DefaultAddress();
  if (!named && !MayBeServed(address)) {
    if (keeps_state) {
      return Error{.code = Code::kUnavailable,
                   .message = "No daemon is running at " + address +
                              ", and what this command keeps needs one that stays: start strided, "
                              "or name one with --address"};
    }
    auto daemon = PrivateDaemon::Start(cancellation_, private_arguments);
    if (!daemon) return daemon.error();
    daemon_ = std::move(*daemon);
    address = daemon_->address();
    Note("No daemon at " + DefaultAddress() + ": a private one runs for this command");
  }
  // Without a socket file only a daemon that is being restarted can still answer.
  const auto patience = MayBeServed(address) ? std::chrono::seconds(5) : std::chrono::seconds(1);
  auto options = Connection();
  if (!options) return options.error();
  options->address = address;
  options->connect_timeout = patience;
  auto client = Client::Connect(*options);
  if (!client) return client.error();
  client_.emplace(std::move(*client));
  return &*client_;
}

Result<std::vector<Device>> Context::ListTriedDevices(Client& client) const {
  const auto end = std::chrono::steady_clock::now() + kDevicesTried;
  for (;;) {
    auto devices = client.ListDevices(Call());
    if (!devices || devices->empty() || std::chrono::steady_clock::now() > end) return devices;
    const bool tried = std::none_of(devices->begin(), devices->end(), [](const Device& device) {
      return device.state == Device::State::kStarting;
    });
    if (tried) return devices;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void Context::Note(const std::string& text) const {
  if (!quiet() && isatty(STDERR_FILENO)) std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace stride::cli
