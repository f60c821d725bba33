#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "server/worker/cpu/lower/fft_plan.h"

namespace stride::cpu {

// What transforms lines of one length: the plan, and for real lines of even length, which are
// transformed as half as many complex numbers, what brings both halves together.
template <typename T>
struct FftTables {
  // `real`: of a line that is real on one side.
  FftTables(int64_t n, bool real);
  size_t bytes() const;

  const bool is_halved;
  const FftPlan<T> plan;
  std::vector<Complex<T>> half_roots;  // exp(-2 pi i k / n) for k from 0 to n / 2, when halved
};

// Keeps the tables used last, since making them costs as much as a transform. One thread at a time.
class FftPlanCache {
 public:
  // Throws std::bad_alloc.
  template <typename T>
  std::shared_ptr<const FftTables<T>> Get(int64_t n, bool real);

 private:
  struct Entry {
    bool is_double = false;
    bool real = false;
    int64_t n = 0;
    size_t bytes = 0;
    std::shared_ptr<const void> tables;
  };
  std::list<Entry> entries_;  // the one used last in front
  size_t bytes_ = 0;
};

}  // namespace stride::cpu
