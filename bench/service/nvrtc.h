// NVIDIA's compiler in this process, as a program without a service would call it: a baseline.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace stride::bench {

class BareNvrtc {
 public:
  // `target` is a device's, `cuda:sm_90`. Null where no NVRTC can be opened. Compiles something
  // once, so that what follows finds a warm process.
  static std::unique_ptr<BareNvrtc> Open(const std::string& target);
  ~BareNvrtc();

  // Seconds from source to cubin; nothing when it does not compile.
  std::optional<double> Compile(const std::string& source) const;

 private:
  struct Functions;
  BareNvrtc();
  std::unique_ptr<Functions> functions_;
  std::string architecture_;
};

}  // namespace stride::bench
