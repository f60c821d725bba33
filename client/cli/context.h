// The environment of a command: its arguments, the connection to the daemon, and messages.
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

  // Reads --timeout. INVALID_ARGUMENT for an invalid duration.
  Result<void> CheckCommonOptions();

  // Address, TLS and token from the options. INVALID_ARGUMENT for a token file without a token.
  Result<ConnectOptions> Connection() const;

  // Connects on first use to --address, STRIDE_ADDRESS or the default socket. Without any of these
  // it starts a private daemon with the additional `private_arguments`. `keeps_state` forbids a
  // private daemon, which would lose the state that the command stores.
  Result<Client*> Connect(bool keeps_state = false,
                          const std::vector<std::string>& private_arguments = {});
  // Lists devices once the daemon has probed all of them; waits a few seconds at most. A new daemon
  // probes its devices before it reports them as serving. `client` comes from Connect.
  Result<std::vector<Device>> ListTriedDevices(Client& client) const;
  // The address in use, for messages.
  std::string address() const { return client_ ? client_->address() : ""; }
  bool is_private() const { return daemon_ != nullptr; }

  // Writes a message to standard error, only when that is a terminal.
  void Note(const std::string& text) const;

 private:
  CommandLine line_;
  Cancellation cancellation_;
  std::chrono::nanoseconds timeout_{0};
  // Declaration order matters: the client must be destroyed before the daemon.
  std::unique_ptr<PrivateDaemon> daemon_;
  std::optional<Client> client_;
};

// Parses `10`, `1.5s`, `200ms`, `2m` or `1h`; a bare number is seconds.
std::optional<std::chrono::nanoseconds> ParseTime(const std::string& text);

// Returns whether the address has a socket file, or is not a Unix address.
bool MayBeServed(const std::string& address);

}  // namespace stride::cli
