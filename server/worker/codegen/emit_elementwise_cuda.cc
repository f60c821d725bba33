#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/worker/codegen/elementwise_text.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/launch_abi.h"

namespace stride::codegen {
namespace {

using Layout = wire::Layout;

constexpr int kVectorBytes = 16;
// Limit for all tiles of a kernel, so that several blocks fit a multiprocessor.
constexpr uint64_t kMostSharedBytes = 36 << 10;
constexpr char kEnd[] = "  st_tell_end(mark, gridDim.x);\n}\n";

class Emitter {
 public:
  explicit Emitter(const ElementwiseText& text) : text_(text) {}

  std::string Emit() {
    bool flat = std::none_of(text_.access.begin(), text_.access.end(),
                             [](auto a) { return a == Layout::ACCESS_STRIDED; });
    return absl::StrCat(text_.definitions, flat ? FlatKernel() : StridedKernel());
  }

 private:
  size_t num_operands() const { return text_.dtypes.size(); }
  bool IsRepeated(size_t i) const { return text_.access[i] == Layout::ACCESS_BROADCAST; }
  bool IsOutput(size_t i) const { return i >= text_.num_inputs; }
  std::string Stored(size_t i) const {
    return absl::StrCat("st_stored<", TypeName(text_.dtypes[i]), ">::type");
  }

  // `body(scalars, in0, in1, INDEX, out0)`. Where an index is the sum of a multiple and an offset,
  // `or` shows the compiler that they share no bit, so that terms of the multiple are computed
  // once.
  std::string Call(const std::string& index) const {
    std::string call = "body(scalars";
    for (size_t i = 0; i < text_.num_inputs; ++i) absl::StrAppend(&call, ", in", i);
    absl::StrAppend(&call, ", (st_i64)(", index, ")");
    for (size_t i = text_.num_inputs; i < num_operands(); ++i)
      absl::StrAppend(&call, ", out", i - text_.num_inputs);
    return call + ");\n";
  }

  std::string OutputVariables(const char* indent) const {
    std::string text;
    for (size_t i = text_.num_inputs; i < num_operands(); ++i) {
      absl::StrAppend(&text, indent, TypeName(text_.dtypes[i]), " out", i - text_.num_inputs,
                      ";\n");
    }
    return text;
  }

  std::string Head() const {
    return absl::StrCat(
        "extern \"C\" __global__ void __launch_bounds__(256) stride_elementwise(const "
        "__grid_constant__ Launch launch, const st_end_mark mark) {\n",
        "  const bodyScalars scalars = ", text_.scalars_call, ";\n  typedef ", text_.index_type,
        " Index;\n", "  const Index count = (Index)launch.count;\n",
        "  const Index thread = (Index)blockIdx.x * blockDim.x + threadIdx.x;\n",
        "  const Index threads = (Index)gridDim.x * blockDim.x;\n");
  }

  int PackWidth() const {
    int64_t widest = 1;
    for (size_t i = 0; i < num_operands(); ++i) {
      if (!IsRepeated(i)) widest = std::max(widest, ItemSize(text_.dtypes[i]));
    }
    return static_cast<int>(kVectorBytes / widest);
  }

  static std::string PackType() {
    return "template <class T, int N>\nstruct alignas(sizeof(T) * N) Pack {\n  T v[N];\n};\n";
  }

  // All operands are contiguous or repeated: each thread handles as many elements as fill 16 bytes
  // of the widest operand, if all addresses are aligned.
  std::string FlatKernel() const {
    const int width = PackWidth();
    std::string setup, aligned = "true", packs, reads, stores, out_packs, scalar_reads,
                       scalar_writes;
    for (size_t i = 0; i < num_operands(); ++i) {
      std::string type = TypeName(text_.dtypes[i]);
      if (IsRepeated(i)) {
        absl::StrAppend(&setup, "  const ", type, " in", i, " = st_load<", type,
                        ">(launch.operands[", i, "].data);\n");
        continue;
      }
      absl::StrAppend(&setup, "  ", Stored(i), "* const p", i, " = (", Stored(i),
                      "*)launch.operands[", i, "].data;\n");
      absl::StrAppend(&aligned, " && (st_u64)p", i, " % ", width * ItemSize(text_.dtypes[i]),
                      " == 0");
      std::string pack = absl::StrCat("Pack<", Stored(i), ", ", width, ">");
      if (IsOutput(i)) {
        size_t j = i - text_.num_inputs;
        absl::StrAppend(&out_packs, "    ", pack, " pack", i, ";\n");
        absl::StrAppend(&stores, "      pack", i, ".v[k] = out", j, ";\n");
        absl::StrAppend(&packs, "    ((", pack, "*)p", i, ")[i] = pack", i, ";\n");
        absl::StrAppend(&scalar_writes, "    st_store<", type, ">(p", i, " + i, out", j, ");\n");
      } else {
        absl::StrAppend(&out_packs, "    const ", pack, " pack", i, " = ((const ", pack, "*)p", i,
                        ")[i];\n");
        absl::StrAppend(&reads, "      const ", type, " in", i, " = st_from_stored<", type,
                        ">(pack", i, ".v[k]);\n");
        absl::StrAppend(&scalar_reads, "    const ", type, " in", i, " = st_load<", type, ">(p", i,
                        " + i);\n");
      }
    }
    return absl::StrCat(
        PackType(), Head(), setup, "  Index done = 0;\n  if (", aligned,
        ") {\n  const Index packs = count / ", width, ";\n",
        "  for (Index i = thread; i < packs; i += threads) {\n", out_packs,
        "#pragma unroll\n    for (int k = 0; k < ", width, "; ++k) {\n", reads,
        OutputVariables("      "), "      ", Call(absl::StrCat("(st_u64)i * ", width, " | k")),
        stores, "    }\n", packs, "  }\n  done = packs * ", width, ";\n  }\n",
        "  for (Index i = done + thread; i < count; i += threads) {\n", scalar_reads,
        OutputVariables("    "), "    ", Call("i"), scalar_writes, "  }\n", kEnd);
  }

  std::string StridedKernel() const {
    std::string setup, offsets, divide, reads, writes;
    for (size_t i = 0; i < num_operands(); ++i) {
      std::string type = TypeName(text_.dtypes[i]);
      if (IsRepeated(i)) {
        absl::StrAppend(&setup, "  const ", type, " in", i, " = st_load<", type,
                        ">(launch.operands[", i, "].data);\n");
        continue;
      }
      bool strided = text_.access[i] == Layout::ACCESS_STRIDED;
      if (strided) absl::StrAppend(&offsets, "    st_i64 offset", i, " = 0;\n");
      std::string address =
          absl::StrCat("launch.operands[", i, "].data + ",
                       strided ? absl::StrCat("offset", i)
                               : absl::StrCat("(st_i64)i * ", ItemSize(text_.dtypes[i])));
      if (IsOutput(i)) {
        absl::StrAppend(&writes, "    st_store<", type, ">(", address, ", out",
                        i - text_.num_inputs, ");\n");
      } else {
        absl::StrAppend(&reads, "    const ", type, " in", i, " = st_load<", type, ">(", address,
                        ");\n");
      }
    }
    for (int axis = text_.rank - 1; axis >= 0; --axis) {
      if (axis > 0) {
        absl::StrAppend(&divide, "    {\n      const Index extent = (Index)launch.extents[", axis,
                        "];\n      const Index next = rest / extent;\n      const Index index = "
                        "rest - next * extent;\n      rest = next;\n");
      } else {
        absl::StrAppend(&divide, "    {\n      const Index index = rest;\n");
      }
      for (size_t i = 0; i < num_operands(); ++i) {
        if (text_.access[i] != Layout::ACCESS_STRIDED) continue;
        absl::StrAppend(&divide, "      offset", i, " += (st_i64)index * launch.operands[", i,
                        "].strides[", axis, "];\n");
      }
      absl::StrAppend(&divide, "    }\n");
    }
    const std::string packs = PackLoop(offsets, divide);
    const std::string loop =
        absl::StrCat(packs, "  for (Index i = ", packs.empty() ? "" : "done + ",
                     "thread; i < count; i += threads) {\n    Index rest = i;\n", offsets, divide,
                     reads, OutputVariables("    "), "    ", Call("i"), writes, "  }\n");
    const std::string tiles = TileLoop();
    if (tiles.empty()) return absl::StrCat(PackType(), Head(), setup, loop, kEnd);
    return absl::StrCat(PackType(), Head(), setup, "  if (launch.tile_axis >= 0) {\n", tiles,
                        "  } else {\n", loop, "  }\n", kEnd);
  }

  // Each thread handles as many elements as fill 16 bytes of the widest operand, at most 8. One
  // division per axis locates the first. The others follow along the last axis if their number
  // divides its extent, else stepping finds them. Empty where an output has gaps.
  std::string PackLoop(const std::string& offsets, const std::string& divide) const {
    const int width = std::min(PackWidth(), 8), last = text_.rank - 1;
    if (width < 2) return "";
    std::string aligned = "true", loads, reads, steps_reads, declare, keep, store;
    for (size_t i = 0; i < num_operands(); ++i) {
      if (IsRepeated(i)) continue;
      const std::string type = TypeName(text_.dtypes[i]);
      const std::string pack = absl::StrCat("Pack<", Stored(i), ", ", width, ">");
      const int64_t item = ItemSize(text_.dtypes[i]);
      const bool strided = text_.access[i] == Layout::ACCESS_STRIDED;
      if (IsOutput(i)) {
        if (strided) return "";
        const size_t j = i - text_.num_inputs;
        absl::StrAppend(&aligned, " && (st_u64)launch.operands[", i, "].data % ", width * item,
                        " == 0");
        absl::StrAppend(&declare, "    ", pack, " pack", i, ";\n");
        absl::StrAppend(&keep, "      pack", i, ".v[k] = out", j, ";\n");
        absl::StrAppend(&store, "    ((", pack, "*)launch.operands[", i, "].data)[p] = pack", i,
                        ";\n");
        continue;
      }
      const std::string step = strided
                                   ? absl::StrCat("launch.operands[", i, "].strides[", last, "]")
                                   : absl::StrCat("(st_i64)", item);
      absl::StrAppend(
          &loads, "    const st_i64 step", i, " = ", step, ";\n    const char* const at", i,
          " = launch.operands[", i, "].data + ",
          strided ? absl::StrCat("offset", i) : absl::StrCat("(st_i64)i * ", item), ";\n    ", pack,
          " pack", i, ";\n    if (step", i, " == ", item, " && (st_u64)at", i, " % ", width * item,
          " == 0) {\n      pack", i, " = *(const ", pack, "*)at", i,
          ";\n    } else {\n#pragma unroll\n      for (int k = 0; k < ", width, "; ++k) pack", i,
          ".v[k] = *(const ", Stored(i), "*)(at", i, " + k * step", i, ");\n    }\n");
      absl::StrAppend(&reads, "      const ", type, " in", i, " = st_from_stored<", type, ">(pack",
                      i, ".v[k]);\n");
      absl::StrAppend(
          &steps_reads, "      const ", type, " in", i, " = st_load<", type, ">(launch.operands[",
          i, "].data + ",
          strided ? absl::StrCat("offset", i) : absl::StrCat("(st_i64)(i | k) * ", item), ");\n");
    }
    const std::string loop = absl::StrCat("  for (Index p = thread; p < packs; p += threads) {\n",
                                          "    const Index i = p * ", width, ";\n");
    const std::string unrolled =
        absl::StrCat("#pragma unroll\n    for (int k = 0; k < ", width, "; ++k) {\n");
    const std::string compute =
        absl::StrCat(OutputVariables("      "), "      ", Call("i | k"), keep);
    return absl::StrCat("  Index done = 0;\n  if (", aligned, ") {\n  const Index packs = count / ",
                        width, ";\n  if (launch.extents[", last, "] % ", width, " == 0) {\n", loop,
                        "    Index rest = i;\n", offsets, divide, loads, declare, unrolled, reads,
                        compute, "    }\n", store, "  }\n  } else {\n", loop, Places(), declare,
                        unrolled, steps_reads, compute, Steps(), "    }\n", store,
                        "  }\n  }\n  done = packs * ", width, ";\n  }\n");
  }

  // Offsets of element i in strided operands, and its index along each axis.
  std::string Places() const {
    std::string text = "    Index rest = i;\n";
    for (size_t i = 0; i < num_operands(); ++i)
      if (text_.access[i] == Layout::ACCESS_STRIDED)
        absl::StrAppend(&text, "    st_i64 offset", i, " = 0;\n");
    for (int axis = text_.rank - 1; axis >= 0; --axis) {
      absl::StrAppend(&text, "    const Index extent", axis, " = (Index)launch.extents[", axis,
                      "];\n    Index at", axis, " = rest;\n");
      if (axis > 0) {
        absl::StrAppend(&text, "    rest /= extent", axis, ";\n    at", axis, " -= rest * extent",
                        axis, ";\n");
      }
      for (size_t i = 0; i < num_operands(); ++i) {
        if (text_.access[i] != Layout::ACCESS_STRIDED) continue;
        absl::StrAppend(&text, "    offset", i, " += (st_i64)at", axis, " * launch.operands[", i,
                        "].strides[", axis, "];\n");
      }
    }
    return text;
  }

  // Steps from an element's indices and offsets to the next one's, without a division.
  std::string Steps() const {
    std::string text, end;
    for (int axis = text_.rank - 1; axis >= 0; --axis) {
      absl::StrAppend(&text, "      ++at", axis, ";\n");
      for (size_t i = 0; i < num_operands(); ++i) {
        if (text_.access[i] != Layout::ACCESS_STRIDED) continue;
        absl::StrAppend(&text, "      offset", i, " += launch.operands[", i, "].strides[", axis,
                        "];\n");
      }
      if (axis == 0) break;
      absl::StrAppend(&text, "      if (at", axis, " == extent", axis, ") {\n      at", axis,
                      " = 0;\n");
      for (size_t i = 0; i < num_operands(); ++i) {
        if (text_.access[i] != Layout::ACCESS_STRIDED) continue;
        absl::StrAppend(&text, "      offset", i, " -= (st_i64)extent", axis, " * launch.operands[",
                        i, "].strides[", axis, "];\n");
      }
      end += "      }\n";
    }
    return text + end;
  }

  // Whether an input's tiles may be read along another axis than the last.
  bool IsStaged(size_t i) const {
    return !IsOutput(i) && text_.access[i] == Layout::ACCESS_STRIDED;
  }

  // A block handles a tile of the last axis and of `launch.tile_axis` at a time. An input that is
  // contiguous along the latter goes through shared memory, so that neighbouring threads read
  // neighbouring elements and also write neighbouring elements of the output. Empty when no input
  // qualifies, or when the tiles do not fit.
  std::string TileLoop() const {
    uint64_t shared = 0;
    for (size_t i = 0; i < num_operands(); ++i)
      if (IsStaged(i)) shared += kTileSide * (kTileSide + 1) * ItemSize(text_.dtypes[i]);
    if (text_.rank < 2 || shared == 0 || shared > kMostSharedBytes) return "";
    const int last = text_.rank - 1;
    std::string tiles, bases, steps, stage, reads, writes;
    for (size_t i = 0; i < num_operands(); ++i) {
      if (IsRepeated(i)) continue;
      const std::string type = TypeName(text_.dtypes[i]);
      const bool strided = text_.access[i] == Layout::ACCESS_STRIDED;
      const std::string at =
          strided ? absl::StrCat("base", i, " + (st_i64)t * along", i, " + (st_i64)l * across", i)
                  : absl::StrCat("launch.operands[", i, "].data + (st_i64)flat * ",
                                 ItemSize(text_.dtypes[i]));
      if (strided) {
        absl::StrAppend(&steps, "    const st_i64 along", i, " = launch.operands[", i,
                        "].strides[launch.tile_axis], across", i, " = launch.operands[", i,
                        "].strides[", last, "];\n");
        absl::StrAppend(&bases, "      char* base", i, " = launch.operands[", i, "].data;\n");
      }
      if (IsOutput(i)) {
        absl::StrAppend(&writes, "        st_store<", type, ">(", at, ", out", i - text_.num_inputs,
                        ");\n");
      } else if (!strided) {
        absl::StrAppend(&reads, "        const ", type, " in", i, " = st_load<", type, ">(", at,
                        ");\n");
      } else {
        absl::StrAppend(&tiles, "    __shared__ ", Stored(i), " tile", i, "[kSide][kSide + 1];\n");
        absl::StrAppend(&steps, "    const bool staged", i, " = along", i,
                        " == ", ItemSize(text_.dtypes[i]), " && across", i,
                        " != ", ItemSize(text_.dtypes[i]), ";\n");
        absl::StrAppend(&stage, "      if (staged", i, ") {\n",
                        "        const Index t = begin_t + x;\n",
                        "        for (int k = y; k < kSide; k += kRows) {\n",
                        "          const Index l = begin_l + k;\n",
                        "          if (t < extent_t && l < extent_l) tile", i, "[k][x] = *(const ",
                        Stored(i), "*)(", at, ");\n        }\n      }\n");
        absl::StrAppend(&reads, "        const ", type, " in", i, " = staged", i,
                        " ? st_from_stored<", type, ">(tile", i, "[x][k]) : st_load<", type, ">(",
                        at, ");\n");
      }
    }
    return absl::StrCat(
        "    constexpr int kSide = ", kTileSide, ", kRows = 256 / kSide;\n", tiles, steps,
        "    const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;\n",
        "    const Index extent_l = (Index)launch.extents[", last,
        "], extent_t = (Index)launch.extents[launch.tile_axis];\n",
        "    const Index tiles_l = (extent_l + kSide - 1) / kSide, tiles_t = (extent_t + kSide - "
        "1) "
        "/ kSide;\n",
        "    const Index planes = count / extent_l / extent_t;\n",
        "    for (Index tile = blockIdx.x; tile < planes * tiles_t * tiles_l; tile += gridDim.x) "
        "{\n",
        "      const Index begin_l = tile % tiles_l * kSide, begin_t = tile / tiles_l % tiles_t * "
        "kSide;\n",
        "      Index rest = tile / tiles_l / tiles_t, first = 0, inner = extent_l, inner_t = 0;\n",
        bases, PlaneOffsets(), stage, "      __syncthreads();\n",
        "      for (int k = y; k < kSide; k += kRows) {\n",
        "        const Index t = begin_t + k, l = begin_l + x;\n",
        "        if (t >= extent_t || l >= extent_l) continue;\n",
        "        const Index flat = first + t * inner_t + l;\n", reads, OutputVariables("        "),
        "        ", Call("flat"), writes, "      }\n      __syncthreads();\n    }\n");
  }

  // The other axes' part of a tile's offsets: in bytes for strided operands, in elements (`first`)
  // for the rest. `inner_t`: elements between indices of the tile's axis.
  std::string PlaneOffsets() const {
    std::string text;
    for (int axis = text_.rank - 2; axis >= 0; --axis) {
      absl::StrAppend(&text, "      if (launch.tile_axis == ", axis,
                      ") {\n        inner_t = inner;\n      } else {\n",
                      "        const Index extent = (Index)launch.extents[", axis,
                      "], index = rest % extent;\n        rest /= extent;\n",
                      "        first += index * inner;\n");
      for (size_t i = 0; i < num_operands(); ++i) {
        if (text_.access[i] != Layout::ACCESS_STRIDED) continue;
        absl::StrAppend(&text, "        base", i, " += (st_i64)index * launch.operands[", i,
                        "].strides[", axis, "];\n");
      }
      absl::StrAppend(&text, "      }\n      inner *= (Index)launch.extents[", axis, "];\n");
    }
    return text;
  }

  const ElementwiseText& text_;
};

}  // namespace

absl::StatusOr<std::string> EmitElementwiseCuda(const wire::ElementwiseCode& code) {
  auto text = PrepareElementwise(code, Target::kCuda);
  if (!text.ok()) return text.status();
  return Emitter(*text).Emit();
}

}  // namespace stride::codegen
