#include "bench/device/curand.h"

#include <curand.h>

#include "bench/device/functions_of.h"

namespace stride::bench {
namespace {

void CheckRandom(curandStatus_t status, const char* doing) {
  CheckLibrary(status, "cuRAND", doing);
}

}  // namespace

struct Curand::Functions {
  decltype(&curandCreateGenerator) create;
  decltype(&curandDestroyGenerator) destroy;
  decltype(&curandSetStream) set_stream;
  decltype(&curandGenerate) words;
  decltype(&curandGenerateUniform) uniform;
  decltype(&curandGenerateNormal) normal;

  Functions() {
    const auto library = Expect(cuda::DynamicLibrary::Open("cuRAND library", {"libcurand.so.10"}));
    Find(library, "curandCreateGenerator", &create);
    Find(library, "curandDestroyGenerator", &destroy);
    Find(library, "curandSetStream", &set_stream);
    Find(library, "curandGenerate", &words);
    Find(library, "curandGenerateUniform", &uniform);
    Find(library, "curandGenerateNormal", &normal);
  }
};

Curand::Curand(CUstream stream) : functions_(std::make_unique<Functions>()) {
  curandGenerator_t generator = nullptr;
  CheckRandom(functions_->create(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10), "starting");
  generator_ = generator;
  CheckRandom(functions_->set_stream(generator, stream), "setting the stream");
}

Curand::~Curand() { functions_->destroy(static_cast<curandGenerator_t>(generator_)); }

void Curand::Words(CUdeviceptr output, int64_t count) {
  CheckRandom(functions_->words(static_cast<curandGenerator_t>(generator_),
                                reinterpret_cast<unsigned*>(output), static_cast<size_t>(count)),
              "making words");
}

void Curand::Uniform(CUdeviceptr output, int64_t count) {
  CheckRandom(functions_->uniform(static_cast<curandGenerator_t>(generator_),
                                  reinterpret_cast<float*>(output), static_cast<size_t>(count)),
              "making uniform numbers");
}

void Curand::Normal(CUdeviceptr output, int64_t count) {
  CheckRandom(
      functions_->normal(static_cast<curandGenerator_t>(generator_),
                         reinterpret_cast<float*>(output), static_cast<size_t>(count), 0, 1),
      "making normal numbers");
}

}  // namespace stride::bench
