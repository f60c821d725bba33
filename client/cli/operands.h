// Command-line arguments become operands of operations.
#pragma once

#include <vector>

#include "client/cli/argument.h"
#include "client/cli/context.h"

namespace stride::cli {

// Where an operation's inputs come from.
class OperandSource {
 public:
  virtual ~OperandSource() = default;
  // A file, a named array or a number. `c_order`: kernels see bare memory, so a transposed view
  // will not do.
  virtual Result<Operand> Resolve(const Argument& argument, bool c_order) = 0;
};

// Uploads files into the session. Keeps what it uploaded until it goes, and the time that took.
class UploadingSource : public OperandSource {
 public:
  UploadingSource(Context& context, Client& client) : context_(context), client_(client) {}
  Result<Operand> Resolve(const Argument& argument, bool c_order) override;
  // Puts one file; gives the array away.
  Result<Array> Upload(const std::string& path, bool c_order);
  std::chrono::nanoseconds upload_time() const { return upload_time_; }

 private:
  Context& context_;
  Client& client_;
  std::chrono::nanoseconds upload_time_{0};
};

// For jobs: named arrays and numbers only, since files would die with this command's session.
class NamedSource : public OperandSource {
 public:
  Result<Operand> Resolve(const Argument& argument, bool c_order) override;
};

}  // namespace stride::cli
