#include "server/worker/codegen/program_text.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/ops/op_table.h"
#include "server/worker/codegen/client_text.h"
#include "server/worker/codegen/device_headers.h"

namespace stride::codegen {
namespace {

using Instruction = wire::Instruction;

absl::Status Broken(const std::string& what) {
  return absl::InternalError(absl::StrCat("the plan's program is broken: ", what));
}

DType TypeOf(const Instruction& instruction) { return static_cast<DType>(instruction.dtype()); }

bool IsTurn(const wire::ScalarProgram& program, const Instruction& instruction) {
  if (instruction.kind() != Instruction::KIND_OP || instruction.arguments_size() != 1) return false;
  if (instruction.op() != "sin" && instruction.op() != "cos" && instruction.op() != "tan")
    return false;
  const DType dtype = TypeOf(instruction);
  return (dtype == DType::kFloat32 || dtype == DType::kFloat64) &&
         static_cast<int>(instruction.arguments(0)) < program.instructions_size() &&
         TypeOf(program.instructions(static_cast<int>(instruction.arguments(0)))) == dtype;
}

// Converts instructions to text, in order.
class Writer {
 public:
  Writer(const std::string& name, const wire::ScalarProgram& program,
         const std::vector<DType>& inputs, bool takes_turns)
      : name_(name), program_(program), inputs_(inputs), takes_turns_(takes_turns) {}

  absl::StatusOr<ProgramText> Write() {
    std::string clients;
    for (const wire::DeviceFunction& function : program_.functions()) {
      auto text = ClientText(function);
      if (!text.ok()) return text.status();
      clients += *text;
    }
    for (int i = 0; i < program_.instructions_size(); ++i) {
      if (auto status = WriteInstruction(i); !status.ok()) return status;
    }
    for (uint32_t result : program_.results()) {
      if (result >= static_cast<uint32_t>(program_.instructions_size()))
        return Broken("a result is not there");
    }
    ProgramText text;
    text.num_scalars = static_cast<int>(scalars_.size());
    text.definitions = clients + functions_ + ScalarsText() + BodyText();
    return text;
  }

 private:
  absl::Status WriteInstruction(int i) {
    const Instruction& instruction = program_.instructions(i);
    if (!DTypeFromNumber(instruction.dtype())) return Broken("no such type");
    for (uint32_t argument : instruction.arguments()) {
      if (argument >= static_cast<uint32_t>(i)) return Broken("an argument comes later");
    }
    std::string type = TypeName(TypeOf(instruction));
    std::string value;
    switch (instruction.kind()) {
      case Instruction::KIND_INPUT:
        if (instruction.index() >= inputs_.size()) return Broken("no such input");
        value = absl::StrCat("in", instruction.index());
        break;
      case Instruction::KIND_SCALAR:
        scalars_[instruction.index()] = TypeOf(instruction);
        value = absl::StrCat("scalars.s", instruction.index());
        break;
      case Instruction::KIND_INDEX:
        value = "index";
        break;
      case Instruction::KIND_CAST:
        if (instruction.arguments_size() != 1) return Broken("a cast takes one argument");
        value = absl::StrCat("st_cast<", type, ">(v", instruction.arguments(0), ")");
        break;
      case Instruction::KIND_OP: {
        if (takes_turns_ && IsTurn(program_, instruction)) {
          value = absl::StrCat("turns.", instruction.op(), "(v", instruction.arguments(0), ")");
          break;
        }
        if (HasPartner(instruction)) {
          value = SineOrCosine(instruction);
          break;
        }
        auto call = CallText(instruction);
        if (!call.ok()) return call.status();
        value = *call;
        break;
      }
      case Instruction::KIND_CALL: {
        auto call = ClientCallText(instruction);
        if (!call.ok()) return call.status();
        value = *call;
        break;
      }
      case Instruction::KIND_LITERAL: {
        auto literal = LiteralText(TypeOf(instruction), instruction.literal());
        if (!literal.ok()) return literal.status();
        value = *literal;
        break;
      }
      default:
        return Broken("no such instruction");
    }
    absl::StrAppend(&body_, "  const ", type, " v", i, " = ", value, ";\n");
    return absl::OkStatus();
  }

  // A call of the function with the row's body for these argument types; emits the function at its
  // first use.
  absl::StatusOr<std::string> CallText(const Instruction& instruction) {
    const ops::OpRow* row = ops::FindInstruction(instruction.op());
    if (row == nullptr || instruction.arguments_size() != row->arity)
      return Broken("no such operation");
    std::string function = absl::StrCat(name_, "_", std::string(row->name));
    std::string parameters, arguments;
    for (int i = 0; i < row->arity; ++i) {
      DType dtype = TypeOf(program_.instructions(static_cast<int>(instruction.arguments(i))));
      absl::StrAppend(&function, "_", std::string(Name(dtype)));
      absl::StrAppend(&parameters, i == 0 ? "" : ", ", TypeName(dtype), " ",
                      std::string(1, "abc"[i]));
      absl::StrAppend(&arguments, i == 0 ? "v" : ", v", instruction.arguments(i));
    }
    auto [known, is_new] = function_known_.emplace(function, true);
    if (is_new) {
      absl::StrAppend(&functions_, "ST_FN ", TypeName(TypeOf(instruction)), " ", function, "(",
                      parameters, ") {\n  return ", ops::BodyOf(*row), ";\n}\n");
    }
    return absl::StrCat(function, "(", arguments, ")");
  }

  // Whether both sine and cosine of one value are computed: they share the reduction to the first
  // quadrant, which is most of the work.
  bool HasPartner(const Instruction& instruction) const {
    const bool sine = instruction.op() == "sin";
    if (!sine && instruction.op() != "cos") return false;
    if (instruction.arguments_size() != 1) return false;
    const DType dtype = TypeOf(instruction);
    if (dtype != DType::kFloat32 && dtype != DType::kFloat64) return false;
    if (TypeOf(program_.instructions(static_cast<int>(instruction.arguments(0)))) != dtype)
      return false;
    return std::any_of(program_.instructions().begin(), program_.instructions().end(),
                       [&](const Instruction& other) {
                         return other.kind() == Instruction::KIND_OP &&
                                other.op() == (sine ? "cos" : "sin") &&
                                other.arguments_size() == 1 &&
                                other.arguments(0) == instruction.arguments(0) &&
                                TypeOf(other) == dtype;
                       });
  }

  // One of the two; both are computed at the first of them.
  std::string SineOrCosine(const Instruction& instruction) {
    const uint32_t argument = instruction.arguments(0);
    if (turned_.insert(argument).second) {
      absl::StrAppend(&body_, "  ", TypeName(TypeOf(instruction)), " sin_v", argument, ", cos_v",
                      argument, ";\n  st_sincos(v", argument, ", sin_v", argument, ", cos_v",
                      argument, ");\n");
    }
    return absl::StrCat(instruction.op(), "_v", argument);
  }

  // A client's function knows only the language's own types.
  std::string ClientArguments(const Instruction& instruction) const {
    std::string arguments;
    for (uint32_t argument : instruction.arguments()) {
      const DType dtype = TypeOf(program_.instructions(static_cast<int>(argument)));
      const std::string value = absl::StrCat("v", argument);
      absl::StrAppend(&arguments, arguments.empty() ? "" : ", ",
                      IsComplex(dtype)
                          ? absl::StrCat(ClientTypeName(dtype), "{", value, ".re, ", value, ".im}")
                          : value);
    }
    return arguments;
  }

  static std::string FromClient(DType dtype, const std::string& value) {
    if (!IsComplex(dtype)) return absl::StrCat("(", TypeName(dtype), ")", value);
    return absl::StrCat("st_from_client<", TypeName(dtype), ">(", value, ")");
  }

  absl::StatusOr<std::string> ClientCallText(const Instruction& instruction) {
    if (instruction.index() >= static_cast<uint32_t>(program_.functions_size()))
      return Broken("no such function");
    if (instruction.result_dtypes_size() > 0) return OneOfSeveral(instruction);
    const std::string call =
        absl::StrCat(ClientName(program_.functions(static_cast<int>(instruction.index()))), "(",
                     ClientArguments(instruction), ")");
    return FromClient(TypeOf(instruction), call);
  }

  // A function that writes its results through pointers is called for the first of them.
  absl::StatusOr<std::string> OneOfSeveral(const Instruction& instruction) {
    if (instruction.result() >= static_cast<uint32_t>(instruction.result_dtypes_size()))
      return Broken("no such result");
    Instruction call = instruction;
    call.clear_result();
    call.clear_dtype();
    const auto [known, is_new] = calls_.emplace(call.SerializeAsString(), calls_.size());
    const std::string name = absl::StrCat("c", known->second, "_");
    if (is_new) {
      std::string arguments = ClientArguments(instruction);
      for (int k = 0; k < instruction.result_dtypes_size(); ++k) {
        auto dtype = DTypeFromNumber(instruction.result_dtypes(k));
        if (!dtype) return Broken("no such type");
        absl::StrAppend(&body_, "  ", ClientTypeName(*dtype), " ", name, k, "{};\n");
        absl::StrAppend(&arguments, arguments.empty() ? "&" : ", &", name, k);
      }
      absl::StrAppend(&body_, "  ",
                      ClientName(program_.functions(static_cast<int>(instruction.index()))), "(",
                      arguments, ");\n");
    }
    return FromClient(TypeOf(instruction), absl::StrCat(name, instruction.result()));
  }

  std::string ScalarsText() const {
    std::string fields, loads;
    for (const auto& [index, dtype] : scalars_) {
      absl::StrAppend(&fields, "  ", TypeName(dtype), " s", index, ";\n");
      absl::StrAppend(&loads, "  scalars.s", index, " = st_load<", TypeName(dtype), ">(slots[",
                      index, "]);\n");
    }
    return absl::StrCat("struct ", name_, "Scalars {\n", fields, "};\n", "ST_FN ", name_,
                        "Scalars ", name_, "_scalars(",
                        scalars_.empty() ? "" : "const char (*slots)[16]", ") {\n  ", name_,
                        "Scalars scalars;\n", loads, "  return scalars;\n}\n");
  }

  std::string BodyText() const {
    std::string parameters, stores;
    for (size_t i = 0; i < inputs_.size(); ++i)
      absl::StrAppend(&parameters, ", ", TypeName(inputs_[i]), " in", i);
    absl::StrAppend(&parameters, ", st_i64 index");
    for (int i = 0; i < program_.results_size(); ++i) {
      DType dtype = TypeOf(program_.instructions(static_cast<int>(program_.results(i))));
      absl::StrAppend(&parameters, ", ", TypeName(dtype), "& out", i);
      absl::StrAppend(&stores, "  out", i, " = v", program_.results(i), ";\n");
    }
    if (takes_turns_) absl::StrAppend(&parameters, ", Turns& turns");
    return absl::StrCat(takes_turns_ ? "template <class Turns>\n" : "", "ST_FN void ", name_,
                        "(const ", name_, "Scalars& scalars", parameters, ") {\n", body_, stores,
                        "}\n");
  }

  const std::string& name_;
  const wire::ScalarProgram& program_;
  const std::vector<DType>& inputs_;
  const bool takes_turns_;
  std::map<uint32_t, DType> scalars_;
  std::map<std::string, bool> function_known_;
  std::map<std::string, size_t> calls_;  // calls of functions with several results
  std::set<uint32_t> turned_;            // values whose sine and cosine are both computed
  std::string functions_, body_;
};

}  // namespace

std::string TypeName(DType dtype) {
  constexpr const char* kNames[] = {"",      "bool",   "st_i8",  "st_i16", "st_i32", "st_i64",
                                    "st_u8", "st_u16", "st_u32", "st_u64", "st_f16", "st_bf16",
                                    "float", "double", "st_c64", "st_c128"};
  return kNames[static_cast<int>(dtype)];
}

std::string ClientTypeName(DType dtype) {
  if (dtype == DType::kComplex64) return "float2";
  if (dtype == DType::kComplex128) return "double2";
  return TypeName(dtype);
}

absl::StatusOr<std::string> LiteralText(DType dtype, const std::string& bytes) {
  if (bytes.size() != static_cast<size_t>(ItemSize(dtype))) return Broken("a literal's size");
  auto bits = [&](size_t offset, size_t size) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + offset, size);
    return absl::StrCat("0x", absl::Hex(value), size == 8 ? "ull" : "u");
  };
  const std::string type = TypeName(dtype);
  switch (dtype) {
    case DType::kBool:
      return std::string(bytes[0] != 0 ? "true" : "false");
    case DType::kFloat16:
    case DType::kBFloat16:
      return absl::StrCat(type, "{(st_u16)", bits(0, 2), "}");
    case DType::kFloat32:
      return absl::StrCat("st_float_of(", bits(0, 4), ")");
    case DType::kFloat64:
      return absl::StrCat("st_double_of(", bits(0, 8), ")");
    case DType::kComplex64:
      return absl::StrCat(type, "{st_float_of(", bits(0, 4), "), st_float_of(", bits(4, 4), ")}");
    case DType::kComplex128:
      return absl::StrCat(type, "{st_double_of(", bits(0, 8), "), st_double_of(", bits(8, 8), ")}");
    default:
      return absl::StrCat("(", type, ")", bits(0, bytes.size()));
  }
}

std::string Preamble(Target target, const std::vector<DType>& dtypes) {
  bool complex = std::any_of(dtypes.begin(), dtypes.end(), IsComplex);
  return absl::StrCat("#define ST_CUDA ", target == Target::kCuda ? "1" : "0", "\n", kBaseHeader,
                      kArithmeticHeader, kFloatsHeader, complex ? kComplexHeader : "",
                      kGenericHeader);
}

bool UsesRandom(const wire::ScalarProgram& program) {
  return std::any_of(
      program.instructions().begin(), program.instructions().end(),
      [](const Instruction& instruction) { return instruction.op().rfind("random_", 0) == 0; });
}

bool UsesTurns(const wire::ScalarProgram& program) {
  return std::any_of(program.instructions().begin(), program.instructions().end(),
                     [&](const Instruction& instruction) { return IsTurn(program, instruction); });
}

void CollectTypes(const wire::ScalarProgram& program, std::vector<DType>* dtypes) {
  for (const Instruction& instruction : program.instructions())
    dtypes->push_back(TypeOf(instruction));
}

absl::StatusOr<ProgramText> EmitProgram(const std::string& name, const wire::ScalarProgram& program,
                                        const std::vector<DType>& inputs, bool takes_turns) {
  return Writer(name, program, inputs, takes_turns).Write();
}

}  // namespace stride::codegen
