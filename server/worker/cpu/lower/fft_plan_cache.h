#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "server/worker/cpu/lower/fft_plan.h"

namespace stride::cpu {

// Tables for lines of one length. Real lines of even length are transformed as half as many complex
// numbers; `half_roots` combines both halves of the result.
template <typename T>
struct FftTables {
  // `real`: the line is real on one side of the transform.
  FftTables(int64_t n, bool real);
  size_t bytes() const;

  const bool is_halved;
  const FftPlan<T> plan;
  std::vector<Complex<T>> half_roots;  // exp(-2 pi i k / n) for k from 0 to n / 2, when halved
};

// Caches the tables used last, since creating them costs as much as a transform. One thread at a
// time.
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
  std::list<Entry> entries_;  // most recently used first
  size_t bytes_ = 0;
};

}  // namespace stride::cpu
