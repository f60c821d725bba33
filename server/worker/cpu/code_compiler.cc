#include "server/worker/cpu/code_compiler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cpucuda/cpucuda.h"
#include "llvm/Config/llvm-config.h"
#include "server/base/executable_stamp.h"
#include "server/ops/block_loops.h"
#include "server/store/dtype.h"
#include "server/worker/codegen/client_text.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/launch_abi.h"

namespace stride::cpu {
namespace {

absl::StatusOr<cpucuda::CompileRequest> RequestFor(const wire::Source& source) {
  if (source.kind() != wire::Source::KIND_CUDA_CPP) {
    return absl::UnimplementedError(
        "the CPU device takes kernels as CUDA C++ source, not as PTX or a binary");
  }
  cpucuda::CompileRequest request;
  request.kind = cpucuda::SourceKind::kCudaKernels;
  request.source = source.text();
  request.options.assign(source.options().begin(), source.options().end());
  request.entries.assign(source.entries().begin(), source.entries().end());
  request.globals.assign(source.globals().begin(), source.globals().end());
  return request;
}

absl::StatusOr<cpucuda::CompileRequest> RequestFor(const wire::Code& code) {
  if (code.has_source()) return RequestFor(code.source());
  auto text = codegen::EmitCpu(code);
  if (!text.ok()) return text.status();
  cpucuda::CompileRequest request;
  request.kind = cpucuda::SourceKind::kNativeLoops;
  request.source = *std::move(text);
  if (code.has_reduce()) {
    request.entries = {codegen::kReduceEntry, codegen::kReduceFinishEntry};
  } else if (code.has_routine()) {
    const auto phases = codegen::RoutinePhases(code.routine().routine(), {});
    for (size_t i = 0; i < phases.size(); ++i)
      request.entries.push_back(codegen::PhaseEntry(static_cast<int>(i)));
  } else if (code.has_block_loops()) {
    for (const ops::BlockLoop& loop : ops::BlockLoops())
      request.entries.push_back(ops::NameOf(loop));
  } else {
    request.entries = {codegen::kRunEntry};
  }
  return request;
}

// 0 for other types.
int32_t DTypeOf(std::string_view type) {
  static constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"bool", DType::kBool},
      {"float", DType::kFloat32},
      {"double", DType::kFloat64},
      {"__half", DType::kFloat16},
      {"__nv_bfloat16", DType::kBFloat16},
      {"signed char", DType::kInt8},
      {"char", DType::kInt8},
      {"short", DType::kInt16},
      {"int", DType::kInt32},
      {"long", DType::kInt64},
      {"long long", DType::kInt64},
      {"unsigned char", DType::kUInt8},
      {"unsigned short", DType::kUInt16},
      {"unsigned int", DType::kUInt32},
      {"unsigned long", DType::kUInt64},
      {"unsigned long long", DType::kUInt64},
      {"float2", DType::kComplex64},
      {"double2", DType::kComplex128}};
  for (const auto& [name, dtype] : kTypes) {
    if (type == name) return static_cast<int32_t>(dtype);
  }
  return 0;
}

wire::Parameter::Kind KindOf(const cpucuda::KernelParameter& parameter) {
  switch (parameter.kind) {
    case cpucuda::KernelParameter::Kind::kPointer:
      return wire::Parameter::KIND_POINTER;
    case cpucuda::KernelParameter::Kind::kInteger:
      return parameter.type == "bool" ? wire::Parameter::KIND_BOOL : wire::Parameter::KIND_INTEGER;
    case cpucuda::KernelParameter::Kind::kFloat:
      return wire::Parameter::KIND_FLOAT;
    case cpucuda::KernelParameter::Kind::kAggregate:
      break;
  }
  return wire::Parameter::KIND_AGGREGATE;
}

void Describe(const cpucuda::CompiledKernel& kernel, wire::KernelDescription* description) {
  description->set_entry(kernel.name);
  description->set_symbol(kernel.symbol);
  description->set_parameters_known(true);
  description->set_static_shared_bytes(kernel.static_shared_bytes);
  description->set_max_threads_per_block(kernel.max_threads_per_block);
  description->set_private_bytes_per_thread(kernel.private_bytes_per_thread);
  description->set_per_thread(kernel.form == cpucuda::ThreadForm::kPerThread);
  for (const cpucuda::KernelParameter& parameter : kernel.parameters) {
    wire::Parameter* out = description->add_parameters();
    out->set_kind(KindOf(parameter));
    out->set_offset(parameter.offset);
    out->set_size(parameter.size);
    out->set_type(parameter.type);
    out->set_pointee_dtype(DTypeOf(parameter.pointee));
    out->set_pointee_const(parameter.pointee_const);
    out->set_is_signed(parameter.is_signed);
  }
}

void Describe(const cpucuda::CompiledGlobal& global, wire::GlobalDescription* description) {
  description->set_name(global.name);
  description->set_symbol(global.symbol);
  description->set_size(global.size);
  description->set_constant(global.constant);
  description->set_dtype(DTypeOf(global.element));
}

}  // namespace

absl::StatusOr<worker::CompiledCode> CpuCompiler::Compile(const std::string& target,
                                                          const wire::Code& code) {
  absl::string_view cpu = target;
  if (!absl::ConsumePrefix(&cpu, "cpu:"))
    return absl::InternalError("not a target of the CPU device");
  auto request = RequestFor(code);
  if (!request.ok()) return request.status();
  // The name alone would include features that a virtual machine hides, so the processor reports
  // its own.
  auto native = NativeTarget();
  request->cpu = native.ok() && *native == target ? "native" : std::string(cpu);
  auto result = cpucuda::Compile(*request);
  if (!result.ok()) {
    // An error in a generated loop is never the client's mistake.
    bool ours = !code.has_source() && !codegen::HasClientText(code) &&
                absl::IsInvalidArgument(result.status());
    return ours ? absl::InternalError(result.status().message()) : result.status();
  }
  worker::CompiledCode compiled;
  compiled.object = std::move(result->object);
  compiled.log = std::move(result->log);
  if (code.has_source()) {
    for (const cpucuda::CompiledKernel& kernel : result->kernels)
      Describe(kernel, compiled.description.add_kernels());
    for (const cpucuda::CompiledGlobal& global : result->globals)
      Describe(global, compiled.description.add_globals());
  }
  return compiled;
}

absl::StatusOr<std::string> NativeTarget() {
  auto target = cpucuda::FindTarget("native");
  if (!target.ok()) return target.status();
  return absl::StrCat("cpu:", target->cpu);
}

std::vector<std::string> PortableTargets() {
  std::vector<std::string> targets;
  for (const std::string& cpu : cpucuda::PortableProcessors())
    targets.push_back(absl::StrCat("cpu:", cpu));
  return targets;
}

std::string ToolchainName() {
  return absl::StrCat("clang ", LLVM_VERSION_STRING, " ", ExecutableStamp());
}

}  // namespace stride::cpu
