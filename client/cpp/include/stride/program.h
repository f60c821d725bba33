// Operations that are registered once and replayed with new inputs by one small call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stride/operation.h"

namespace stride {

// Intermediate arrays have handles of the program: numbers that the caller chooses, not 0:
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
    // Expected type and shape, so that the program is planned when it is created. Set for all
    // inputs or for none.
    std::optional<ArraySpec> spec = std::nullopt;
  };
  std::string id;
  std::vector<Input> inputs;
  std::vector<Operation> operations;  // in the order in which they run
  std::vector<uint64_t> outputs;      // handles that operations create

  static Operand Handle(uint64_t handle) { return Operand::JobHandle(handle); }
  // Adds an operation with one result.
  void Add(Operation operation, uint64_t result) {
    operation.ToJobHandle(result);
    operations.push_back(std::move(operation));
  }
};

// Operations that a loop repeats, or that a branch runs: a program within the program, with its own
// handles. It reads only its inputs.
struct Body {
  std::vector<uint64_t> inputs;
  std::vector<Operation> operations;
  std::vector<uint64_t> outputs;

  void Add(Operation operation, uint64_t result) {
    operation.ToJobHandle(result);
    operations.push_back(std::move(operation));
  }
};

// The body's inputs are the constants, the carried arrays and an element of each scanned array. Its
// outputs are the condition (if there is one), the carried arrays, and an element of each stacked
// array:
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
  std::vector<Operand> scanned;  // with `count` only
  // Exactly one is set: the number of trips, or a bool that decides the first trip.
  std::optional<int64_t> count;
  std::optional<Operand> condition;
  bool reverse = false;
};

struct BranchSpec {
  Operand index;  // a bool, or an integer; an index out of range selects the nearest body
  std::vector<Operand> inputs;
  std::vector<Body> bodies;
};

struct Program {
  std::string name;  // tenants/{tenant}/programs/{id}
  int num_inputs = 0;
  int num_outputs = 0;
  // Set if inputs were declared: results of a call, and its number of tasks.
  std::vector<ArraySpec> results;
  int num_tasks = 0;
};

}  // namespace stride
