#pragma once

#include <cuda.h>

#include <functional>
#include <memory>
#include <vector>

namespace stride::bench {

// cuFFT as a C++ program calls it: plans made once, in the current context. Ends the process when
// something fails.
class Cufft {
 public:
  explicit Cufft(CUstream stream);
  ~Cufft();
  Cufft(const Cufft&) = delete;
  Cufft& operator=(const Cufft&) = delete;

  // Enqueue one transform, forward, of contiguous arrays. They end with the library's object.
  using Enqueue = std::function<void()>;
  // complex64, along all axes.
  Enqueue Complex(std::vector<int> shape, CUdeviceptr input, CUdeviceptr output);
  // float32 to complex64, along each row; a row of the output has columns / 2 + 1 elements.
  Enqueue RealRows(int rows, int columns, CUdeviceptr input, CUdeviceptr output);

 private:
  struct Functions;
  // The plan's number.
  int Plan(std::vector<int> lengths, int type, int batch);

  const CUstream stream_;
  const std::unique_ptr<const Functions> functions_;
  std::vector<int> plans_;
};

}  // namespace stride::bench
