#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/cublas.h"
#include "bench/device/cufft.h"
#include "bench/device/curand.h"
#include "bench/device/cusolver.h"
#include "bench/device/routine.h"

namespace stride::bench {

// The libraries that baselines call, each opened when the first asks for it. Everything runs on one
// stream, of the context that is current.
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

// A row that is not made yet, since its inputs are large.
struct NamedRoutine {
  std::string id;
  std::function<Routine()> make;
};

// All rows. `quick`: small arrays. `libraries` outlive the rows, and a row its routine.
std::vector<NamedRoutine> Routines(bool quick, Libraries& libraries);

}  // namespace stride::bench
