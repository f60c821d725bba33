#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/worker/codegen/elementwise_text.h"
#include "server/worker/codegen/emit.h"

namespace stride::codegen {
namespace {

using Layout = wire::Layout;

// How the inner loop reads one operand, fixed at compile time for each variant of the loop.
enum class Walk { kUnit, kRepeat, kStrided };

// With at most this many strided inputs, each is specialized for unit steps and repetition
// separately.
constexpr int kMaxVariedInputs = 2;

// A store to a line outside the cache reads the line first: a quarter to a third of the traffic of
// `x + y`. Streaming stores avoid this, but results that are read soon should stay in the cache.
// Results of half a usual last-level cache would not stay there anyway.
constexpr char kStream[] = R"(
enum { kLineBytes = 64, kBlockBytes = 4096, kStreamBytes = 16 << 20 };

// A block to a place that begins a line. It is there for others after st_streamed().
ST_FN void st_stream(char* to, const char* block) {
#if defined(__clang__)
  typedef float line __attribute__((vector_size(32)));
  for (int i = 0; i < kBlockBytes; i += 32) __builtin_nontemporal_store(*(const line*)(block + i), (line*)(to + i));
#else
  __builtin_memcpy(to, block, kBlockBytes);
#endif
}
ST_FN void st_streamed() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
)";

// Four neighbours share a generator's block, which is computed once if their position in it is
// known: the first of four elements has an index that four divides.
constexpr char kFours[] =
    R"(  auto element = [&](st_i64 j, st_i64 index) __attribute__((always_inline)) {
$element  };
  st_i64 j = 0;
  for (; j < n && ((first + j) & 3) != 0; ++j) element(j, first + j);
  const st_i64 fours = (n - j) >> 2, four = (first + j) >> 2;
  ST_IVDEP
  for (st_i64 i = 0; i < fours; ++i) {
#pragma unroll
    for (st_i64 k = 0; k < 4; ++k) element(j + 4 * i + k, 4 * (four + i) + k);
  }
  for (j += 4 * fours; j < n; ++j) element(j, first + j);
}
)";

// Blocks of elements whose sines, cosines and tangents all have few turns. This is known only after
// the block, so results are buffered until then, since they may overwrite inputs.
constexpr char kByTurns[] = R"(  enum { kBlock = 256 };
  for (st_i64 start = 0; start < n; start += kBlock) {
    const st_i64 end = n - start < kBlock ? n : start + kBlock;
$blocks    st_few_turns few;
    ST_IVDEP
    for (st_i64 j = start; j < end; ++j) {
$few    }
    if (!few.exceeded) {
      ST_IVDEP
      for (st_i64 j = start; j < end; ++j) {
$copies      }
      continue;
    }
    st_any_turns any;
    ST_IVDEP
    for (st_i64 j = start; j < end; ++j) {
$any    }
  }
}
)";

struct Variant {
  std::vector<Walk> walks;  // one per operand
  std::string condition;    // on the launch's innermost strides; empty: always
};

class Emitter {
 public:
  explicit Emitter(const ElementwiseText& text) : text_(text) {}

  std::string Emit() {
    std::vector<Variant> variants = Variants();
    std::string rows, dispatch;
    for (size_t i = 0; i < variants.size(); ++i) {
      absl::StrAppend(&rows, RowFunction(static_cast<int>(i), variants[i].walks));
      std::string call = absl::StrCat("row", i, "(scalars, pointers, steps, n, first);");
      absl::StrAppend(
          &dispatch, "    ",
          variants[i].condition.empty() ? "" : absl::StrCat("if (", variants[i].condition, ") "),
          call, variants[i].condition.empty() ? "\n" : "\n    else\n");
    }
    return absl::StrCat(text_.definitions, rows,
                        text_.rank == 1 ? FlatEntry(dispatch) : NestedEntry(dispatch));
  }

 private:
  size_t num_operands() const { return text_.dtypes.size(); }

  Walk FixedWalk(size_t operand) const {
    switch (text_.access[operand]) {
      case Layout::ACCESS_BROADCAST:
        return Walk::kRepeat;
      case Layout::ACCESS_CONTIGUOUS:
        return Walk::kUnit;
      default:
        return Walk::kStrided;
    }
  }

  std::string IsUnit(size_t operand) const {
    return absl::StrCat("steps[", operand, "] == ", ItemSize(text_.dtypes[operand]));
  }

  // The fast variants first; the last one handles all strides.
  std::vector<Variant> Variants() const {
    std::vector<Walk> general;
    std::vector<size_t> inputs, outputs;
    for (size_t i = 0; i < num_operands(); ++i) {
      general.push_back(FixedWalk(i));
      if (general[i] == Walk::kStrided) (i < text_.num_inputs ? inputs : outputs).push_back(i);
    }
    std::vector<Variant> variants;
    if (inputs.empty() && outputs.empty()) return {{general, ""}};
    int choices = inputs.size() <= kMaxVariedInputs ? 1 << inputs.size() : 1;
    for (int choice = 0; choice < choices; ++choice) {
      Variant variant{general, ""};
      auto require = [&](size_t operand, Walk walk) {
        variant.walks[operand] = walk;
        absl::StrAppend(
            &variant.condition, variant.condition.empty() ? "" : " && ",
            walk == Walk::kUnit ? IsUnit(operand) : absl::StrCat("steps[", operand, "] == 0"));
      };
      for (size_t operand : outputs) require(operand, Walk::kUnit);
      for (size_t i = 0; i < inputs.size(); ++i)
        require(inputs[i], choice >> i & 1 ? Walk::kRepeat : Walk::kUnit);
      variants.push_back(variant);
    }
    variants.push_back({general, ""});
    return variants;
  }

  std::string RowFunction(int number, const std::vector<Walk>& walks) const {
    std::string before, reads, arguments, writes, blocks, block_writes, copies;
    for (size_t i = 0; i < num_operands(); ++i) {
      std::string type = TypeName(text_.dtypes[i]);
      bool is_output = i >= text_.num_inputs;
      std::string stored = absl::StrCat("st_stored<", type, ">::type");
      std::string name = absl::StrCat("p", i);
      std::string address;
      if (walks[i] == Walk::kStrided) {
        absl::StrAppend(&before, "  char* const ", name, " = pointers[", i,
                        "];\n  const st_i64 step", i, " = steps[", i, "];\n");
        address = absl::StrCat(name, " + j * step", i);
      } else {
        absl::StrAppend(&before, "  ", stored, "* const ", name, " = (", stored, "*)pointers[", i,
                        "];\n");
        address = absl::StrCat(name, " + j");
      }
      if (is_output) {
        size_t j = i - text_.num_inputs;
        absl::StrAppend(&reads, "    ", type, " out", j, ";\n");
        absl::StrAppend(&arguments, ", out", j);
        absl::StrAppend(&writes, "    st_store<", type, ">(", address, ", out", j, ");\n");
        const std::string in_block = absl::StrCat("block", j, " + (j - start)");
        absl::StrAppend(&blocks, "    alignas(64) ", stored, " block", j, "[kBlock];\n");
        absl::StrAppend(&block_writes, "    st_store<", type, ">(", in_block, ", out", j, ");\n");
        absl::StrAppend(&copies, "    st_store<", type, ">(", address, ", st_load<", type, ">(",
                        in_block, "));\n");
      } else if (walks[i] == Walk::kRepeat) {
        absl::StrAppend(&before, "  const ", type, " in", i, " = st_load<", type, ">(", name,
                        ");\n");
      } else {
        absl::StrAppend(&reads, "    const ", type, " in", i, " = st_load<", type, ">(", address,
                        ");\n");
      }
    }
    std::string inputs;
    for (size_t i = 0; i < text_.num_inputs; ++i) absl::StrAppend(&inputs, ", in", i);
    const std::string head =
        absl::StrCat("ST_FN void row", number,
                     "(const bodyScalars& scalars, char* const* pointers, const st_i64* steps, "
                     "st_i64 n, st_i64 first) {\n",
                     before);
    auto element = [&](const char* index) {
      return absl::StrCat(reads, "    body(scalars", inputs, ", ", index, arguments, ");\n",
                          writes);
    };
    if (text_.takes_turns) {
      auto body = [&](const char* turns, const std::string& stores) {
        return absl::StrCat(reads, "    body(scalars", inputs, ", first + j", arguments, ", ",
                            turns, ");\n", stores);
      };
      return head + absl::StrReplaceAll(kByTurns, {{"$blocks", blocks},
                                                   {"$few", body("few", block_writes)},
                                                   {"$copies", copies},
                                                   {"$any", body("any", writes)}});
    }
    if (text_.uses_random)
      return head + absl::StrReplaceAll(kFours, {{"$element", element("index")}});
    return absl::StrCat(head, "  ST_IVDEP\n  for (st_i64 j = 0; j < n; ++j) {\n",
                        element("first + j"), "  }\n}\n");
  }

  std::string FlatEntry(const std::string& dispatch) const {
    std::string setup;
    for (size_t i = 0; i < num_operands(); ++i) {
      // With one element, the launch's stride of a contiguous operand may have any value.
      std::string step = text_.access[i] == Layout::ACCESS_CONTIGUOUS
                             ? absl::StrCat(ItemSize(text_.dtypes[i]))
                         : text_.access[i] == Layout::ACCESS_BROADCAST
                             ? "0"
                             : absl::StrCat("launch->operands[", i, "].strides[0]");
      absl::StrAppend(&setup, "    steps[", i, "] = ", step, ";\n    pointers[", i,
                      "] = launch->operands[", i, "].data + begin * steps[", i, "];\n");
    }
    const std::string head =
        absl::StrCat("ST_ENTRY void stride_run(const Launch* launch, st_i64 begin, st_i64 end) {\n",
                     "  const bodyScalars scalars = ", text_.scalars_call, ";\n  char* pointers[",
                     num_operands(), "];\n  st_i64 steps[", num_operands(), "];\n");
    if (MayStream()) return absl::StrCat(kStream, head, StreamedLoop(setup, dispatch));
    return absl::StrCat(head, "  const st_i64 n = end - begin, first = begin;\n  if (n > 0) {\n",
                        setup, dispatch, "  }\n}\n");
  }

  // One contiguous result, of an item size that divides a line's.
  bool MayStream() const {
    const size_t output = num_operands() - 1;
    return num_operands() == text_.num_inputs + 1 &&
           text_.access[output] == Layout::ACCESS_CONTIGUOUS;
  }

  // Rows of a large result are computed in a small buffer that stays in the cache, then streamed
  // past it.
  std::string StreamedLoop(const std::string& setup, const std::string& dispatch) const {
    const size_t output = num_operands() - 1;
    std::string in_place;
    for (size_t i = 0; i < output; ++i) {
      absl::StrAppend(&in_place, " && launch->operands[", i, "].data != launch->operands[", output,
                      "].data");
    }
    return absl::StrReplaceAll(
        R"(  st_i64 left = end - begin, first = begin;
  if (left > 0) {
$setup    // What is changed in place is in the cache anyway.
    const bool stream = launch->extents[0] * $size >= kStreamBytes &&
        (st_u64)pointers[$output] % $size == 0$in_place;
    alignas(kLineBytes) char block[kBlockBytes];
    while (left > 0) {
      st_i64 n = left;
      char* const to = pointers[$output];
      bool by_block = false;
      if (stream) {
        const st_i64 past = (st_i64)((st_u64)to % kLineBytes);
        if (past != 0) {
          if (n > (kLineBytes - past) / $size) n = (kLineBytes - past) / $size;
        } else if (n >= kBlockBytes / $size) {
          n = kBlockBytes / $size;
          by_block = true;
          pointers[$output] = block;
        }
      }
$dispatch      if (by_block) st_stream(to, block);
      for (int i = 0; i < $output; ++i) pointers[i] += n * steps[i];
      pointers[$output] = to + n * $size;
      first += n;
      left -= n;
    }
    if (stream) st_streamed();
  }
}
)",
        {{"$setup", setup},
         {"$dispatch", dispatch},
         {"$in_place", in_place},
         {"$output", absl::StrCat(output)},
         {"$size", absl::StrCat(ItemSize(text_.dtypes[output]))}});
  }

  // Rows along the innermost axis; the outer axes are counted like an odometer.
  std::string NestedEntry(const std::string& dispatch) const {
    int last = text_.rank - 1;
    return absl::StrCat(
        "ST_ENTRY void stride_run(const Launch* launch, st_i64 begin, st_i64 end) {\n  const "
        "bodyScalars scalars = ",
        text_.scalars_call, ";\n  st_i64 index[", text_.rank,
        "];\n  st_i64 rest = begin;\n  if (begin >= end) return;\n", "  for (int axis = ", last,
        "; axis >= 0; --axis) {\n    index[axis] = rest % launch->extents[axis];\n",
        "    rest /= launch->extents[axis];\n  }\n  char* pointers[", num_operands(),
        "];\n  st_i64 steps[", num_operands(), "];\n  for (int i = 0; i < ", num_operands(),
        "; ++i) {\n    pointers[i] = launch->operands[i].data;\n    steps[i] = ",
        "launch->operands[i].strides[", last, "];\n    for (int axis = 0; axis < ", text_.rank,
        "; ++axis) pointers[i] += index[axis] * launch->operands[i].strides[axis];\n  }\n",
        "  for (st_i64 first = begin; first < end;) {\n    const st_i64 left = launch->extents[",
        last, "] - index[", last, "];\n",
        "    const st_i64 n = left < end - first ? left : end - first;\n", dispatch,
        "    first += n;\n    if (first >= end) break;\n",
        "    // Back to the row's start, then one step along the next axis that has not ended.\n",
        "    for (int i = 0; i < ", num_operands(), "; ++i) pointers[i] -= index[", last,
        "] * launch->operands[i].strides[", last, "];\n    index[", last,
        "] = 0;\n    for (int axis = ", last - 1,
        "; axis >= 0; --axis) {\n      const bool ended = ++index[axis] == "
        "launch->extents[axis];\n",
        "      const st_i64 moved = ended ? 1 - launch->extents[axis] : 1;\n      for (int i = 0; "
        "i < ",
        num_operands(),
        "; ++i) pointers[i] += moved * launch->operands[i].strides[axis];\n      if (!ended) "
        "break;\n      index[axis] = 0;\n",
        "    }\n  }\n}\n");
  }

  const ElementwiseText& text_;
};

}  // namespace

absl::StatusOr<std::string> EmitElementwiseCpu(const wire::ElementwiseCode& code) {
  auto text = PrepareElementwise(code, Target::kCpu);
  if (!text.ok()) return text.status();
  return Emitter(*text).Emit();
}

}  // namespace stride::codegen
