#include "bench/device/device_operation.h"

#include "bench/device/check.h"
#include "server/ops/bind.h"

namespace stride::bench {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t RoundUp(int64_t bytes) {
  return (static_cast<uint64_t>(bytes) + kPage - 1) / kPage * kPage;
}

}  // namespace

DeviceOperation::DeviceOperation(const v1::Operation& operation,
                                 const std::vector<ArrayInfo>& inputs, bool one_buffer) {
  const std::vector<ops::Input> arrays(inputs.begin(), inputs.end());
  plan_ = Expect(ops::PlanOperation(operation, arrays, {ops::Input()}));
  auto place = [this](const ArrayInfo& array) {
    offsets_.push_back(size_);
    size_ += RoundUp(array.size_bytes());
  };
  for (const ArrayInfo& array : inputs) {
    if (one_buffer && !offsets_.empty())
      offsets_.push_back(offsets_[0]);
    else
      place(array);
  }
  place(output());
}

wire::Task DeviceOperation::TaskIn(uint64_t arena, uint64_t module) const {
  wire::Task task = plan_.task;
  std::vector<ops::Location> slots;
  for (uint64_t offset : offsets_) slots.push_back({arena, offset});
  ops::Bind(&task, slots);
  if (code()) ops::SetModule(&task, module);
  return task;
}

v1::Operation ReductionOf(v1::Reduction::Function function, std::vector<int32_t> axes) {
  v1::Operation operation;
  operation.mutable_reduction()->set_function(function);
  operation.mutable_reduction()->mutable_input()->set_handle(1);
  for (int32_t axis : axes) operation.mutable_reduction()->add_axes(axis);
  operation.add_outputs()->set_handle(100);
  return operation;
}

v1::Operation MatmulOf() {
  v1::Operation operation;
  operation.mutable_matmul()->mutable_left()->set_handle(1);
  operation.mutable_matmul()->mutable_right()->set_handle(2);
  operation.add_outputs()->set_handle(100);
  return operation;
}

v1::Operation ExpressionOf(const std::string& text, int num_inputs) {
  v1::Operation operation;
  operation.mutable_expression()->set_text(text);
  for (int i = 0; i < num_inputs; ++i) {
    v1::Operand& operand =
        (*operation.mutable_expression()->mutable_inputs())[std::string(1, "xyz"[i])];
    operand.set_handle(i + 1);
  }
  operation.add_outputs()->set_handle(100);
  return operation;
}

}  // namespace stride::bench
