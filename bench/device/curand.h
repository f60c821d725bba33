#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>

namespace stride::bench {

// cuRAND's Philox generator as a C++ program calls it. Ends the process when something fails.
class Curand {
 public:
  // Uses the current context.
  explicit Curand(CUstream stream);
  ~Curand();
  Curand(const Curand&) = delete;
  Curand& operator=(const Curand&) = delete;

  // Enqueue uint32 words.
  void Words(CUdeviceptr output, int64_t count);
  // Enqueue float32 numbers; an even count.
  void Uniform(CUdeviceptr output, int64_t count);
  void Normal(CUdeviceptr output, int64_t count);

 private:
  struct Functions;
  const std::unique_ptr<const Functions> functions_;
  void* generator_ = nullptr;
};

}  // namespace stride::bench
