#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/reduce_constants.h"
#include "server/worker/codegen/reduce_text.h"

namespace stride::codegen {
namespace {

// Thread (x, y): along the reduced elements with x and along the kept ones with y, or, when a kept
// axis is contiguous, the other way round. $reducing is the reducing coordinate. Every sum is made
// in an order that depends on the launch alone.
constexpr char kKernels[] = R"(
// Combines over the block's reducing coordinate by halves; `width` threads, a power of two, `step` apart. The result is at the first.
ST_FN Acc combine_block(Acc acc, int place, int lane, int width, int step) {
  __shared__ __align__(16) char storage[sizeof(Acc) * $threads];
  Acc* const shared = (Acc*)storage;
  shared[place] = acc;
  for (int half = width / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) shared[place] = st_combine(shared[place], shared[place + half * step]);
  }
  __syncthreads();
  return shared[place];
}

extern "C" __global__ void __launch_bounds__($threads) stride_reduce(const __grid_constant__ Launch launch) {
  const mapScalars scalars = $map_scalars;
  const int lane = threadIdx.$reducing, lanes = blockDim.$reducing;
  const st_i64 kept = (st_i64)blockIdx.x * blockDim.$keeping + threadIdx.$keeping;
  const bool active = kept < launch.kept_count;
  const st_i64 begin = (st_i64)blockIdx.y * launch.chunk;
  const st_i64 limit = begin + launch.chunk;
  const st_i64 end = limit < launch.reduced_count ? limit : launch.reduced_count;
  Acc acc = st_identity();
  if (active) {
$bases    Acc many[$unroll];
#pragma unroll
    for (int k = 0; k < $unroll; ++k) many[k] = st_identity();
    st_i64 i = begin + lane;
    for (; i + ($unroll - 1) * lanes < end; i += $unroll * lanes) {
#pragma unroll
      for (int k = 0; k < $unroll; ++k) {
        const st_i64 at = i + k * lanes;
        many[k] = st_combine(many[k], $element);
      }
    }
    for (; i < end; i += lanes) {
      const st_i64 at = i;
      many[0] = st_combine(many[0], $element);
    }
#pragma unroll
    for (int half = $unroll / 2; half > 0; half /= 2) {
#pragma unroll
      for (int k = 0; k < half; ++k) many[k] = st_combine(many[k], many[k + half]);
    }
    acc = many[0];
  }
  acc = combine_block(acc, threadIdx.y * blockDim.x + threadIdx.x, lane, lanes, $step);
  if (!active || lane != 0) return;
  if (launch.splits == 1) {
    store_result(launch, $finish_scalars, kept, acc);
  } else {
    ((Partial*)launch.scratch)[kept * launch.splits + blockIdx.y].acc = acc;
  }
}

extern "C" __global__ void __launch_bounds__($threads) stride_reduce_finish(const __grid_constant__ Launch launch) {
  for (st_i64 kept = blockIdx.x; kept < launch.kept_count; kept += gridDim.x) {
    const Partial* const partials = (const Partial*)launch.scratch + kept * launch.splits;
    Acc acc = st_identity();
    for (st_i64 i = threadIdx.x; i < launch.splits; i += $threads) acc = st_combine(acc, partials[i].acc);
    acc = combine_block(acc, threadIdx.x, threadIdx.x, $threads, 1);
    if (threadIdx.x == 0) store_result(launch, $finish_scalars, kept, acc);
    __syncthreads();
  }
}
)";

// Loads in flight for each thread: 32 bytes, which fills the memory's latency at full occupancy.
int Unroll(const ReduceText& text) {
  int64_t widest = 1;
  for (DType dtype : text.dtypes) widest = std::max(widest, ItemSize(dtype));
  return static_cast<int>(std::clamp<int64_t>(32 / widest, 2, 8));
}

}  // namespace

absl::StatusOr<std::string> EmitReduceCuda(const wire::ReduceCode& code) {
  auto text = PrepareReduce(code, Target::kCuda);
  if (!text.ok()) return text.status();
  std::string bases, element = "load_mapped(scalars";
  for (size_t i = 0; i < text->dtypes.size(); ++i) {
    absl::StrAppend(&bases, "    const char* const base", i, " = launch.inputs[", i,
                    "].data + kept_offset(launch, ", i, ", kept);\n");
    if (text->access[i] == wire::Layout::ACCESS_CONTIGUOUS) {
      absl::StrAppend(&element, ", base", i, " + at * ", ItemSize(text->dtypes[i]));
    } else if (text->access[i] == wire::Layout::ACCESS_BROADCAST) {
      absl::StrAppend(&element, ", base", i);
    } else {
      absl::StrAppend(&element, ", base", i, " + reduced_offset(launch, ", i, ", at)");
    }
  }
  absl::StrAppend(&element, ", at)");
  bool columns = text->kept_contiguous;
  return text->definitions +
         absl::StrReplaceAll(kKernels, {{"$threads", absl::StrCat(kReduceThreads)},
                                        {"$unroll", absl::StrCat(Unroll(*text))},
                                        {"$reducing", columns ? "y" : "x"},
                                        {"$keeping", columns ? "x" : "y"},
                                        {"$step", columns ? "blockDim.x" : "1"},
                                        {"$bases", bases},
                                        {"$element", element},
                                        {"$map_scalars", text->map_scalars_call},
                                        {"$finish_scalars", text->finish_scalars_call}});
}

}  // namespace stride::codegen
