#include "server/ops/bind.h"

namespace stride::ops {
namespace {

// An invalid slot maps to an arena that no worker has.
Location At(absl::Span<const Location> slots, uint64_t slot) {
  return slot < slots.size() ? slots[slot] : Location{UINT64_MAX, 0};
}

// Resolves `place`, a slot and an offset in it.
Location Resolve(const Location& place, absl::Span<const Location> slots) {
  const Location location = At(slots, place.arena);
  return {location.arena, place.offset + location.offset};
}

// For messages with the fields `arena` and `offset`.
template <typename Message, typename Map>
void Replace(Message* message, Map map) {
  const Location location = map({message->arena(), message->offset()});
  message->set_arena(location.arena);
  message->set_offset(location.offset);
}

template <typename Messages, typename Map>
void ReplaceAll(Messages* messages, Map map) {
  for (auto& message : *messages) Replace(&message, map);
}

// Replaces each location of a buffer by map(location), always in the same order.
template <typename Map>
void MapPlaces(wire::Task* task, Map map) {
  switch (task->kind_case()) {
    case wire::Task::kElementwise:
      ReplaceAll(task->mutable_elementwise()->mutable_inputs(), map);
      ReplaceAll(task->mutable_elementwise()->mutable_outputs(), map);
      break;
    case wire::Task::kReduce:
      ReplaceAll(task->mutable_reduce()->mutable_inputs(), map);
      Replace(task->mutable_reduce()->mutable_output(), map);
      break;
    case wire::Task::kMatmul:
      Replace(task->mutable_matmul()->mutable_left(), map);
      Replace(task->mutable_matmul()->mutable_right(), map);
      Replace(task->mutable_matmul()->mutable_output(), map);
      break;
    case wire::Task::kRoutine:
      for (auto& operand : *task->mutable_routine()->mutable_operands())
        Replace(operand.mutable_operand(), map);
      break;
    case wire::Task::kLinalg:
      ReplaceAll(task->mutable_linalg()->mutable_inputs(), map);
      ReplaceAll(task->mutable_linalg()->mutable_outputs(), map);
      break;
    case wire::Task::kFft:
      Replace(task->mutable_fft()->mutable_input(), map);
      Replace(task->mutable_fft()->mutable_output(), map);
      break;
    case wire::Task::kKernel:
      for (auto& argument : *task->mutable_kernel()->mutable_arguments()) {
        if (argument.has_array()) Replace(argument.mutable_array(), map);
        if (argument.has_texture()) Replace(argument.mutable_texture()->mutable_array(), map);
        if (!argument.has_aggregate()) continue;
        for (auto& pointer : *argument.mutable_aggregate()->mutable_pointers())
          Replace(pointer.mutable_array(), map);
      }
      for (auto& global : *task->mutable_kernel()->mutable_globals()) {
        if (global.has_array()) Replace(global.mutable_array(), map);
      }
      break;
    case wire::Task::kZeroFill:
      Replace(task->mutable_zero_fill(), map);
      break;
    case wire::Task::kCopyBytes: {
      auto* copy = task->mutable_copy_bytes();
      const Location from = map({copy->from_arena(), copy->from_offset()});
      const Location to = map({copy->to_arena(), copy->to_offset()});
      copy->set_from_arena(from.arena);
      copy->set_from_offset(from.offset);
      copy->set_to_arena(to.arena);
      copy->set_to_offset(to.offset);
      break;
    }
    case wire::Task::kGraph:
      ReplaceAll(task->mutable_graph()->mutable_slots(), map);
      break;
    case wire::Task::KIND_NOT_SET:
      break;
  }
}

}  // namespace

void Bind(wire::Task* task, absl::Span<const Location> slots) {
  MapPlaces(task, [slots](const Location& place) { return Resolve(place, slots); });
}

void SetModule(wire::Task* task, uint64_t module) {
  if (task->has_elementwise()) task->mutable_elementwise()->set_module(module);
  if (task->has_reduce()) task->mutable_reduce()->set_module(module);
  if (task->has_matmul()) task->mutable_matmul()->set_module(module);
  if (task->has_kernel()) task->mutable_kernel()->set_module(module);
  if (task->has_routine()) task->mutable_routine()->set_module(module);
}

void Rebinder::Use(const wire::Task& plan) {
  task_ = plan;
  slots_.clear();
  MapPlaces(&task_, [this](const Location& place) {
    slots_.push_back(place);
    return place;
  });
}

wire::Task* Rebinder::Bind(absl::Span<const Location> slots) {
  auto place = slots_.begin();
  MapPlaces(&task_, [&](const Location&) { return Resolve(*place++, slots); });
  return &task_;
}

}  // namespace stride::ops
