#include "cpucuda/compiler/header_names.h"

#include "absl/strings/str_cat.h"

namespace stride::cpucuda {
namespace {

struct Group {
  const char* file;  // a file of the prelude; null for headers that add nothing
  std::vector<const char*> names;
};

std::vector<Group> Groups() {
  return {
      {nullptr,
       {"assert.h",
        "cassert",
        "cfloat",
        "climits",
        "cmath",
        "cstddef",
        "cstdint",
        "cstdio",
        "cstdlib",
        "cstring",
        "ctime",
        "cuda.h",
        "cuda_runtime.h",
        "cuda_runtime_api.h",
        "device_functions.h",
        "device_launch_parameters.h",
        "float.h",
        "initializer_list",
        "inttypes.h",
        "cinttypes",
        "iostream",
        "limits.h",
        "math.h",
        "math_constants.h",
        "new",
        "sm_20_atomic_functions.h",
        "stdbool.h",
        "stddef.h",
        "stdint.h",
        "stdio.h",
        "stdlib.h",
        "string.h",
        "surface_types.h",
        "texture_fetch_functions.h",
        "texture_indirect_functions.h",
        "texture_types.h",
        "time.h",
        "vector_functions.h",
        "vector_types.h"}},
      {"stride_half_pairs.h", {"cuda_fp16.h", "cuda_bf16.h", "cuda_fp16.hpp", "cuda_bf16.hpp"}},
      {"stride_std.h",
       {"type_traits",
        "utility",
        "algorithm",
        "limits",
        "functional",
        "array",
        "tuple",
        "iterator",
        "numeric",
        "bit",
        "cuda/std/type_traits",
        "cuda/std/utility",
        "cuda/std/algorithm",
        "cuda/std/limits",
        "cuda/std/functional",
        "cuda/std/array",
        "cuda/std/tuple",
        "cuda/std/iterator",
        "cuda/std/numeric",
        "cuda/std/bit",
        "cuda/std/cstdint",
        "cuda/std/cstddef",
        "cuda/std/cmath",
        "cuda/std/climits",
        "cuda/std/cfloat",
        "cuda/std/cassert",
        "cuda/std/cstring",
        "cuda/std/cstdlib",
        "cuda/std/initializer_list",
        "cuda/std/version",
        "cuda/functional",
        "cuda/cmath"}},
      {"stride_complex.h", {"complex", "cuda/std/complex"}},
      {"stride_cuda_atomic.h", {"atomic", "cuda/atomic", "cuda/std/atomic"}},
      {"stride_cuda_barrier.h",
       {"cuda/barrier", "cuda/std/barrier", "cuda/pipeline", "cuda_pipeline.h",
        "cuda_pipeline_primitives.h"}},
      {"cooperative_groups.h",
       {"cooperative_groups/reduce.h", "cooperative_groups/scan.h",
        "cooperative_groups/memcpy_async.h"}},
      {"stride_cub.h",
       {"cub/cub.cuh",
        "cub/block/block_adjacent_difference.cuh",
        "cub/block/block_discontinuity.cuh",
        "cub/block/block_exchange.cuh",
        "cub/block/block_histogram.cuh",
        "cub/block/block_load.cuh",
        "cub/block/block_merge_sort.cuh",
        "cub/block/block_radix_sort.cuh",
        "cub/block/block_reduce.cuh",
        "cub/block/block_scan.cuh",
        "cub/block/block_shuffle.cuh",
        "cub/block/block_store.cuh",
        "cub/device/device_adjacent_difference.cuh",
        "cub/device/device_copy.cuh",
        "cub/device/device_for.cuh",
        "cub/device/device_histogram.cuh",
        "cub/device/device_memcpy.cuh",
        "cub/device/device_merge.cuh",
        "cub/device/device_merge_sort.cuh",
        "cub/device/device_partition.cuh",
        "cub/device/device_radix_sort.cuh",
        "cub/device/device_reduce.cuh",
        "cub/device/device_run_length_encode.cuh",
        "cub/device/device_scan.cuh",
        "cub/device/device_segmented_radix_sort.cuh",
        "cub/device/device_segmented_reduce.cuh",
        "cub/device/device_segmented_sort.cuh",
        "cub/device/device_select.cuh",
        "cub/device/device_transform.cuh",
        "cub/warp/warp_exchange.cuh",
        "cub/warp/warp_load.cuh",
        "cub/warp/warp_merge_sort.cuh",
        "cub/warp/warp_reduce.cuh",
        "cub/warp/warp_scan.cuh",
        "cub/warp/warp_store.cuh",
        "cub/thread/thread_load.cuh",
        "cub/thread/thread_operators.cuh",
        "cub/thread/thread_store.cuh",
        "cub/util_ptx.cuh",
        "cub/util_type.cuh",
        "cub/iterator/counting_input_iterator.cuh",
        "cub/iterator/transform_input_iterator.cuh"}},
      {"curand_kernel.h",
       {"curand.h", "curand_normal.h", "curand_uniform.h", "curand_lognormal.h", "curand_poisson.h",
        "curand_philox4x32_x.h"}},
  };
}

}  // namespace

std::vector<std::pair<std::string, std::string>> HeaderNames() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Group& group : Groups()) {
    for (const char* name : group.names) {
      std::string text = "#pragma once\n";
      if (group.file != nullptr) absl::StrAppend(&text, "#include \"/stride/", group.file, "\"\n");
      all.emplace_back(name, std::move(text));
    }
  }
  return all;
}

}  // namespace stride::cpucuda
