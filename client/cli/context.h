// What a command works with: its arguments, the daemon, and how it talks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/private_daemon.h"
#include "stride/client.h"

namespace stride::cli {

class Context {
 public:
  Context(CommandLine line, Cancellation cancellation);

  const CommandLine& line() const { return line_; }
  bool json() const { return line_.Has("json"); }
  bool time() const { return line_.Has("time"); }
  bool quiet() const { return line_.Has("quiet"); }
  bool color() const;  // standard output is a terminal that wants colour
  const Cancellation& cancellation() const { return cancellation_; }
  // Timeout (--timeout) and cancellation (Ctrl-C) of every call.
  template <typename Options = CallOptions>
  Options Call() const {
    Options options;
    options.timeout = timeout_;
    options.cancellation = cancellation_;
    return options;
  }
  // `--device cpu:0` as `devices/cpu:0`; empty when not given.
  std::string device() const;

  // Reads --timeout. INVALID_ARGUMENT for one that is no time.
  Result<void> CheckCommonOptions();

  // Address, TLS and token as the options tell. INVALID_ARGUMENT for a token file without a token.
  Result<ConnectOptions> Connection() const;

  // Connects on first use: to --address, STRIDE_ADDRESS or the default socket; and when there is
  // none of these to a private daemon, unless `keeps_state`: what a command stores in a private
  // daemon would be gone with it. `private_arguments` are for that daemon, beside its own.
  Result<Client*> Connect(bool keeps_state = false,
                          const std::vector<std::string>& private_arguments = {});
  // A new daemon tests its devices before it reports them as serving. Waits until the daemon has
  // tested all, some seconds at most. `client` is Connect's.
  Result<std::vector<Device>> ListTriedDevices(Client& client) const;
  // The address in use, for messages.
  std::string address() const { return client_ ? client_->address() : ""; }
  bool is_private() const { return daemon_ != nullptr; }

  // A message for a person: to standard error, only when that is a terminal.
  void Note(const std::string& text) const;

 private:
  CommandLine line_;
  Cancellation cancellation_;
  std::chrono::nanoseconds timeout_{0};
  // In this order, so that the client goes before the daemon.
  std::unique_ptr<PrivateDaemon> daemon_;
  std::optional<Client> client_;
};

// `10`, `1.5s`, `200ms`, `2m`, `1h`; a bare number is seconds.
std::optional<std::chrono::nanoseconds> ParseTime(const std::string& text);

// A Unix socket stands at the address, or it is no Unix address.
bool MayBeServed(const std::string& address);

}  // namespace stride::cli
