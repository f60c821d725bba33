// Entry point: connect, upload arrays, run operations on them, fetch results, watch devices and
// jobs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stride/array.h"
#include "stride/call_options.h"
#include "stride/device.h"
#include "stride/function.h"
#include "stride/future.h"
#include "stride/job.h"
#include "stride/operation.h"
#include "stride/program.h"
#include "stride/shared_buffer.h"
#include "stride/usage.h"

namespace stride {

namespace internal {
class Core;
}

// ConnectOptions::tls_ca: the system's trusted roots.
inline constexpr char kSystemRoots[] = "system";

struct ConnectOptions {
  // `unix:/run/stride/stride.sock`, `localhost:7433`, or `tcp:localhost:7433` as strided's --listen
  // spells it. Empty: DefaultAddress().
  std::string address;
  // TLS, required for addresses on other machines: the certificate authority of the daemon's
  // certificate, a PEM file or kSystemRoots. Empty: no TLS.
  std::string tls_ca;
  // The client's own certificate and key (PEM files), if the daemon requires one.
  std::string tls_cert, tls_key;
  // Expected name in the daemon's certificate, if it differs from the address's host.
  std::string tls_server_name;
  // Bearer token; empty: STRIDE_TOKEN, if set. Never sent unencrypted to another machine.
  std::string token;
  // How long Connect waits for the daemon to answer.
  std::chrono::milliseconds connect_timeout{5000};
  // For calls without a timeout; zero: no limit.
  std::chrono::nanoseconds default_timeout{0};
  // Idle time after which the daemon may end the session. The client renews it while it exists.
  std::chrono::seconds session_ttl{600};
  // Connections for bulk bytes; a transfer uses up to this many at once. 0: by the number of cores,
  // 2 to 8.
  int num_bulk_channels = 0;
  // Moves large arrays through memory shared with the daemon, if it is on this machine and offers
  // such memory (see AllocateShared). False: always in messages.
  bool share_memory = true;
  // Sends operations and Run over Unix sockets without HTTP/2, if the daemon is reached by its Unix
  // socket and offers such connections: a small call then takes about 50 us less. False: always by
  // gRPC.
  bool local_calls = true;
};

// STRIDE_ADDRESS, else the socket in XDG_RUNTIME_DIR when it exists, else /run/stride/stride.sock.
std::string DefaultAddress();

// Text that kernels printed with printf, in any encoding, and the number of lines dropped after it.
struct KernelOutput {
  std::string text;
  uint64_t dropped_lines = 0;
};

// Numbers and results of Client::Run.
struct RunReply {
  struct Value {
    ArraySpec spec;
    std::vector<std::byte> data;
  };
  std::vector<Value> values;
  Timeline timeline;
  KernelOutput printed;  // set for an operation without arrays; otherwise use Client::ReadPrinted
};

// Thread-safe. The first call that needs a session opens it. Destruction of the Client ends the
// session and releases its unnamed arrays; it cancels background calls and waits for them.
//
// Operations (Compute and its short forms) return at once: they are sent over one ordered stream,
// many in a message, and their Arrays are usable immediately. Their errors are reported by the
// Arrays. Bulk bytes use connections of their own, and those calls block.
class Client {
 public:
  // Fails with UNAVAILABLE when nothing answers at the address in time, with INVALID_ARGUMENT when
  // the address is malformed.
  static Result<Client> Connect(const ConnectOptions& options = {});
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  const std::string& address() const;

  // --- transfers. `data` must stay unchanged until the call returns. ---
  Result<Array> PutBytes(std::span<const std::byte> data, const ArraySpec& spec,
                         const PutOptions& options = {});
  template <typename T>
  Result<Array> Put(std::span<const T> data, std::vector<int64_t> shape,
                    const PutOptions& options = {}) {
    return PutBytes(std::as_bytes(data), {DataTypeOf<T>(), std::move(shape)}, options);
  }
  template <typename T>
  Result<Array> Put(const std::vector<T>& data, std::vector<int64_t> shape,
                    const PutOptions& options = {}) {
    return Put(std::span<const T>(data), std::move(shape), options);
  }
  // Copies the content in C order to memory of exactly its size. INVALID_ARGUMENT when type or size
  // differ.
  Result<void> FetchBytes(const Array& array, std::span<std::byte> out,
                          DataType expected = DataType::kUnspecified,
                          const TransferOptions& options = {});
  template <typename T>
  Result<void> FetchInto(const Array& array, std::span<T> out,
                         const TransferOptions& options = {}) {
    return FetchBytes(array, std::as_writable_bytes(out), DataTypeOf<T>(), options);
  }
  template <typename T>
  Result<std::vector<T>> Fetch(const Array& array, const TransferOptions& options = {}) {
    static_assert(!std::is_same_v<T, bool>,
                  "std::vector<bool> has no bytes: fetch bool into a span");
    auto spec = array.Spec(options);
    if (!spec) return spec.error();
    std::vector<T> out(NumElements(*spec).value_or(0));
    auto fetched = FetchInto<T>(array, out, options);
    if (!fetched) return fetched.error();
    return out;
  }
  // The same in the background. `data` and `out` must stay valid until the Future has its result.
  Future<Array> PutAsync(std::span<const std::byte> data, const ArraySpec& spec,
                         PutOptions options = {});
  Future<void> FetchAsync(const Array& array, std::span<std::byte> out,
                          TransferOptions options = {});

  // Memory shared with the daemon: arrays in it are put and fetched without a copy on this side.
  // UNIMPLEMENTED unless the daemon is on this machine, reached by its Unix socket, and offers such
  // memory; RESOURCE_EXHAUSTED when it has no room. Transfers of large arrays in other memory use
  // shared memory automatically, with one copy on this side.
  Result<SharedBuffer> AllocateShared(size_t bytes);

  // An Array for a name, which need not exist yet: its use reports that. Destruction deletes
  // nothing.
  Array Open(std::string name);
  Result<std::vector<ArrayInfo>> ListArrays(const std::string& parent,
                                            const CallOptions& options = {});
  Result<void> DeleteArray(const std::string& name, const CallOptions& options = {});

  // All results of an operation, in order; for a kernel launch its new arrays.
  std::vector<Array> ComputeAll(const Operation& operation, const ComputeOptions& options = {});
  // The first result.
  Array Compute(const Operation& operation, const ComputeOptions& options = {});
  Array Ufunc(std::string_view name, const std::vector<Operand>& inputs);
  Array Expression(std::string_view text, const std::map<std::string, Operand>& inputs);
  Array Reduce(Reduction function, const Operand& input, const ReduceOptions& options = {});
  Array Matmul(const Operand& left, const Operand& right);
  std::vector<Array> Kernel(const KernelOptions& options);
  Array Zeros(const ArraySpec& spec);
  Array Full(const ArraySpec& spec, const Operand& value);
  Array Arange(int64_t stop, DataType data_type = DataType::kUnspecified);
  Array Linspace(double start, double stop, int64_t count);
  Array View(const Array& array, const ViewSteps& steps);
  Array SliceOf(const Array& array, const Slice& slice);
  Array Transpose(const Array& array, std::vector<int32_t> axes = {});
  Array Reshape(const Array& array, std::vector<int64_t> shape);
  Array CopyTo(const Array& array, std::string_view device);

  // Waits until all submitted work has ended; reports the first error since the last Synchronize.
  // Arrays keep their errors.
  Result<void> Synchronize(const CallOptions& options = {});
  // Takes the text that kernels of this client have printed. Does not wait for launches: after
  // Synchronize it has the text of all submitted launches, also of failed ones.
  Result<KernelOutput> ReadPrinted(const CallOptions& options = {});
  // One operation in one round trip, with small inputs and results inside the messages.
  Result<RunReply> Run(const Operation& operation, const CallOptions& options = {});
  Future<RunReply> RunAsync(const Operation& operation, CallOptions options = {});

  // --- modules ---
  Result<Module> CreateModule(const ModuleSpec& spec, const CallOptions& options = {});
  Result<Module> GetModule(const std::string& name, const CallOptions& options = {});
  // Modules without their logs.
  Result<std::vector<Module>> ListModules(const CallOptions& options = {});
  Result<void> DeleteModule(const std::string& name, const CallOptions& options = {});

  // --- client-defined functions, for all clients of the tenant ---
  // Returns its name, `tenants/{tenant}/functions/{id}`; operations call it by its id.
  Result<std::string> CreateFunction(const FunctionSpec& spec, const CallOptions& options = {});
  Result<std::vector<std::string>> ListFunctions(const CallOptions& options = {});
  Result<void> DeleteFunction(const std::string& name, const CallOptions& options = {});

  // --- programs ---
  Result<Program> CreateProgram(const ProgramSpec& spec, const CallOptions& options = {});
  Result<std::vector<Program>> ListPrograms(const CallOptions& options = {});
  Result<void> DeleteProgram(const std::string& name, const CallOptions& options = {});

  // --- jobs ---
  Result<Job> CreateJob(const JobSpec& spec, const CallOptions& options = {});
  Result<Job> GetJob(const std::string& name, const CallOptions& options = {});
  Result<std::vector<Job>> ListJobs(const CallOptions& options = {});
  // Calls `on_change` on this thread with the present state and then with each change, until a
  // final state or until it returns false.
  Result<void> WatchJob(const std::string& name, const std::function<bool(const Job&)>& on_change,
                        const CallOptions& options = {});
  Result<Job> CancelJob(const std::string& name, const CallOptions& options = {});
  Result<void> DeleteJob(const std::string& name, const CallOptions& options = {});

  // --- the tenant ---
  Result<Usage> GetUsage(const CallOptions& options = {});

  // --- devices ---
  Result<std::vector<Device>> ListDevices(const CallOptions& options = {});
  Result<DaemonLimits> GetLimits(const CallOptions& options = {});
  // Calls `on_sample` on this thread with each round of samples, until it returns false or after
  // max_samples rounds.
  Result<void> WatchDevices(const WatchOptions& watch,
                            const std::function<bool(const std::vector<DeviceSample>&)>& on_sample,
                            const CallOptions& options = {});

 private:
  explicit Client(std::shared_ptr<internal::Core> core);
  std::shared_ptr<internal::Core> core_;
};

}  // namespace stride
