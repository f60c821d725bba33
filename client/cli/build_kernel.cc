#include <fstream>
#include <sstream>

#include "client/cli/build_operation.h"

namespace stride::cli {
namespace {

Error Bad(std::string message) {
  return {.code = Code::kInvalidArgument, .message = std::move(message)};
}

Result<Dim3> ParseDim3(const CommandLine& line, const std::string& option) {
  const auto text = line.Value(option);
  if (!text) return Bad("--" + option + " is missing");
  const auto extents = ParseExtents(*text);
  if (!extents || extents->size() > 3)
    return Bad("--" + option + " " + *text + " is not one to three sizes such as 32 or 32,4");
  Dim3 dim;
  uint32_t* const members[] = {&dim.x, &dim.y, &dim.z};
  for (size_t i = 0; i < extents->size(); ++i) {
    if ((*extents)[i] < 1 || (*extents)[i] > UINT32_MAX)
      return Bad("--" + option + " " + *text + ": each size is 1 to 4294967295");
    *members[i] = static_cast<uint32_t>((*extents)[i]);
  }
  return dim;
}

Result<void> ReadCode(const std::string& path, KernelOptions& options) {
  if (path.find("/modules/") != std::string::npos && path.starts_with("tenants/")) {
    options.code = path;
    options.code_kind = CodeKind::kModule;
    return {};
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{.code = Code::kNotFound, .message = path + " cannot be read"};
  std::stringstream text;
  text << file.rdbuf();
  options.code = text.str();
  if (path.ends_with(".ptx")) {
    options.code_kind = CodeKind::kPtx;
  } else if (path.ends_with(".cubin") || path.ends_with(".fatbin")) {
    options.code_kind = CodeKind::kBinary;
  } else {
    options.code_kind = CodeKind::kSource;
  }
  return {};
}

Result<KernelOptions> ReadOptions(const std::string& path, const CommandLine& line) {
  KernelOptions options;
  if (auto read = ReadCode(path, options); !read) return read.error();
  const auto entry = line.Value("entry");
  if (!entry) return Bad("--entry is missing: the name of the __global__ function");
  options.entry = *entry;
  auto grid = ParseDim3(line, "grid");
  if (!grid) return grid.error();
  auto block = ParseDim3(line, "block");
  if (!block) return block.error();
  options.grid = *grid;
  options.block = *block;
  options.compiler_options = line.Values("option");
  if (const auto shared = line.Value("shared")) {
    const auto bytes = ParseExtents(*shared);
    if (!bytes || bytes->size() != 1 || (*bytes)[0] > UINT32_MAX)
      return Bad("--shared " + *shared + " is not a number of bytes");
    options.shared_memory_bytes = static_cast<uint32_t>((*bytes)[0]);
  }
  options.cooperative = line.Has("cooperative");
  return options;
}

Result<GlobalValue> ReadGlobal(const std::string& text, UploadingSource& source) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos)
    return Bad("--global " + text + " is not NAME=VALUE");
  auto argument = ParseArgument(std::string_view(text).substr(equals + 1));
  if (!argument) return argument.error();
  if (argument->kind == Argument::Kind::kOut || argument->kind == Argument::Kind::kInOut)
    return Bad("--global " + text + ": a variable's value is an array or a number");
  auto value = source.Resolve(*argument, /*c_order=*/true);
  if (!value) return value.error();
  return GlobalValue{.name = text.substr(0, equals), .value = *value};
}

}  // namespace

std::vector<OptionSpec> KernelOptionSpecs() {
  return {{"entry", 0, "NAME",
           "the __global__ function; for a template a name expression such as 'scale<float>'"},
          {"grid", 0, "X[,Y[,Z]]", "blocks"},
          {"block", 0, "X[,Y[,Z]]", "threads of a block"},
          {"shared", 0, "BYTES", "dynamic shared memory of a block"},
          {"global", 0, "NAME=VALUE",
           "value of a __constant__ or __device__ variable: an array or a number; may be "
           "repeated"},
          {"cooperative", 0, "", "all blocks run at once and may meet (this_grid().sync())"},
          {"option", 0, "OPTION", "compiler option, such as --option=-DN=4; may be repeated"}};
}

Result<BuiltKernel> BuildKernel(std::span<const std::string> arguments, const CommandLine& line,
                                UploadingSource& source) {
  if (arguments.empty()) return Bad("The kernel's file is missing");
  auto options = ReadOptions(arguments[0], line);
  if (!options) return options.error();
  std::vector<std::optional<Array>> results;
  for (const auto& text : arguments.subspan(1)) {
    auto argument = ParseArgument(text);
    if (!argument) return argument.error();
    if (argument->kind == Argument::Kind::kOut) {
      options->arguments.push_back(KernelArgument::Out(argument->spec));
      results.emplace_back();
    } else if (argument->kind == Argument::Kind::kInOut) {
      auto array = source.Upload(argument->text, /*c_order=*/true);
      if (!array) return array.error();
      options->arguments.push_back(KernelArgument(*array));
      results.emplace_back(std::move(*array));
    } else {
      auto operand = source.Resolve(*argument, /*c_order=*/true);
      if (!operand) return operand.error();
      options->arguments.push_back(KernelArgument(*operand));
    }
  }
  for (const std::string& text : line.Values("global")) {
    auto global = ReadGlobal(text, source);
    if (!global) return global.error();
    options->globals.push_back(*std::move(global));
  }
  return BuiltKernel{Operation::Kernel(*options), std::move(results)};
}

}  // namespace stride::cli
