#include "server/broker/content_key.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace stride::broker {
namespace {

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

std::string Sha256(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest), size});
}

std::string SerializeCode(const wire::Code& code) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  code.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

bool HasClientText(const wire::Code& code) {
  const auto calls = [](const wire::ScalarProgram& program) {
    return program.functions_size() > 0;
  };
  if (code.has_source() || code.routine().has_function()) return true;
  for (const auto& program : code.routine().programs()) {
    if (calls(program.program())) return true;
  }
  return calls(code.elementwise().program()) || calls(code.reduce().map()) ||
         calls(code.reduce().combine_program()) || calls(code.reduce().finish());
}

std::string ContentKey(std::string_view target, std::string_view toolchain,
                       std::string_view serialized_code) {
  // Lengths separate the parts.
  return Sha256(absl::StrCat("stride compiled code 1\n", target.size(), " ", ToAbsl(target), " ",
                             toolchain.size(), " ", ToAbsl(toolchain), "\n",
                             ToAbsl(serialized_code)));
}

}  // namespace stride::broker
