#include "stride/operation.h"

#include <array>

#include "client/cpp/src/convert.h"
#include "client/cpp/src/operand_impl.h"
#include "client/cpp/src/operation_impl.h"
#include "client/cpp/src/status.h"
#include "stride/program.h"

namespace stride {

namespace internal {

v1::Operand Use(const Operand& operand, Operation::Impl& impl) {
  if (operand.impl().array) impl.arrays.push_back(operand.impl().array);
  return operand.impl().message;
}

}  // namespace internal

namespace {

using internal::ToProto;
using internal::Use;

// The daemon's table has more columns; a client needs only the number of results, to choose handles
// for them.
int NumUfuncOutputs(std::string_view function) {
  return function == "frexp" || function == "modf" || function == "divmod" ? 2 : 1;
}

// An extent of 0 counts as unset on the wire, which is 1; CUDA refuses such a launch.
void SetDim3(const Dim3& dim, const std::string& field, v1::Dim3* out, Operation::Impl& impl) {
  if (dim.x == 0 || dim.y == 0 || dim.z == 0) {
    impl.error =
        internal::LocalError(Code::kInvalidArgument,
                             "A kernel launch's " + field + " has an extent of 0; the least is 1");
    impl.error->violations.push_back({"operation.kernel_launch." + field, "an extent of 0"});
  }
  out->set_x(dim.x);
  out->set_y(dim.y);
  out->set_z(dim.z);
}

void AddMember(const StructMember& member, v1::KernelArgument::Member* out, Operation::Impl& impl) {
  out->set_offset_bytes(member.offset);
  if (member.array) {
    *out->mutable_array() = Use(*member.array, impl);
  } else if (member.new_array) {
    internal::ToProto(*member.new_array, out->mutable_new_array()->mutable_spec());
    ++impl.num_outputs;
  } else {
    out->set_raw(member.raw.value_or(""));
  }
}

void AddGlobal(const GlobalValue& global, v1::GlobalVariable* out, Operation::Impl& impl) {
  out->set_name(global.name);
  if (!global.value) {
    out->set_raw(global.raw.value_or(""));
    return;
  }
  const v1::Operand message = Use(*global.value, impl);
  if (message.has_scalar()) {
    *out->mutable_scalar() = message.scalar();
  } else {
    *out->mutable_array() = message;
  }
}

void AddTexture(const Texture& texture, v1::Texture* out, Operation::Impl& impl) {
  *out->mutable_array() = Use(texture.array, impl);
  if (texture.by_number) out->set_layout(v1::Texture::LAYOUT_LINEAR);
  out->mutable_extents()->Assign(texture.extents.begin(), texture.extents.end());
  out->set_pitch_bytes(texture.pitch_bytes);
  out->set_channels(texture.channels);
  for (AddressMode mode : texture.address_modes)
    out->add_address_modes(static_cast<v1::Texture::AddressMode>(mode));
  if (texture.linear_filter) out->set_filter(v1::Texture::FILTER_LINEAR);
  out->set_normalized_coordinates(texture.normalized_coordinates);
  out->set_normalized_values(texture.normalized_values);
  out->mutable_border_color()->Assign(texture.border_color.begin(), texture.border_color.end());
}

void AddArgument(const KernelArgument& argument, v1::KernelArgument* out, Operation::Impl& impl) {
  if (argument.operand) {
    const v1::Operand message = Use(*argument.operand, impl);
    if (message.has_scalar()) {
      *out->mutable_scalar() = message.scalar();
    } else {
      *out->mutable_array() = message;
    }
  } else if (argument.new_array) {
    internal::ToProto(*argument.new_array, out->mutable_new_array()->mutable_spec());
    ++impl.num_outputs;
  } else if (argument.members) {
    out->mutable_aggregate()->set_size_bytes(argument.struct_size);
    for (const StructMember& member : *argument.members)
      AddMember(member, out->mutable_aggregate()->add_members(), impl);
  } else if (argument.texture) {
    AddTexture(*argument.texture, out->mutable_texture(), impl);
  } else {
    out->set_raw(argument.raw.value_or(""));
  }
}

}  // namespace

std::optional<Reduction> ParseReduction(std::string_view name) {
  constexpr std::array<std::string_view, 13> kNames = {
      "sum",    "prod",   "min",  "max",           "mean", "any", "all",
      "argmin", "argmax", "norm", "count_nonzero", "var",  "std"};
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Reduction>(i + 1);
  }
  return std::nullopt;
}

ViewSteps::ViewSteps() : impl_(std::make_shared<Impl>()) {}

ViewSteps& ViewSteps::Slice(const stride::Slice& slice) {
  auto* step = impl_->view.add_steps()->mutable_slice();
  step->set_axis(slice.axis);
  if (slice.start) step->set_start(*slice.start);
  if (slice.stop) step->set_stop(*slice.stop);
  if (slice.step) step->set_step(*slice.step);
  step->set_index(slice.index);
  return *this;
}

ViewSteps& ViewSteps::Index(int32_t axis, int64_t at) {
  return Slice({.axis = axis, .start = at, .index = true});
}

ViewSteps& ViewSteps::Transpose(std::vector<int32_t> axes) {
  impl_->view.add_steps()->mutable_transpose()->mutable_axes()->Assign(axes.begin(), axes.end());
  return *this;
}

ViewSteps& ViewSteps::Reshape(std::vector<int64_t> shape) {
  impl_->view.add_steps()->mutable_reshape()->mutable_shape()->Assign(shape.begin(), shape.end());
  return *this;
}

ViewSteps& ViewSteps::Broadcast(std::vector<int64_t> shape) {
  impl_->view.add_steps()->mutable_broadcast()->mutable_shape()->Assign(shape.begin(), shape.end());
  return *this;
}

Operation::Operation() : impl_(std::make_unique<Impl>()) {}
Operation::Operation(const Operation& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}
Operation& Operation::operator=(const Operation& other) {
  *impl_ = Impl(*other.impl_);
  return *this;
}
Operation::Operation(Operation&&) noexcept = default;
Operation& Operation::operator=(Operation&&) noexcept = default;
Operation::~Operation() = default;

Operation Operation::Ufunc(std::string_view function, const std::vector<Operand>& inputs,
                           DataType data_type) {
  return Ufunc(function, inputs, UfuncOptions{.data_type = data_type});
}

Operation Operation::Ufunc(std::string_view function, const std::vector<Operand>& inputs,
                           const UfuncOptions& options) {
  Operation out;
  auto* ufunc = out.impl_->message.mutable_ufunc();
  ufunc->set_function(std::string(function));
  for (const Operand& input : inputs) *ufunc->add_inputs() = Use(input, *out.impl_);
  ufunc->set_data_type(ToProto(options.data_type));
  ufunc->set_casting(static_cast<v1::Casting>(options.casting));
  if (options.where) *ufunc->mutable_where() = Use(*options.where, *out.impl_);
  out.impl_->num_outputs =
      options.num_outputs > 0 ? options.num_outputs : NumUfuncOutputs(function);
  return out;
}

namespace {

void SetExpression(std::string_view text, const std::map<std::string, Operand>& inputs,
                   v1::Expression* expression, Operation::Impl& impl) {
  expression->set_text(std::string(text));
  for (const auto& [name, input] : inputs) (*expression->mutable_inputs())[name] = Use(input, impl);
}

}  // namespace

Operation Operation::Expression(std::string_view text, const std::map<std::string, Operand>& inputs,
                                DataType data_type) {
  Operation out;
  auto* expression = out.impl_->message.mutable_expression();
  SetExpression(text, inputs, expression, *out.impl_);
  expression->set_data_type(ToProto(data_type));
  return out;
}

namespace {

void SetReduction(const ReduceOptions& options, v1::Reduction* reduction, Operation::Impl& impl) {
  reduction->mutable_axes()->Assign(options.axes.begin(), options.axes.end());
  reduction->set_keep_dims(options.keep_dims);
  reduction->set_skip_nan(options.skip_nan);
  reduction->set_correction(options.correction);
  reduction->set_data_type(ToProto(options.data_type));
  if (options.initial) *reduction->mutable_initial() = options.initial->impl().message.scalar();
  if (options.where) *reduction->mutable_where() = Use(*options.where, impl);
}

}  // namespace

Operation Operation::Reduce(Reduction function, const Operand& input,
                            const ReduceOptions& options) {
  Operation out;
  auto* reduction = out.impl_->message.mutable_reduction();
  reduction->set_function(static_cast<v1::Reduction::Function>(function));
  *reduction->mutable_input() = Use(input, *out.impl_);
  SetReduction(options, reduction, *out.impl_);
  return out;
}

Operation Operation::Reduce(Reduction function, std::string_view text,
                            const std::map<std::string, Operand>& inputs,
                            const ReduceOptions& options) {
  Operation out;
  auto* reduction = out.impl_->message.mutable_reduction();
  reduction->set_function(static_cast<v1::Reduction::Function>(function));
  SetExpression(text, inputs, reduction->mutable_expression(), *out.impl_);
  SetReduction(options, reduction, *out.impl_);
  return out;
}

Operation Operation::Reduce(std::string_view function, const std::vector<Operand>& inputs,
                            const ReduceOptions& options) {
  Operation out;
  auto* reduction = out.impl_->message.mutable_reduction();
  reduction->set_function_name(std::string(function));
  for (size_t i = 0; i < inputs.size(); ++i) {
    *(i == 0 ? reduction->mutable_input() : reduction->add_more_inputs()) =
        Use(inputs[i], *out.impl_);
  }
  SetReduction(options, reduction, *out.impl_);
  return out;
}

Operation Operation::Matmul(const Operand& left, const Operand& right, DataType data_type) {
  Operation out;
  auto* matmul = out.impl_->message.mutable_matmul();
  *matmul->mutable_left() = Use(left, *out.impl_);
  *matmul->mutable_right() = Use(right, *out.impl_);
  matmul->set_data_type(ToProto(data_type));
  return out;
}

Operation Operation::Kernel(const KernelOptions& options) {
  Operation out;
  auto* launch = out.impl_->message.mutable_kernel_launch();
  switch (options.code_kind) {
    case CodeKind::kSource:
      launch->set_source(options.code);
      break;
    case CodeKind::kPtx:
      launch->set_ptx(options.code);
      break;
    case CodeKind::kBinary:
      launch->set_binary(options.code);
      break;
    case CodeKind::kModule:
      launch->set_module(options.code);
      break;
  }
  launch->set_entry(options.entry);
  for (const auto& option : options.compiler_options) launch->add_options(option);
  SetDim3(options.grid, "grid", launch->mutable_grid(), *out.impl_);
  SetDim3(options.block, "block", launch->mutable_block(), *out.impl_);
  launch->set_shared_memory_bytes(options.shared_memory_bytes);
  out.impl_->num_outputs = 0;
  for (const auto& argument : options.arguments)
    AddArgument(argument, launch->add_arguments(), *out.impl_);
  for (const auto& global : options.globals) AddGlobal(global, launch->add_globals(), *out.impl_);
  launch->set_cooperative(options.cooperative);
  return out;
}

Operation Operation::Full(const ArraySpec& spec, const Operand& value) {
  Operation out = Zeros(spec);
  *out.impl_->message.mutable_creation()->mutable_fill()->mutable_value() =
      value.impl().message.scalar();
  return out;
}

Operation Operation::Zeros(const ArraySpec& spec) {
  Operation out;
  internal::ToProto(spec, out.impl_->message.mutable_creation()->mutable_fill()->mutable_spec());
  return out;
}

Operation Operation::Empty(const ArraySpec& spec) {
  Operation out;
  internal::ToProto(spec, out.impl_->message.mutable_creation()->mutable_empty()->mutable_spec());
  return out;
}

Operation Operation::Arange(const Operand& start, const Operand& stop, const Operand& step,
                            DataType data_type) {
  Operation out;
  auto* range = out.impl_->message.mutable_creation()->mutable_range();
  *range->mutable_start() = start.impl().message.scalar();
  *range->mutable_stop() = stop.impl().message.scalar();
  *range->mutable_step() = step.impl().message.scalar();
  range->set_data_type(ToProto(data_type));
  return out;
}

Operation Operation::Linspace(const Operand& start, const Operand& stop, int64_t count,
                              bool exclude_endpoint, DataType data_type) {
  Operation out;
  auto* space = out.impl_->message.mutable_creation()->mutable_linear_space();
  *space->mutable_start() = start.impl().message.scalar();
  *space->mutable_stop() = stop.impl().message.scalar();
  space->set_count(count);
  space->set_exclude_endpoint(exclude_endpoint);
  space->set_data_type(ToProto(data_type));
  return out;
}

Operation Operation::Copy(const Operand& input, DataType data_type) {
  Operation out;
  auto* copy = out.impl_->message.mutable_copy();
  *copy->mutable_input() = Use(input, *out.impl_);
  copy->set_data_type(ToProto(data_type));
  return out;
}

Operation Operation::Move(const Operand& input) {
  Operation out = Copy(input);
  out.impl_->message.mutable_copy()->set_move(true);
  return out;
}

Operation Operation::Call(const Program& program, const std::vector<Operand>& inputs) {
  Operation operation;
  v1::ProgramCall* call = operation.impl_->message.mutable_program_call();
  call->set_program(program.name);
  for (const Operand& input : inputs) *call->add_inputs() = Use(input, *operation.impl_);
  operation.impl_->num_outputs = program.num_outputs;
  return operation;
}

namespace {

void ToProto(const Body& body, v1::Body* out, Operation::Impl& impl) {
  out->mutable_inputs()->Add(body.inputs.begin(), body.inputs.end());
  out->mutable_outputs()->Add(body.outputs.begin(), body.outputs.end());
  for (const Operation& operation : body.operations) {
    if (operation.impl().error) impl.error = operation.impl().error;
    *out->add_operations() = operation.impl().message;
  }
}

}  // namespace

Operation Operation::Loop(const LoopSpec& spec) {
  Operation operation;
  v1::Loop* loop = operation.impl_->message.mutable_loop();
  ToProto(spec.body, loop->mutable_body(), *operation.impl_);
  for (const Operand& one : spec.constants) *loop->add_constants() = Use(one, *operation.impl_);
  for (const Operand& one : spec.carried) *loop->add_carried() = Use(one, *operation.impl_);
  for (const Operand& one : spec.scanned) *loop->add_scanned() = Use(one, *operation.impl_);
  if (spec.count) loop->set_count(*spec.count);
  if (spec.condition) *loop->mutable_condition() = Use(*spec.condition, *operation.impl_);
  if (spec.count.has_value() == spec.condition.has_value()) {
    operation.impl_->error =
        internal::LocalError(Code::kInvalidArgument, "a loop has either a count or a condition");
  }
  loop->set_reverse(spec.reverse);
  operation.impl_->num_outputs =
      static_cast<int>(spec.body.outputs.size()) - (spec.condition.has_value() ? 1 : 0);
  return operation;
}

Operation Operation::Branch(const BranchSpec& spec) {
  Operation operation;
  v1::Branch* branch = operation.impl_->message.mutable_branch();
  *branch->mutable_index() = Use(spec.index, *operation.impl_);
  for (const Operand& one : spec.inputs) *branch->add_inputs() = Use(one, *operation.impl_);
  for (const Body& body : spec.bodies) ToProto(body, branch->add_bodies(), *operation.impl_);
  operation.impl_->num_outputs =
      spec.bodies.empty() ? 0 : static_cast<int>(spec.bodies[0].outputs.size());
  return operation;
}

Operation Operation::View(const Operand& input, const ViewSteps& steps) {
  Operation out;
  *out.impl_->message.mutable_view() = steps.impl().view;
  *out.impl_->message.mutable_view()->mutable_input() = Use(input, *out.impl_);
  return out;
}

Operation& Operation::OnDevice(std::string_view device) {
  impl_->message.set_device(std::string(device));
  return *this;
}

Operation& Operation::WithPriority(int priority) {
  impl_->message.set_priority(priority);
  return *this;
}

namespace {

// The first output without a target; if there is none, one more, so that the daemon can refuse the
// number.
v1::Output* NextOutput(Operation::Impl& impl) {
  if (impl.message.has_kernel_launch()) {
    for (v1::Output* output : internal::MutableOutputs(impl.message, impl.num_outputs)) {
      if (output->target_case() == v1::Output::TARGET_NOT_SET) return output;
    }
  }
  return impl.message.add_outputs();
}

}  // namespace

Operation& Operation::ToName(std::string_view name) {
  NextOutput(*impl_)->set_name(std::string(name));
  return *this;
}

Operation& Operation::ToJobHandle(uint64_t handle) {
  NextOutput(*impl_)->set_handle(handle);
  return *this;
}

Operation& Operation::ToExisting(const Array& array) {
  v1::Output* output = NextOutput(*impl_);
  output->set_existing(true);
  if (array.state() && array.state()->handle() != 0) {
    output->set_handle(array.state()->handle());
  } else if (array.state()) {
    output->set_name(array.state()->given_name());
  }
  if (array.state()) impl_->arrays.push_back(array.state());
  return *this;
}

Operation& Operation::Spread(const Sharding& sharding) {
  internal::ToProto(
      sharding,
      internal::MutableOutputs(impl_->message, impl_->num_outputs).front()->mutable_sharding());
  return *this;
}

int Operation::num_outputs() const { return impl_->num_outputs; }

namespace internal {

std::vector<v1::Output*> MutableOutputs(v1::Operation& message, int num_outputs) {
  std::vector<v1::Output*> outputs;
  if (message.has_kernel_launch()) {
    for (auto& argument : *message.mutable_kernel_launch()->mutable_arguments()) {
      if (argument.has_new_array())
        outputs.push_back(argument.mutable_new_array()->mutable_output());
      if (!argument.has_aggregate()) continue;
      for (auto& member : *argument.mutable_aggregate()->mutable_members()) {
        if (member.has_new_array()) outputs.push_back(member.mutable_new_array()->mutable_output());
      }
    }
    return outputs;
  }
  while (message.outputs_size() < num_outputs) message.add_outputs();
  for (auto& output : *message.mutable_outputs()) outputs.push_back(&output);
  return outputs;
}

}  // namespace internal
}  // namespace stride
