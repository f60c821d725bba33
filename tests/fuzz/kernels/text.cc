#include "tests/fuzz/kernels/text.h"

#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tests/fuzz/kernels/scalar.h"

namespace stride::cpucuda::fuzz {
namespace {

using absl::StrCat;

std::string Suffix(const Program& program) { return StrCat("_", program.seed); }

class Writer {
 public:
  explicit Writer(const Program& program) : program_(program) {}

  void Helpers() {
    for (size_t i = 0; i < program_.helpers.size(); ++i) {
      const Helper& helper = program_.helpers[i];
      in_helper_ = true;
      std::vector<std::string> parameters;
      for (int p = 0; p < helper.num_parameters; ++p)
        parameters.push_back(StrCat(NameOf(helper.variables[p]), " v", p));
      Line(StrCat(i % 3 == 0 ? "__noinline__ " : "", "__device__ ", NameOf(helper.result), " h", i,
                  Suffix(program_), "(", absl::StrJoin(parameters, ", "), ") {"));
      types_ = &helper.variables;
      Body(helper.body);
      Line("}");
    }
    in_helper_ = false;
  }

  void Kernel() {
    types_ = &program_.variables;
    Line(StrCat("__constant__ int c", Suffix(program_), "[] = {",
                absl::StrJoin(program_.constants, ", "), "};"));
    Line(StrCat("__global__ void ", KernelName(program_),
                "(int* out, float* fout, int* acc, int* gx, const int* in, const float* fin, "
                "int n, unsigned p, float q) {"));
    Arrays();
    Indices();
    for (size_t i = 0; i < program_.shared.size(); ++i) {
      Line(StrCat("  for (int i = t; i < ", program_.shared_size, "; i += nt) s", i, "[i] = (",
                  NameOf(program_.shared[i].type), ")(i * ", 3 + 2 * i, ");"));
    }
    if (!program_.shared.empty()) Line("  __syncthreads();");
    for (size_t i = 0; i < program_.locals.size(); ++i)
      Line(StrCat("  for (int i = 0; i < 8; ++i) l", i, "[i] = (", NameOf(program_.locals[i]),
                  ")(i + t);"));
    Body(program_.body);
    Line("}");
  }

  std::string text;

 private:
  void Line(const std::string& line) { absl::StrAppend(&text, line, "\n"); }

  void Arrays() {
    for (size_t i = 0; i < program_.shared.size(); ++i) {
      const SharedArray& array = program_.shared[i];
      const char* type = NameOf(array.type);
      switch (array.where) {
        case SharedArray::Where::kStatic:
          Line(StrCat("  __shared__ ", type, " s", i, "[", program_.shared_size, "];"));
          break;
        case SharedArray::Where::kDynamic:
          Line(StrCat("  extern __shared__ ", type, " d", Suffix(program_), "[];"));
          Line(StrCat("  ", type, "* s", i, " = d", Suffix(program_), ";"));
          break;
        case SharedArray::Where::kGlobal:
          Line(StrCat("  int* s", i,
                      " = gx + (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)) * ",
                      program_.shared_size, ";"));
      }
    }
    for (size_t i = 0; i < program_.locals.size(); ++i)
      Line(StrCat("  ", NameOf(program_.locals[i]), " l", i, "[8];"));
  }

  void Indices() {
    if (program_.flat) {
      Line("  const int t = threadIdx.x, nt = blockDim.x;");
      Line("  const int g = blockIdx.x * blockDim.x + threadIdx.x;");
      return;
    }
    Line("  const int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);");
    Line("  const int nt = blockDim.x * blockDim.y * blockDim.z;");
    Line(
        "  const int g = (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)) * nt + "
        "t;");
  }

  std::string Variable(int index) const {
    constexpr const char* kNames[] = {"t", "g", "n", "p", "q"};
    return in_helper_ || index >= kFirstOwn ? StrCat("v", index) : kNames[index];
  }

  static std::string Constant(Type type, Bits bits) {
    switch (type) {
      case Type::kBool:
        return bits != 0 ? "true" : "false";
      case Type::kU32:
        return StrCat(static_cast<uint32_t>(bits), "u");
      case Type::kI64:
        return StrCat("(long long)", bits, "ull");
      case Type::kF32:
        return absl::StrFormat("(%af)", double{std::bit_cast<float>(static_cast<uint32_t>(bits))});
      case Type::kF64:
        return absl::StrFormat("(%a)", std::bit_cast<double>(bits));
      default:
        return StrCat("(int)", static_cast<uint32_t>(bits), "u");
    }
  }

  static std::string Convert(Type from, Type to, const std::string& x) {
    if (IsReal(from) && !IsReal(to) && to != Type::kBool)
      return StrCat("(", NameOf(to), ")fz_int(", x, ")");
    return StrCat("(", NameOf(to), ")(", x, ")");
  }

  static std::string Infix(const std::string& a, const char* op, const std::string& b) {
    return StrCat("(", a, " ", op, " ", b, ")");
  }

  std::string BinaryText(const Expression& e) const {
    const Type type = e.args[0].type;
    const std::string a = Text(e.args[0]), b = Text(e.args[1]);
    const bool real = IsReal(type), is_signed = type == Type::kI32 || type == Type::kI64;
    const char* wide = type == Type::kI64 ? "unsigned long long" : "unsigned";
    auto wrapped = [&](const char* op) {
      if (!is_signed) return Infix(a, op, b);
      return StrCat("(", NameOf(type), ")((", wide, ")", a, " ", op, " (", wide, ")", b, ")");
    };
    const std::string low_a = StrCat("(", a, " & 1023)"), low_b = StrCat("(", b, " & 1023)");
    const std::string divisor = real        ? b
                                : is_signed ? StrCat("((", b, " & 1023) + 1)")
                                            : StrCat("(", b, " | 1u)");
    const std::string count = StrCat("(", b, " & ", SizeOf(type) * 8 - 1, ")");
    const bool flag = type == Type::kBool;
    switch (e.op) {
      case Op::kAdd:
        return wrapped("+");
      case Op::kSub:
        return wrapped("-");
      case Op::kMul:
        return wrapped("*");
      case Op::kAddSmall:
        return Infix(low_a, "+", low_b);
      case Op::kMulSmall:
        return Infix(low_a, "*", low_b);
      case Op::kDiv:
        return Infix(a, "/", divisor);
      case Op::kRem:
        return Infix(a, "%", divisor);
      case Op::kAnd:
        return Infix(a, flag ? "&&" : "&", b);
      case Op::kOr:
        return Infix(a, flag ? "||" : "|", b);
      case Op::kXor:
        return Infix(a, flag ? "!=" : "^", b);
      case Op::kShl:
        if (!is_signed) return Infix(a, "<<", count);
        return StrCat("(", NameOf(type), ")((", wide, ")", a, " << ", count, ")");
      case Op::kShr:
        return Infix(a, ">>", count);
      case Op::kMin:
        return StrCat("fz_min<", NameOf(type), ">(", a, ", ", b, ")");
      case Op::kMax:
        return StrCat("fz_max<", NameOf(type), ">(", a, ", ", b, ")");
      case Op::kLess:
        return Infix(a, "<", b);
      case Op::kLessEqual:
        return Infix(a, "<=", b);
      default:
        return Infix(a, "==", b);
    }
  }

  std::string List(const Expression& e) const {
    std::vector<std::string> args;
    for (const Expression& arg : e.args) args.push_back(Text(arg));
    return absl::StrJoin(args, ", ");
  }

  std::string Text(const Expression& e) const {
    auto arg = [&](int i) { return Text(e.args[i]); };
    switch (e.op) {
      case Op::kConstant:
        return Constant(e.type, e.bits);
      case Op::kVariable:
        return Variable(e.index);
      case Op::kBuiltin: {
        constexpr const char* kNames[] = {"threadIdx", "blockIdx", "blockDim", "gridDim"};
        return StrCat(kNames[e.index / 3], ".", std::string(1, "xyz"[e.index % 3]));
      }
      case Op::kNot:
        return StrCat(e.type == Type::kBool ? "!" : "~", "(", arg(0), ")");
      case Op::kNegate:
        if (e.type == Type::kI32) return StrCat("(int)(0u - (unsigned)", arg(0), ")");
        if (e.type == Type::kI64)
          return StrCat("(long long)(0ull - (unsigned long long)", arg(0), ")");
        return StrCat("(-(", arg(0), "))");
      case Op::kPopCount:
        return StrCat("__popc(", arg(0), ")");
      case Op::kSquareRoot:
        return e.type == Type::kF32 ? StrCat("sqrtf(fabsf(", arg(0), "))")
                                    : StrCat("sqrt(fabs(", arg(0), "))");
      case Op::kFloor:
        return StrCat(e.type == Type::kF32 ? "floorf(" : "floor(", arg(0), ")");
      case Op::kFusedMultiplyAdd:
        return StrCat(e.type == Type::kF32 ? "fmaf(" : "fma(", List(e), ")");
      case Op::kSelect:
        return StrCat("(", arg(0), " ? ", arg(1), " : ", arg(2), ")");
      case Op::kCast:
        return Convert(e.args[0].type, e.type, arg(0));
      case Op::kBits:
        return StrCat("fz_bits(", arg(0), ")");
      case Op::kInput:
        return StrCat("in[", arg(0), " & ", kInputSize - 1, "]");
      case Op::kRealInput:
        return StrCat("fin[", arg(0), " & ", kInputSize - 1, "]");
      case Op::kInputNear:
        return StrCat("in[g + ", e.bits, " * ", arg(0), "]");
      case Op::kRealInputNear:
        return StrCat("fin[g + ", e.bits, " * ", arg(0), "]");
      case Op::kConstantMemory:
        return StrCat("c", Suffix(program_), "[", arg(0), " & 7]");
      case Op::kLocal:
        return StrCat("l", e.index, "[", arg(0), " & 7]");
      case Op::kShared:
        return StrCat("s", e.index, "[", arg(0), "]");
      case Op::kOwn:
        return StrCat("out[", e.index, " * n + g]");
      case Op::kRealOwn:
        return StrCat("fout[", e.index, " * n + g]");
      case Op::kCall:
        return StrCat("h", e.index, Suffix(program_), "(", List(e), ")");
      case Op::kShuffle:
        return StrCat("__shfl_sync(", List(e), ")");
      case Op::kShuffleUp:
        return StrCat("__shfl_up_sync(", arg(0), ", ", arg(1), ", ", arg(2), " & 31)");
      case Op::kShuffleDown:
        return StrCat("__shfl_down_sync(", arg(0), ", ", arg(1), ", ", arg(2), " & 31)");
      case Op::kShuffleXor:
        return StrCat("__shfl_xor_sync(", arg(0), ", ", arg(1), ", ", arg(2), " & 31)");
      case Op::kBallot:
        return StrCat("__ballot_sync(", List(e), ")");
      case Op::kAny:
        return StrCat("__any_sync(", List(e), ")");
      case Op::kAll:
        return StrCat("__all_sync(", List(e), ")");
      case Op::kReduceAdd:
        return StrCat("__reduce_add_sync(", List(e), ")");
      case Op::kCountThreads:
        return StrCat("__syncthreads_count(", arg(0), ")");
      case Op::kAnyThread:
        return StrCat("__syncthreads_or(", arg(0), ")");
      case Op::kAllThreads:
        return StrCat("__syncthreads_and(", arg(0), ")");
      default:
        return BinaryText(e);
    }
  }

  void Body(const std::vector<Statement>& body) {
    indent_ += 2;
    for (const Statement& statement : body) Write(statement);
    indent_ -= 2;
  }
  void Put(const std::string& line) { Line(std::string(indent_, ' ') + line); }

  void WriteAtomic(const Statement& s, const std::string& place, Type type) {
    constexpr const char* kNames[] = {"Add", "Min", "Max", "And", "Or", "Xor"};
    const char* cast = type == Type::kI64 ? "long long" : NameOf(type);
    Put(StrCat("atomic", kNames[s.extra], "(&", place, ", (", cast, ")", Text(s.args[1]), ");"));
  }

  void Write(const Statement& s) {
    switch (s.what) {
      case Do::kDeclare:
        Put(StrCat(NameOf((*types_)[s.index]), " v", s.index, " = ", Text(s.args[0]), ";"));
        break;
      case Do::kAssign:
        Put(StrCat("v", s.index, " = ", Text(s.args[0]), ";"));
        break;
      case Do::kStore:
        Put(StrCat("s", s.index, "[", Text(s.args[0]), "] = ", Text(s.args[1]), ";"));
        break;
      case Do::kLocalStore:
        Put(StrCat("l", s.index, "[", Text(s.args[0]), " & 7] = ", Text(s.args[1]), ";"));
        break;
      case Do::kOwnStore:
        Put(StrCat("out[", s.index, " * n + g] = ", Text(s.args[0]), ";"));
        break;
      case Do::kRealOwnStore:
        Put(StrCat("fout[", s.index, " * n + g] = ", Text(s.args[0]), ";"));
        break;
      case Do::kAtomic:
        WriteAtomic(s, StrCat("s", s.index, "[", Text(s.args[0]), "]"),
                    program_.shared[s.index].type);
        break;
      case Do::kGlobalAtomic:
        WriteAtomic(s, StrCat("acc[", s.extra, " + 6 * (", Text(s.args[0]), " & 7)]"), Type::kI32);
        break;
      case Do::kTicket:
        Put(StrCat("{ unsigned z = (unsigned)atomicAdd(&s", s.index, "[", Text(s.args[0]), "], (",
                   NameOf(program_.shared[s.index].type),
                   ")1); atomicAdd(&acc[0], (int)(z * z)); }"));
        break;
      case Do::kIf:
        Put(StrCat("if (", Text(s.args[0]), ") {"));
        Body(s.bodies[0]);
        if (!s.bodies[1].empty()) {
          Put("} else {");
          Body(s.bodies[1]);
        }
        Put("}");
        break;
      case Do::kFor:
        Put(StrCat("for (int v", s.index, " = ", Text(s.args[0]), "; v", s.index, " < ",
                   Text(s.args[1]), "; v", s.index, " += ", s.extra, ") {"));
        Body(s.bodies[0]);
        Put("}");
        break;
      case Do::kDoWhile:
        Put(StrCat("int v", s.index, " = 0;"));
        Put("do {");
        Body(s.bodies[0]);
        Put(StrCat("} while (++v", s.index, " < ", s.extra, " && ", Text(s.args[0]), ");"));
        break;
      case Do::kSwitch:
        Put(StrCat("switch ((unsigned)(", Text(s.args[0]), ") % ", s.bodies.size(), "u) {"));
        for (size_t i = 0; i < s.bodies.size(); ++i) {
          Put(i + 1 == s.bodies.size() ? "default: {" : StrCat("case ", i, ": {"));
          Body(s.bodies[i]);
          Put(s.extra >> i & 1 ? "}" : "} break;");
        }
        Put("}");
        break;
      case Do::kBreak:
        Put(StrCat("if (", Text(s.args[0]), ") break;"));
        break;
      case Do::kContinue:
        Put(StrCat("if (", Text(s.args[0]), ") continue;"));
        break;
      case Do::kReturn:
        Put(StrCat("if (", Text(s.args[0]), ") return", in_helper_ ? " " + Text(s.args[1]) : "",
                   ";"));
        break;
      case Do::kBarrier:
        Put("__syncthreads();");
        break;
      case Do::kWarpBarrier:
        Put("__syncwarp();");
    }
  }

  const Program& program_;
  const std::vector<Type>* types_ = nullptr;
  bool in_helper_ = false;
  int indent_ = 0;
};

}  // namespace

std::string CommonText() {
  return R"(template <class T> __device__ T fz_min(T a, T b) { return a < b ? a : b; }
template <class T> __device__ T fz_max(T a, T b) { return a > b ? a : b; }
__device__ int fz_int(float x) { return x > -1000000.0f && x < 1000000.0f ? (int)x : 7; }
__device__ int fz_int(double x) { return x > -1000000.0 && x < 1000000.0 ? (int)x : 7; }
__device__ int fz_bits(float x) { return x == x ? __float_as_int(x) : 1; }
__device__ int fz_bits(double x) {
  long long b = __double_as_longlong(x);
  return x == x ? (int)(unsigned)(b ^ b >> 32) : 1;
}
)";
}

std::string KernelName(const Program& program) { return "k" + Suffix(program); }

std::string KernelText(const Program& program) {
  Writer writer(program);
  writer.Helpers();
  writer.Kernel();
  return writer.text;
}

}  // namespace stride::cpucuda::fuzz
