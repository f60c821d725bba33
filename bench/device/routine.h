// The rows of cuda_operations_bench beyond products and expressions.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/store/array_info.h"

namespace stride::bench {

// An input: `elements` are the bytes of as many of its elements as a period has.
struct Given {
  ArrayInfo info;
  std::shared_ptr<const std::string> elements;
};

// Device memory of a baseline: the inputs, and the result's place.
struct Places {
  std::vector<CUdeviceptr> inputs;
  CUdeviceptr result = 0;
};

// Checks a result. `got` and `want` are contiguous bytes; the answer is empty, or says what
// differs.
using Judge = std::function<std::string(const std::string& got, const std::string& want)>;

// Operations of a client, and the baseline that they are compared with.
struct Routine {
  // The row's id in bench/peers/rows, if it stands there too.
  std::string id;
  std::string what;
  // As CudaProgram takes them: inputs are the handles 1, 2, ...; 100 is the result, or where
  // `in_place` is set, the first input.
  std::string operations;
  bool in_place = false;
  std::vector<Given> inputs;
  // Bytes that have to be read and written.
  int64_t moved = 0;
  // Enqueues the same work once; none: the copy of as many bytes stands for it.
  std::string baseline_name;
  std::function<std::function<void()>(const Places&)> baseline;
  // `want` is the baseline's result, or empty where there is no baseline.
  Judge judge;
};

// A row that is made at its turn, since its inputs are large.
struct NamedRoutine {
  std::string id;
  std::function<Routine()> make;
};

}  // namespace stride::bench
