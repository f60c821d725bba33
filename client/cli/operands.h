// Resolves command-line arguments to operands.
#pragma once

#include <vector>

#include "client/cli/argument.h"
#include "client/cli/context.h"

namespace stride::cli {

// Source of an operation's inputs.
class OperandSource {
 public:
  virtual ~OperandSource() = default;
  // Resolves a file, a named array or a number. Kernels need `c_order`: they read raw memory, so
  // that a transposed view would be wrong.
  virtual Result<Operand> Resolve(const Argument& argument, bool c_order) = 0;
};

// Uploads files into the session and measures the time of the uploads.
class UploadingSource : public OperandSource {
 public:
  UploadingSource(Context& context, Client& client) : context_(context), client_(client) {}
  Result<Operand> Resolve(const Argument& argument, bool c_order) override;
  // Uploads one file.
  Result<Array> Upload(const std::string& path, bool c_order);
  std::chrono::nanoseconds upload_time() const { return upload_time_; }

 private:
  Context& context_;
  Client& client_;
  std::chrono::nanoseconds upload_time_{0};
};

// Operands of jobs: only named arrays and numbers, since uploaded files would end with this
// session.
class NamedSource : public OperandSource {
 public:
  Result<Operand> Resolve(const Argument& argument, bool c_order) override;
};

}  // namespace stride::cli
