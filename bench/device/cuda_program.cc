#include "bench/device/cuda_program.h"

#include <google/protobuf/text_format.h>

#include <utility>

#include "bench/device/check.h"
#include "server/ops/bind.h"

namespace stride::bench {
namespace {

constexpr uint64_t kPage = 4096;

}  // namespace

ops::ProgramGraph PlanOf(const std::string& operations, const std::vector<ArrayInfo>& inputs,
                         uint64_t result) {
  v1::Program program;
  if (!google::protobuf::TextFormat::ParseFromString(operations, &program))
    Die("no program: " + operations);
  for (size_t i = 0; i < inputs.size(); ++i) program.add_inputs()->set_handle(i + 1);
  program.add_outputs(result);
  auto graph = ops::MakeGraph(Expect(ops::PlanProgram(program, inputs, nullptr)));
  if (!graph) Die("no plan of single tasks: " + operations);
  return *std::move(graph);
}

CudaProgram::CudaProgram(CudaHarness& harness, const std::string& operations,
                         const std::vector<ArrayInfo>& inputs, uint64_t result)
    : harness_(harness), graph_(PlanOf(operations, inputs, result)), arena_(harness.NewId()) {
  auto place = [this](int64_t bytes) {
    offsets_.push_back(size_);
    size_ += (static_cast<uint64_t>(bytes) + kPage - 1) / kPage * kPage;
  };
  for (const ArrayInfo& input : inputs) place(input.size_bytes());
  for (int64_t bytes : graph_.result_bytes) place(bytes);
  if (graph_.scratch_bytes > 0) place(graph_.scratch_bytes);
  memory_ = Expect(harness.CreateArena(arena_, size_ + this->result().size_bytes()));
  std::vector<uint64_t> modules;
  for (const wire::Code& code : graph_.codes) modules.push_back(harness.Load(code));
  for (const ops::GraphStep& step : graph_.steps) {
    wire::Task& task = tasks_.emplace_back(step.task);
    std::vector<ops::Location> places;
    for (const ops::Location& one : step.places)
      places.push_back({arena_, offsets_[one.arena] + one.offset});
    ops::Bind(&task, places);
    if (step.code >= 0) ops::SetModule(&task, modules[step.code]);
  }
}

absl::Status CudaProgram::Run(int count) {
  const int size = count * num_tasks();
  while (packet_.size() > size) packet_.RemoveLast();
  for (int i = packet_.size(); i < size; ++i) *packet_.Add() = tasks_[i % num_tasks()];
  return harness_.Run(&packet_);
}

}  // namespace stride::bench
