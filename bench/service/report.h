// The table that a benchmark prints, and its JSON file, in the format of bench/report/row.py.
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
  // The baseline; empty: there is none.
  std::string baseline_name;
  std::optional<Times> baseline;
  // Bytes moved by one turn; 0: none to speak of.
  int64_t bytes = 0;
  // The machine's limit, in seconds, and its name; 0: not known.
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
  // Adds a measurement that is missing, with the reason.
  void AddMissing(const std::string& what);
  // False when the file cannot be written.
  bool WriteJson(const std::string& path) const;

 private:
  std::vector<std::pair<std::string, std::string>> devices_;
  std::vector<Row> rows_;
  std::vector<std::string> missing_;
};

}  // namespace stride::bench
