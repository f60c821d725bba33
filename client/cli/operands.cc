#include "client/cli/operands.h"

#include <algorithm>

#include "client/cli/progress.h"
#include "client/npy/reader.h"

namespace stride::cli {

Result<Array> UploadingSource::Upload(const std::string& path, bool c_order) {
  auto file = npy::Reader::Open(path);
  if (!file) return file.error();
  const auto start = std::chrono::steady_clock::now();
  const bool reversed = file->fortran_order() && file->spec().shape.size() > 1;
  ArraySpec spec = file->spec();
  std::vector<std::byte> ordered;
  std::span<const std::byte> data = file->data();
  if (reversed && c_order) {
    ordered = file->InCOrder();
    data = ordered;
  } else if (reversed) {
    // Swap the axes: the bytes are then in C order, and the transposed view below costs nothing.
    std::reverse(spec.shape.begin(), spec.shape.end());
  }
  Progress progress(path, static_cast<int64_t>(data.size()), !context_.quiet());
  auto options = context_.Call<PutOptions>();
  options.progress = [&progress](int64_t bytes) { progress.Add(bytes); };
  options.device = context_.device();
  auto array = client_.PutBytes(data, spec, options);
  if (!array) return array.error();
  upload_time_ += std::chrono::steady_clock::now() - start;
  if (reversed && !c_order) return client_.Transpose(*array);
  return array;
}

Result<Operand> UploadingSource::Resolve(const Argument& argument, bool c_order) {
  if (argument.kind == Argument::Kind::kNumber) return argument.NumberOperand();
  if (argument.kind == Argument::Kind::kNamed) return Operand::Named(argument.text);
  auto array = Upload(argument.text, c_order);
  if (!array) return array.error();
  return Operand(*array);
}

Result<Operand> NamedSource::Resolve(const Argument& argument, bool) {
  if (argument.kind == Argument::Kind::kNumber) return argument.NumberOperand();
  if (argument.kind == Argument::Kind::kNamed) return Operand::Named(argument.text);
  return Error{.code = Code::kInvalidArgument,
               .message =
                   "A job outlives this command, so it works on arrays that the daemon keeps: "
                   "first `stride put " +
                   argument.text + " NAME`, then write @NAME"};
}

}  // namespace stride::cli
