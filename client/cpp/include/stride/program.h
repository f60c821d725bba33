// Operations registered once and replayed with new inputs by one small call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stride/operation.h"

namespace stride {

// What goes between the operations has handles of the program's own, numbers that the caller
// chooses, not 0:
//
//   ProgramSpec spec{.inputs = {{.handle = 1}}};
//   spec.Add(Operation::Ufunc("add", {ProgramSpec::Handle(1), 1.0}), 2);
//   spec.Add(Operation::Reduce(Reduction::kSum, ProgramSpec::Handle(2)), 3);
//   spec.outputs = {3};
//   auto program = client.CreateProgram(spec);
//   Array sum = client.Compute(Operation::Call(*program, {array}));
struct ProgramSpec {
  struct Input {
    uint64_t handle = 0;
    // What it is expected to be, so that the program is planned when it is made: of all inputs, or
    // none.
    std::optional<ArraySpec> spec = std::nullopt;
  };
  std::string id;
  std::vector<Input> inputs;
  std::vector<Operation> operations;  // in the order in which they run
  std::vector<uint64_t> outputs;      // handles that operations make

  static Operand Handle(uint64_t handle) { return Operand::JobHandle(handle); }
  // An operation with one result.
  void Add(Operation operation, uint64_t result) {
    operation.ToJobHandle(result);
    operations.push_back(std::move(operation));
  }
};

// Operations that a loop repeats, or that a branch runs: a program within the program, with handles
// of its own, which reads nothing but its inputs.
struct Body {
  std::vector<uint64_t> inputs;
  std::vector<Operation> operations;
  std::vector<uint64_t> outputs;

  void Add(Operation operation, uint64_t result) {
    operation.ToJobHandle(result);
    operations.push_back(std::move(operation));
  }
};

// The body's inputs are the constants, the carried arrays and an element of each scanned array; its
// outputs the condition where there is one, the carried arrays, and an element of each stacked one:
//
//   Body twice{.inputs = {1}, .outputs = {2}};
//   twice.Add(Operation::Ufunc("multiply", {ProgramSpec::Handle(1), 2.0}), 2);
//   Operation loop = Operation::Loop(
//       {.body = twice, .carried = {ProgramSpec::Handle(1)}, .count = 10});
//   spec.Add(loop, 3);
struct LoopSpec {
  Body body;
  std::vector<Operand> constants;
  std::vector<Operand> carried;
  std::vector<Operand> scanned;  // with `count` alone
  // One of the two: how many trips, or a bool, whether there is a first one.
  std::optional<int64_t> count;
  std::optional<Operand> condition;
  bool reverse = false;
};

struct BranchSpec {
  Operand index;  // a bool, or an integer; one that is out of range is the nearest body's
  std::vector<Operand> inputs;
  std::vector<Body> bodies;
};

struct Program {
  std::string name;  // tenants/{tenant}/programs/{id}
  int num_inputs = 0;
  int num_outputs = 0;
  // Where inputs were declared: what a call returns, and the tasks that it is.
  std::vector<ArraySpec> results;
  int num_tasks = 0;
};

}  // namespace stride
