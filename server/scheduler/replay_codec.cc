#include "server/scheduler/replay_codec.h"

#include <memory>
#include <utility>

#include "server/scheduler/record_convert.h"

namespace stride::scheduler {

void ToRecord(const ops::ProgramGraph& graph, recovery::ReplayRecord* record) {
  for (const ops::GraphStep& step : graph.steps) {
    recovery::ReplayStepRecord* out = record->add_steps();
    *out->mutable_task() = step.task;
    for (const ops::Location& place : step.places) {
      out->add_slots(place.arena);
      out->add_offsets(place.offset);
    }
    out->set_code(step.code + 1);
    if (step.kernel == nullptr) continue;
    step.kernel->SerializeToString(out->mutable_kernel());
    ToRecord(step.inputs, out->mutable_inputs());
  }
  for (const wire::Code& code : graph.codes) *record->add_codes() = code;
  record->set_num_inputs(graph.num_inputs);
  record->mutable_result_bytes()->Add(graph.result_bytes.begin(), graph.result_bytes.end());
  record->set_scratch_bytes(graph.scratch_bytes);
  record->mutable_written()->Add(graph.written.begin(), graph.written.end());
}

ops::ProgramGraph GraphFrom(const recovery::ReplayRecord& record) {
  ops::ProgramGraph graph;
  for (const recovery::ReplayStepRecord& in : record.steps()) {
    ops::GraphStep step;
    step.task = in.task();
    for (int i = 0; i < in.slots_size(); ++i) step.places.push_back({in.slots(i), in.offsets(i)});
    step.code = static_cast<int>(in.code()) - 1;
    if (!in.kernel().empty()) {
      auto kernel = std::make_shared<v1::Operation>();
      kernel->ParseFromString(in.kernel());
      step.kernel = std::move(kernel);
      step.inputs = InputsFrom(in.inputs());
    }
    graph.steps.push_back(std::move(step));
  }
  graph.codes.assign(record.codes().begin(), record.codes().end());
  graph.num_inputs = record.num_inputs();
  graph.result_bytes.assign(record.result_bytes().begin(), record.result_bytes().end());
  graph.scratch_bytes = record.scratch_bytes();
  graph.written.assign(record.written().begin(), record.written().end());
  graph.written.resize(graph.num_inputs);
  return graph;
}

}  // namespace stride::scheduler
