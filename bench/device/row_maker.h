#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/libraries.h"
#include "bench/device/routine.h"

namespace stride::bench {

using Enqueue = std::function<void()>;

inline constexpr char kCub[] = "CUB directly";

// The base of makers of rows of one kind: a derived class adds them in AddAll(). Routines refer to
// their maker.
class RowMaker {
 public:
  // `quick`: small arrays. `libraries` outlive the rows.
  RowMaker(bool quick, Libraries& libraries) : quick_(quick), libraries_(libraries) {}

  std::vector<NamedRoutine> TakeRows() { return std::move(rows_); }

 protected:
  void Add(const std::string& id, std::function<Routine()> make) {
    rows_.push_back({id, std::move(make)});
  }

  int64_t Count(double count) const { return static_cast<int64_t>(quick_ ? count / 10 : count); }
  int64_t Side(int64_t side) const { return quick_ ? side / 4 : side; }
  CUstream stream() const { return libraries_.stream; }

  const bool quick_;
  Libraries& libraries_;

 private:
  std::vector<NamedRoutine> rows_;
};

// Appends a maker's rows, each of which shares the maker.
template <typename Maker>
void AddRows(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows) {
  auto maker = std::make_shared<Maker>(quick, libraries);
  maker->AddAll();
  for (NamedRoutine& row : maker->TakeRows())
    rows->push_back({row.id, [maker, make = std::move(row.make)] { return make(); }});
}

}  // namespace stride::bench
