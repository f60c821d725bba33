#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/reduce_constants.h"
#include "server/worker/codegen/reduce_text.h"

namespace stride::codegen {
namespace {

// Elements [begin, end), $width at once, in rounds of $unroll loads.
constexpr char kAccumulate[] = R"(template <bool kAligned>
ST_FN Acc accumulate(const Launch& launch, const mapScalars& scalars$base_parameters, st_i64 begin, st_i64 end,
                     int lane, int lanes) {
$values  const st_i64 round = (st_i64)lanes * $width;
  st_i64 i = begin + (st_i64)lane * $width;
$start  for (; i + ($unroll - 1) * round + $width <= end; i += $unroll * round) {
$begin_round#pragma unroll
    for (int k = 0; k < $unroll; ++k) {
      const st_i64 first = i + k * round;
$packs#pragma unroll
      for (int w = 0; w < $width; ++w) {
        const st_i64 at = first + w;
        $take
      }
    }
$end_round  }
$rest}

)";

// Each position of a thread's round has its own accumulator.
constexpr char kStart[] = R"(  Acc many[$unroll * $width];
#pragma unroll
  for (int k = 0; k < $unroll * $width; ++k) many[k] = st_identity();
)";
constexpr char kTake[] = "many[k * $width + w] = st_combine(many[k * $width + w], $element);";
constexpr char kRest[] = R"(  for (; i < end; i += round) {
#pragma unroll
    for (int w = 0; w < $width; ++w) {
      const st_i64 at = i + w;
      if (at < end) many[w] = st_combine(many[w], $element_alone);
    }
  }
$halves  return many[0];
)";

// Computes the moments of a round's elements at once, then combines them with the previous ones.
constexpr char kMomentsStart[] = R"(  Acc acc = st_identity();
)";
constexpr char kMomentsBeginRound[] = R"(    Acc elements[$unroll * $width];
)";
constexpr char kMomentsTake[] = "elements[k * $width + w] = $element;";
constexpr char kMomentsEndRound[] =
    R"(    acc = st_combine(acc, st_moments_together<$unroll * $width>(elements));
)";
constexpr char kMomentsRest[] = R"(  for (; i < end; i += round) {
    Acc elements[$width];
#pragma unroll
    for (int w = 0; w < $width; ++w) {
      const st_i64 at = i + w;
      elements[w] = at < end ? $element_alone : st_identity();
    }
    acc = st_combine(acc, st_moments_together<$width>(elements));
  }
  return acc;
)";

// Numbers: keeps the round whose extreme is better than all before. The index is searched at the
// end, in that round alone.
constexpr char kPlacesStart[] = R"(  Acc acc = st_identity();
)";
constexpr char kPlacesBeginRound[] = R"(    $number many[$unroll * $width];
)";
constexpr char kPlacesTake[] = "many[k * $width + w] = $element.value;";
constexpr char kPlacesEndRound[] =
    R"($halves    if (acc.index < 0 || worse(acc.value, many[0])) acc = Acc{many[0], i};
)";
constexpr char kPlacesRest[] = R"(  if (acc.index >= 0) {
    const st_i64 found = acc.index;
    acc.index = -1;
#pragma unroll 1
    for (int k = 0; k < $unroll; ++k) {
#pragma unroll 1
      for (int w = 0; w < $width; ++w) {
        const st_i64 at = found + k * round + w;
        const $number value = $element_alone.value;
        if (acc.index < 0 && (value == acc.value || (st_isnan(value) && st_isnan(acc.value)))) acc.index = at;
      }
    }
  }
  for (; i < end; i += round) {
#pragma unroll
    for (int w = 0; w < $width; ++w) {
      const st_i64 at = i + w;
      if (at < end) acc = st_combine(acc, $element_alone);
    }
  }
  return acc;
)";
// NaN wins, and among equal values the first.
constexpr char kWorse[] =
    R"(ST_FN bool worse($number a, $number b) { return !(b $no_better a) && !st_isnan(a); }

)";

// Thread (x, y): x along the reduced elements and y along the kept ones, or vice versa when a kept
// axis is contiguous. $reducing is the reducing coordinate. Only the launch decides which thread
// combines which elements, and in which order: neither the operands' addresses nor the order in
// which blocks end.
constexpr char kKernels[] = R"(
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T v[N];
};
template <bool kAligned, class T, int N>
ST_FN Pack<T, N> load_pack(const char* address) {
  if (kAligned) return *(const Pack<T, N>*)address;
  Pack<T, N> pack;
#pragma unroll
  for (int w = 0; w < N; ++w) pack.v[w] = ((const T*)address)[w];
  return pack;
}

// The accumulator of the thread `distance` lanes further in the warp.
ST_FN Acc from_lane(const Acc& acc, int distance, int width) {
  struct Words {
    st_u32 word[(sizeof(Acc) + 3) / 4];
  } words;
  memcpy(&words, &acc, sizeof(Acc));
#pragma unroll
  for (int k = 0; k < (int)(sizeof(Words) / 4); ++k)
    words.word[k] = __shfl_down_sync(0xffffffffu, words.word[k], distance, width);
  Acc other;
  memcpy(&other, &words, sizeof(Acc));
  return other;
}
// Combines over the block's reducing coordinate by halves; `width` threads, a power of two, `step` apart. The first
// thread has the result.
// Threads of one warp need no barrier.
ST_FN Acc combine_block(Acc acc, int place, int lane, int width, int step) {
  __shared__ __align__(16) char storage[sizeof(Acc) * $threads];
  Acc* const shared = (Acc*)storage;
  const int within = step == 1 ? 32 : 0;
  int half = width / 2;
  if (half > 0 && half >= within) {
    __syncthreads();
    shared[place] = acc;
    for (; half > 0 && half >= within; half /= 2) {
      __syncthreads();
      if (lane < half) {
        acc = st_combine(acc, shared[place + half * step]);
        shared[place] = acc;
      }
    }
  }
  if (lane < within) {
    const int in_warp = width < 32 ? width : 32;
    for (; half > 0; half /= 2) acc = st_combine(acc, from_lane(acc, half, in_warp));
  }
  return acc;
}

$accumulate_textextern "C" __global__ void __launch_bounds__($threads)
    stride_reduce(const __grid_constant__ Launch launch, const st_end_mark mark) {
  const mapScalars scalars = $map_scalars;
  const int lane = threadIdx.$reducing, lanes = blockDim.$reducing;
  const int place = threadIdx.y * blockDim.x + threadIdx.x;
  const st_i64 kept = (st_i64)blockIdx.x * blockDim.$keeping + threadIdx.$keeping;
  const bool active = kept < launch.kept_count;
  const st_i64 own_split = launch.first_split + blockIdx.y;
  const st_i64 begin = own_split * launch.chunk;
  const st_i64 limit = begin + launch.chunk;
  const st_i64 end = limit < launch.reduced_count ? limit : launch.reduced_count;
  Acc acc = st_identity();
  if (active) {
$bases    acc = $accumulate;
  }
  acc = combine_block(acc, place, lane, lanes, $step);
  if (launch.splits == 1) {
    if (active && lane == 0) store_result(launch, $finish_scalars, kept, acc);
    st_tell_end(mark, gridDim.x);
    return;
  }
  // The blocks of one blockIdx.x, in all launches that share the splits, have parts of the same results. No thread
  // reads a partial result before all of them are written, so that none can be stale in an L1 cache.
  Partial* const partials = (Partial*)launch.scratch + kept * launch.splits;
  if (active && lane == 0) partials[own_split].acc = acc;
  __threadfence();
  __shared__ bool last;
  __syncthreads();
  if (place == 0) last = atomicAdd(launch.arrivals + blockIdx.x, 1u) == launch.splits - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  acc = st_identity();
  if (active) {
    for (st_i64 split = lane; split < launch.splits; split += lanes) acc = st_combine(acc, partials[split].acc);
  }
  acc = combine_block(acc, place, lane, lanes, $step);
  if (active && lane == 0) store_result(launch, $finish_scalars, kept, acc);
  if (place == 0) launch.arrivals[blockIdx.x] = 0;
  st_tell_end(mark, gridDim.x);
}
)";

using Layout = wire::Layout;

// Elements that a thread loads by 16 bytes of its widest contiguous input, and the number of loads
// before it combines them: about 32 bytes in flight per thread hide the memory's latency. Computed
// elements count as those of an array, since the order of combination depends on both numbers.
struct Width {
  int width = 1;
  int unroll = 1;
};

Width ChooseWidth(const ReduceText& text) {
  int64_t widest = 1, widest_in_a_row = 0;
  auto read = [&](DType dtype, Layout::Access access) {
    const int64_t size = ItemSize(dtype);
    widest = std::max(widest, size);
    if (access == Layout::ACCESS_CONTIGUOUS) widest_in_a_row = std::max(widest_in_a_row, size);
  };
  if (text.computed) {
    read(text.computed->dtype, text.computed->access);
  } else {
    for (size_t i = 0; i < text.dtypes.size(); ++i) read(text.dtypes[i], text.access[i]);
  }
  const int many = static_cast<int>(std::clamp<int64_t>(32 / widest, 2, 8));
  if (text.kept_contiguous || widest_in_a_row == 0) return {1, many};
  // An accumulator with an index or a count takes four registers.
  const int64_t most = text.has_index || text.counts || text.is_moments ? 4 : kMostInPack;
  const int width = static_cast<int>(std::clamp<int64_t>(16 / widest_in_a_row, 1, most));
  return {width, std::max(many / width, width == kMostInPack ? 1 : 2)};
}

// Combines a thread's `count` values, a power of two, by halves. NVRTC does not unroll a loop whose
// step is a division, which would keep the values in local memory.
std::string HalvesText(int count, const char* combined) {
  std::string text;
  for (int half = count / 2; half > 0; half /= 2)
    absl::StrAppend(&text, "#pragma unroll\n  for (int k = 0; k < ", half, "; ++k) many[k] = ",
                    absl::StrReplaceAll(combined, {{"$a", "many[k]"},
                                                   {"$b", absl::StrCat("many[k + ", half, "]")}}),
                    ";\n");
  return text;
}

std::string AccumulateText(const wire::ReduceCode& code, const ReduceText& text, int count) {
  const auto accumulator = static_cast<DType>(code.accumulator_dtype());
  const auto filled =
      [](std::initializer_list<std::pair<absl::string_view, absl::string_view>> by) {
        return absl::StrReplaceAll(kAccumulate, by);
      };
  if (text.is_moments && !text.reads_accumulator) {
    return filled({{"$start", kMomentsStart},
                   {"$begin_round", kMomentsBeginRound},
                   {"$take", kMomentsTake},
                   {"$end_round", kMomentsEndRound},
                   {"$rest", kMomentsRest}});
  }
  if (text.finishes_index && text.single && IsNumber(accumulator)) {
    const std::string halves = HalvesText(count, "worse($a, $b) ? $b : $a");
    const std::string end_round = absl::StrReplaceAll(kPlacesEndRound, {{"$halves", halves}});
    return absl::StrReplaceAll(
        absl::StrCat(kWorse, filled({{"$start", kPlacesStart},
                                     {"$begin_round", kPlacesBeginRound},
                                     {"$take", kPlacesTake},
                                     {"$end_round", end_round},
                                     {"$rest", kPlacesRest}})),
        {{"$number", TypeName(accumulator)},
         {"$no_better", code.combine() == wire::ReduceCode::COMBINE_ARGMIN ? ">=" : "<="}});
  }
  const std::string rest =
      absl::StrReplaceAll(kRest, {{"$halves", HalvesText(count, "st_combine($a, $b)")}});
  return filled({{"$start", kStart},
                 {"$begin_round", ""},
                 {"$take", kTake},
                 {"$end_round", ""},
                 {"$rest", rest}});
}

// The parts of accumulate() that depend on the inputs' access.
struct Pieces {
  std::string base_parameters, bases, base_arguments, aligned, values, packs, packed, single;
  std::string stored;  // addresses of accumulators
};

Pieces MakePieces(const ReduceText& text, int width) {
  Pieces pieces;
  for (size_t i = 0; i < text.dtypes.size(); ++i) {
    const std::string type = TypeName(text.dtypes[i]);
    const int64_t size = ItemSize(text.dtypes[i]);
    absl::StrAppend(&pieces.base_parameters, ", const char* base", i);
    absl::StrAppend(&pieces.base_arguments, ", base", i);
    absl::StrAppend(&pieces.bases, "    const char* const base", i, " = launch.inputs[", i,
                    "].data + kept_offset(launch, ", i, ", kept);\n");
    absl::StrAppend(&pieces.stored, ", base", i, " + reduced_offset(launch, ", i, ", at)");
    if (text.reads_accumulator) continue;
    if (text.access[i] == Layout::ACCESS_BROADCAST) {
      absl::StrAppend(&pieces.values, "  const ", type, " value", i, " = st_load<", type, ">(base",
                      i, ");\n");
      absl::StrAppend(&pieces.packed, ", value", i);
      absl::StrAppend(&pieces.single, ", value", i);
    } else if (text.access[i] == Layout::ACCESS_CONTIGUOUS) {
      absl::StrAppend(&pieces.aligned, pieces.aligned.empty() ? "" : " && ", "(st_u64)base", i,
                      " % ", std::min<int64_t>(width * size, 16), " == 0");
      absl::StrAppend(&pieces.packs, "      const auto pack", i,
                      " = load_pack<kAligned, st_stored<", type, ">::type, ", width, ">(base", i,
                      " + first * ", size, ");\n");
      absl::StrAppend(&pieces.packed, ", st_from_stored<", type, ">(pack", i, ".v[w])");
      absl::StrAppend(&pieces.single, ", st_load<", type, ">(base", i, " + at * ", size, ")");
    } else {
      const std::string load =
          absl::StrCat(", st_load<", type, ">(base", i, " + reduced_offset(launch, ", i, ", at))");
      pieces.packed += load;
      pieces.single += load;
    }
  }
  return pieces;
}

}  // namespace

absl::StatusOr<std::string> EmitReduceCuda(const wire::ReduceCode& code) {
  auto text = PrepareReduce(code, Target::kCuda);
  if (!text.ok()) return text.status();
  const Width width = ChooseWidth(*text);
  const Pieces pieces = MakePieces(*text, width.width);
  auto accumulate = [&](const char* aligned) {
    return absl::StrCat("accumulate<", aligned, ">(launch, scalars", pieces.base_arguments,
                        ", begin, end, lane, lanes)");
  };
  const std::string call =
      width.width == 1 || pieces.aligned.empty()
          ? accumulate("true")
          : absl::StrCat(pieces.aligned, " ? ", accumulate("true"), " : ", accumulate("false"));
  const bool columns = text->kept_contiguous;
  const std::string kernels = absl::StrReplaceAll(
      kKernels, {{"$accumulate_text", AccumulateText(code, *text, width.unroll * width.width)}});
  const std::string element = text->reads_accumulator
                                  ? absl::StrCat("load_mapped(scalars", pieces.stored, ", at)")
                                  : absl::StrCat("mapped(scalars", pieces.packed, ", at)");
  const std::string alone =
      text->reads_accumulator ? element : absl::StrCat("mapped(scalars", pieces.single, ", at)");
  return text->definitions +
         absl::StrReplaceAll(kernels, {{"$threads", absl::StrCat(kReduceThreads)},
                                       {"$unroll", absl::StrCat(width.unroll)},
                                       {"$width", absl::StrCat(width.width)},
                                       {"$reducing", columns ? "y" : "x"},
                                       {"$keeping", columns ? "x" : "y"},
                                       {"$step", columns ? "blockDim.x" : "1"},
                                       {"$base_parameters", pieces.base_parameters},
                                       {"$bases", pieces.bases},
                                       {"$values", pieces.values},
                                       {"$packs", pieces.packs},
                                       {"$element_alone", alone},
                                       {"$element", element},
                                       {"$accumulate", call},
                                       {"$map_scalars", text->map_scalars_call},
                                       {"$finish_scalars", text->finish_scalars_call}});
}

}  // namespace stride::codegen
