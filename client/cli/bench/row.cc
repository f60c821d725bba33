#include "client/cli/bench/row.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace stride::cli {
namespace {

std::string Format(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), format, value);
  return buffer;
}

std::string Duration(double seconds) {
  if (seconds < 1e-3) return Format("%.1f us", seconds * 1e6);
  return seconds < 1 ? Format("%.2f ms", seconds * 1e3) : Format("%.2f s", seconds);
}

std::string Left(std::string text, size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string Right(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

constexpr size_t kWhat = 50, kNumber = 11;

Json ToJson(const Samples& samples) {
  return Json::Object({{"median_s", Json::Number(samples.median())},
                       {"p99_s", Json::Number(samples.p99())},
                       {"min_s", Json::Number(samples.min())},
                       {"count", Json::Integer(static_cast<int64_t>(samples.count()))}});
}

}  // namespace

double Samples::Quantile(double share) const {
  if (seconds_.empty()) return 0;
  if (!sorted_) std::sort(seconds_.begin(), seconds_.end());
  sorted_ = true;
  const double rank = std::ceil(share * static_cast<double>(seconds_.size()));
  return seconds_[rank < 1 ? 0 : static_cast<size_t>(rank) - 1];
}

double JainIndex(const std::vector<double>& shares) {
  double sum = 0, squares = 0;
  for (double share : shares) {
    sum += share;
    squares += share * share;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(shares.size()) * squares) : 1;
}

Json ToJson(const BenchRow& row) {
  std::vector<std::pair<std::string, Json>> members = {
      {"id", Json::String(row.id)}, {"what", Json::String(row.what)}, {"ours", ToJson(row.ours)}};
  if (row.bytes > 0) members.emplace_back("bytes", Json::Integer(row.bytes));
  if (row.baseline) {
    members.emplace_back("baseline_name", Json::String(row.baseline_name));
    members.emplace_back("baseline", ToJson(*row.baseline));
    members.emplace_back("ratio", Json::Number(row.ours.median() / row.baseline->median()));
  }
  for (const auto& [name, value] : row.more) members.emplace_back(name, Json::Number(value));
  return Json::Object(members);
}

std::string BenchHeading() {
  return Left("", kWhat) + Right("median", kNumber) + Right("p99", kNumber) +
         Right("ratio", kNumber - 2) + "  to";
}

std::string ToText(const BenchRow& row) {
  std::string line = Left(row.what, kWhat) + Right(Duration(row.ours.median()), kNumber) +
                     Right(Duration(row.ours.p99()), kNumber);
  const double ratio = row.baseline ? row.ours.median() / row.baseline->median() : 0;
  line += Right(row.baseline ? Format("%.2f", ratio) : "", kNumber - 2);
  if (row.baseline) line += "  " + row.baseline_name + ", " + Duration(row.baseline->median());
  if (row.bytes > 0) {
    const double rate = static_cast<double>(row.bytes) / row.ours.median() / (1 << 30);
    line += Format("  %.2f GiB/s", rate);
  }
  for (const auto& [name, value] : row.more) line += "  " + name + Format(" %.4g", value);
  return line;
}

}  // namespace stride::cli
