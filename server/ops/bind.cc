#include "server/ops/bind.h"

namespace stride::ops {
namespace {

// A slot that is not there becomes an arena that no worker has.
Location At(absl::Span<const Location> slots, uint64_t slot) {
  return slot < slots.size() ? slots[slot] : Location{UINT64_MAX, 0};
}

void Replace(wire::Operand* operand, absl::Span<const Location> slots) {
  const Location location = At(slots, operand->arena());
  operand->set_arena(location.arena);
  operand->set_offset(operand->offset() + location.offset);
}

}  // namespace

void Bind(wire::Task* task, absl::Span<const Location> slots) {
  switch (task->kind_case()) {
    case wire::Task::kElementwise:
      for (auto& operand : *task->mutable_elementwise()->mutable_inputs()) Replace(&operand, slots);
      for (auto& operand : *task->mutable_elementwise()->mutable_outputs())
        Replace(&operand, slots);
      break;
    case wire::Task::kReduce:
      for (auto& operand : *task->mutable_reduce()->mutable_inputs()) Replace(&operand, slots);
      Replace(task->mutable_reduce()->mutable_output(), slots);
      break;
    case wire::Task::kMatmul:
      Replace(task->mutable_matmul()->mutable_left(), slots);
      Replace(task->mutable_matmul()->mutable_right(), slots);
      Replace(task->mutable_matmul()->mutable_output(), slots);
      break;
    case wire::Task::kRoutine:
      for (auto& operand : *task->mutable_routine()->mutable_operands())
        Replace(operand.mutable_operand(), slots);
      break;
    case wire::Task::kLinalg:
      for (auto& operand : *task->mutable_linalg()->mutable_inputs()) Replace(&operand, slots);
      for (auto& operand : *task->mutable_linalg()->mutable_outputs()) Replace(&operand, slots);
      break;
    case wire::Task::kFft:
      Replace(task->mutable_fft()->mutable_input(), slots);
      Replace(task->mutable_fft()->mutable_output(), slots);
      break;
    case wire::Task::kKernel:
      for (auto& argument : *task->mutable_kernel()->mutable_arguments()) {
        if (argument.has_array()) Replace(argument.mutable_array(), slots);
        if (!argument.has_aggregate()) continue;
        for (auto& pointer : *argument.mutable_aggregate()->mutable_pointers())
          Replace(pointer.mutable_array(), slots);
      }
      for (auto& global : *task->mutable_kernel()->mutable_globals()) {
        if (global.has_array()) Replace(global.mutable_array(), slots);
      }
      break;
    case wire::Task::kZeroFill: {
      auto* fill = task->mutable_zero_fill();
      const Location location = At(slots, fill->arena());
      fill->set_arena(location.arena);
      fill->set_offset(fill->offset() + location.offset);
      break;
    }
    case wire::Task::kCopyBytes: {
      auto* copy = task->mutable_copy_bytes();
      const Location from = At(slots, copy->from_arena());
      const Location to = At(slots, copy->to_arena());
      copy->set_from_arena(from.arena);
      copy->set_from_offset(copy->from_offset() + from.offset);
      copy->set_to_arena(to.arena);
      copy->set_to_offset(copy->to_offset() + to.offset);
      break;
    }
    case wire::Task::kGraph:
      for (auto& place : *task->mutable_graph()->mutable_slots()) {
        const Location location = At(slots, place.arena());
        place.set_arena(location.arena);
        place.set_offset(place.offset() + location.offset);
      }
      break;
    case wire::Task::KIND_NOT_SET:
      break;
  }
}

}  // namespace stride::ops
