#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "bench/device/cublas.h"
#include "bench/device/cufft.h"
#include "bench/device/curand.h"
#include "bench/device/cusolver.h"

namespace stride::bench {

// The libraries that baselines call. Each is opened at its first use; all of them enqueue on one
// stream of the current context.
class Libraries {
 public:
  using Copy = std::function<void(CUdeviceptr to, CUdeviceptr from, uint64_t bytes)>;

  // `copy` enqueues the driver's copy on the stream.
  Libraries(CUstream stream, Copy copy) : stream(stream), copy(std::move(copy)) {}

  Cublas& cublas() { return Opened(&cublas_); }
  Cufft& cufft() { return Opened(&cufft_); }
  Curand& curand() { return Opened(&curand_); }
  Cusolver& cusolver() { return Opened(&cusolver_); }

  const CUstream stream;
  const Copy copy;

 private:
  template <typename Library>
  Library& Opened(std::optional<Library>* library) {
    if (!*library) library->emplace(stream);
    return **library;
  }

  std::optional<Cublas> cublas_;
  std::optional<Cufft> cufft_;
  std::optional<Curand> curand_;
  std::optional<Cusolver> cusolver_;
};

}  // namespace stride::bench
