#include "tests/unit/worker/codegen/native_modules.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "server/worker/codegen/program_text.h"

namespace stride::testing {

std::string JoinTexts(const std::vector<std::string>& texts, bool cuda) {
  auto target = cuda ? codegen::Target::kCuda : codegen::Target::kCpu;
  std::string with_complex = codegen::Preamble(target, {DType::kComplex64}),
              plain = codegen::Preamble(target, {});
  std::string joined = with_complex;
  for (size_t i = 0; i < texts.size(); ++i) {
    absl::string_view rest = texts[i];
    if (!absl::ConsumePrefix(&rest, with_complex)) absl::ConsumePrefix(&rest, plain);
    std::string number = absl::StrCat("_", i, "(");
    absl::StrAppend(
        &joined, "namespace text", i, " {\n",
        absl::StrReplaceAll(rest, {{"stride_elementwise(", "stride_elementwise" + number},
                                   {"stride_run(", "stride_run" + number},
                                   {"stride_reduce(", "stride_reduce" + number},
                                   {"stride_reduce_finish(", "stride_reduce_finish" + number},
                                   {"stride_matmul(", "stride_matmul" + number},
                                   {"stride_small_matmul(", "stride_small_matmul" + number},
                                   {"stride_byte_matmul(", "stride_byte_matmul" + number},
                                   {"stride_blocks(", "stride_blocks" + number}}),
        "}\n");
  }
  return joined;
}

absl::StatusOr<NativeModules> NativeModules::Compile(const std::vector<std::string>& texts) {
  std::string folder = (std::filesystem::temp_directory_path() / "stride_codegen_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return absl::InternalError("no temporary folder");
  std::string source = folder + "/text.cc", object = folder + "/text.so", log = folder + "/log";
  std::ofstream(source) << "#include <math.h>\n" << JoinTexts(texts, false);
  std::string command =
      absl::StrCat(STRIDE_TEST_COMPILER,
                   " -std=c++17 -O1 -fno-math-errno -ffp-contract=off -w -fPIC -shared -o ", object,
                   " ", source, " > ", log, " 2>&1");
  int result = std::system(command.c_str());
  std::stringstream text;
  text << std::ifstream(log).rdbuf();
  void* library = result == 0 ? dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (std::getenv("STRIDE_KEEP_TEXTS") == nullptr) std::filesystem::remove_all(folder);
  if (library == nullptr)
    return absl::InternalError(
        absl::StrCat("the text does not compile: ", text.str().substr(0, 4000)));
  return NativeModules(library);
}

void* NativeModules::Find(size_t i, const std::string& name) const {
  return dlsym(library_, absl::StrCat(name, "_", i).c_str());
}

}  // namespace stride::testing
