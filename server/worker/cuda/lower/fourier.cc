#include "server/worker/cuda/lower/fourier.h"

#include <cufftXt.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/driver/dynamic_library.h"
#include "server/worker/cuda/lower/element_types.h"

namespace stride::cuda {

#define STRIDE_FOURIER_FUNCTIONS(X) \
  X(cufftCreate)                    \
  X(cufftDestroy)                   \
  X(cufftSetStream)                 \
  X(cufftSetAutoAllocation)         \
  X(cufftSetWorkArea)               \
  X(cufftXtMakePlanMany)            \
  X(cufftXtExec)

struct Fourier::Functions {
#define STRIDE_DECLARE(name) decltype(&::name) name = nullptr;
  STRIDE_FOURIER_FUNCTIONS(STRIDE_DECLARE)
#undef STRIDE_DECLARE
};

namespace {

// Each has a table of roots on the device.
constexpr size_t kMaxPlans = 16;

absl::Status FourierStatus(cufftResult result, std::string_view doing) {
  if (result == CUFFT_SUCCESS) return absl::OkStatus();
  absl::StatusCode code = absl::StatusCode::kInternal;
  if (result == CUFFT_ALLOC_FAILED) code = absl::StatusCode::kResourceExhausted;
  if (result == CUFFT_NOT_SUPPORTED || result == CUFFT_INVALID_SIZE)
    code = absl::StatusCode::kUnimplemented;
  return absl::Status(
      code, absl::StrCat("cuFFT error ", static_cast<int>(result), " while ", std::string(doing)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Fourier>> Fourier::Open(const Driver& driver, CUstream stream) {
  absl::StatusOr<DynamicLibrary> library =
      DynamicLibrary::Open("cuFFT library", {"libcufft.so.12", "libcufft.so.11"});
  if (!library.ok()) {
    return absl::UnimplementedError(absl::StrCat("Fourier transforms on a GPU need cuFFT: ",
                                                 std::string(library.status().message())));
  }
  auto functions = std::make_unique<Functions>();
  const char* missing = nullptr;
#define STRIDE_RESOLVE(name)                                                   \
  functions->name = reinterpret_cast<decltype(&::name)>(library->Find(#name)); \
  if (functions->name == nullptr) missing = #name;
  STRIDE_FOURIER_FUNCTIONS(STRIDE_RESOLVE)
#undef STRIDE_RESOLVE
  if (missing != nullptr)
    return absl::UnimplementedError(
        absl::StrCat("the cuFFT library is too old: it has no ", missing));
  return std::unique_ptr<Fourier>(new Fourier(driver, stream, std::move(functions)));
}

Fourier::Fourier(const Driver& driver, CUstream stream, std::unique_ptr<Functions> functions)
    : driver_(driver), stream_(stream), functions_(std::move(functions)) {}

Fourier::~Fourier() {
  for (const Plan& plan : plans_) functions_->cufftDestroy(plan.handle);
}

absl::Status Fourier::Make(Plan* plan) {
  const FourierLines& lines = plan->lines;
  auto check = [](cufftResult result) { return FourierStatus(result, "making a plan"); };
  absl::Status status = check(functions_->cufftCreate(&plan->handle));
  if (!status.ok()) return status;
  status = check(functions_->cufftSetAutoAllocation(plan->handle, 0));
  if (status.ok()) status = check(functions_->cufftSetStream(plan->handle, stream_));
  if (status.ok()) {
    std::vector<long long> lengths = lines.outer;
    lengths.push_back(lines.length);
    // Without the arrays' extents the library ignores strides and distances. In transforms of real
    // numbers the last extents of input and output differ.
    std::vector<long long> from = lengths, to = lengths;
    if (!lines.outer.empty() && !IsComplex(lines.input)) to.back() = lines.length / 2 + 1;
    if (!lines.outer.empty() && !IsComplex(lines.output)) from.back() = lines.length / 2 + 1;
    size_t work_bytes = 0;
    status = check(functions_->cufftXtMakePlanMany(
        plan->handle, static_cast<int>(lengths.size()), lengths.data(), from.data(),
        lines.input_stride, lines.input_distance, LibraryTypeOf(lines.input), to.data(),
        lines.output_stride, lines.output_distance, LibraryTypeOf(lines.output), lines.count,
        &work_bytes, ComplexTypeOf(lines.input)));
    plan->work_bytes = work_bytes;
  }
  if (!status.ok()) functions_->cufftDestroy(plan->handle);
  return status;
}

absl::StatusOr<Fourier::Plan*> Fourier::Find(const FourierLines& lines) {
  auto found = std::find_if(plans_.begin(), plans_.end(),
                            [&](const Plan& plan) { return plan.lines == lines; });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
    return &plans_.front();
  }
  if (plans_.size() >= kMaxPlans) {
    // Enqueued transforms may still read its tables.
    driver_.cuStreamSynchronize(stream_);
    functions_->cufftDestroy(plans_.back().handle);
    plans_.pop_back();
  }
  Plan plan{lines};
  if (absl::Status status = Make(&plan); !status.ok()) return status;
  plans_.push_front(plan);
  return &plans_.front();
}

absl::StatusOr<uint64_t> Fourier::WorkBytes(const FourierLines& lines) {
  auto plan = Find(lines);
  if (!plan.ok()) return plan.status();
  return (*plan)->work_bytes;
}

absl::Status Fourier::Run(const FourierLines& lines, bool inverse, CUdeviceptr from, CUdeviceptr to,
                          CUdeviceptr work) {
  auto plan = Find(lines);
  if (!plan.ok()) return plan.status();
  absl::Status status =
      FourierStatus(functions_->cufftSetWorkArea((*plan)->handle, reinterpret_cast<void*>(work)),
                    "giving it work memory");
  if (!status.ok()) return status;
  return FourierStatus(
      functions_->cufftXtExec((*plan)->handle, reinterpret_cast<void*>(from),
                              reinterpret_cast<void*>(to), inverse ? CUFFT_INVERSE : CUFFT_FORWARD),
      "transforming");
}

}  // namespace stride::cuda
