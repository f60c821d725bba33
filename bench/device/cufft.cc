#include "bench/device/cufft.h"

#include <cufft.h>

#include <utility>

#include "bench/device/functions_of.h"

namespace stride::bench {
namespace {

void CheckFft(cufftResult status, const char* doing) { CheckLibrary(status, "cuFFT", doing); }

}  // namespace

struct Cufft::Functions {
  decltype(&cufftPlanMany) plan_many;
  decltype(&cufftDestroy) destroy;
  decltype(&cufftSetStream) set_stream;
  decltype(&cufftExecC2C) complex_to_complex;
  decltype(&cufftExecR2C) real_to_complex;

  Functions() {
    const auto library =
        Expect(cuda::DynamicLibrary::Open("cuFFT library", {"libcufft.so.12", "libcufft.so.11"}));
    Find(library, "cufftPlanMany", &plan_many);
    Find(library, "cufftDestroy", &destroy);
    Find(library, "cufftSetStream", &set_stream);
    Find(library, "cufftExecC2C", &complex_to_complex);
    Find(library, "cufftExecR2C", &real_to_complex);
  }
};

Cufft::Cufft(CUstream stream) : stream_(stream), functions_(std::make_unique<Functions>()) {}

Cufft::~Cufft() {
  for (int plan : plans_) functions_->destroy(plan);
}

int Cufft::Plan(std::vector<int> lengths, int type, int batch) {
  cufftHandle plan = 0;
  // Without embedding arrays the strides are those of contiguous arrays.
  CheckFft(functions_->plan_many(&plan, static_cast<int>(lengths.size()), lengths.data(), nullptr,
                                 1, 0, nullptr, 1, 0, static_cast<cufftType>(type), batch),
           "planning");
  CheckFft(functions_->set_stream(plan, stream_), "setting the stream");
  plans_.push_back(plan);
  return plan;
}

Cufft::Enqueue Cufft::Complex(std::vector<int> shape, CUdeviceptr input, CUdeviceptr output) {
  const int plan = Plan(std::move(shape), CUFFT_C2C, 1);
  return [this, plan, input, output] {
    CheckFft(functions_->complex_to_complex(plan, reinterpret_cast<cufftComplex*>(input),
                                            reinterpret_cast<cufftComplex*>(output), CUFFT_FORWARD),
             "transforming");
  };
}

Cufft::Enqueue Cufft::RealRows(int rows, int columns, CUdeviceptr input, CUdeviceptr output) {
  const int plan = Plan({columns}, CUFFT_R2C, rows);
  return [this, plan, input, output] {
    CheckFft(functions_->real_to_complex(plan, reinterpret_cast<cufftReal*>(input),
                                         reinterpret_cast<cufftComplex*>(output)),
             "transforming");
  };
}

}  // namespace stride::bench
