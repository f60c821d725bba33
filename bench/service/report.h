// The table that a benchmark prints and the JSON file it writes, as bench/report/row.py tells it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/service/timing.h"

namespace stride::bench {

// One comparison. All numbers are times, so that a ratio above 1 says that we are slower.
struct Row {
  std::string id;  // `run/unix/cpu:0`: stable, for scripts
  std::string what;
  Times ours;
  // What it is held against; nothing: there is no such thing.
  std::string baseline_name;
  std::optional<Times> baseline;
  // Bytes moved by one turn; 0: none to speak of.
  int64_t bytes = 0;
  // What the machine could do at best, in seconds, and by which measure; 0: nobody knows.
  double limit_s = 0;
  std::string limit_name;
};

class Report {
 public:
  // Prints the row at once.
  void Add(Row row);
  // A line between rows.
  void Section(const std::string& title);
  // `cpu:0` and what it is.
  void AddDevice(const std::string& name, const std::string& model);
  // What was not measured, and why.
  void AddMissing(const std::string& what);
  // False when the file cannot be written.
  bool WriteJson(const std::string& path) const;

 private:
  std::vector<std::pair<std::string, std::string>> devices_;
  std::vector<Row> rows_;
  std::vector<std::string> missing_;
};

}  // namespace stride::bench
