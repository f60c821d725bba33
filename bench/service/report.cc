#include "bench/service/report.h"

#include <cstdio>

namespace stride::bench {
namespace {

std::string Text(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), format, value);
  return buffer;
}

std::string Duration(double seconds) {
  if (seconds < 1e-3) return Text("%.1f us", seconds * 1e6);
  if (seconds < 1) return Text("%.2f ms", seconds * 1e3);
  return Text("%.2f s", seconds);
}

std::string Rate(int64_t bytes, double seconds) {
  return bytes == 0 || seconds == 0 ? "" : Text("%.2f GiB/s", bytes / seconds / (1 << 30));
}

// A control character becomes a space.
std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

std::string Json(const Times& times) {
  return "{\"median_s\": " + Text("%.9g", times.median()) +
         ", \"p99_s\": " + Text("%.9g", times.p99()) + ", \"min_s\": " + Text("%.9g", times.min()) +
         ", \"count\": " + std::to_string(times.count()) + "}";
}

std::string Json(const Row& row) {
  std::string out = "{\"id\": " + Quoted(row.id) + ", \"what\": " + Quoted(row.what) +
                    ", \"ours\": " + Json(row.ours);
  if (row.bytes > 0) out += ", \"bytes\": " + std::to_string(row.bytes);
  if (row.baseline) {
    out += ", \"baseline\": " + Json(*row.baseline) +
           ", \"baseline_name\": " + Quoted(row.baseline_name) +
           ", \"ratio\": " + Text("%.4g", row.ours.median() / row.baseline->median());
  }
  if (row.limit_s > 0) {
    out += ", \"limit_s\": " + Text("%.9g", row.limit_s) +
           ", \"limit_name\": " + Quoted(row.limit_name);
  }
  return out + "}";
}

}  // namespace

void Report::AddDevice(const std::string& name, const std::string& model) {
  std::printf("%s: %s\n", name.c_str(), model.c_str());
  devices_.emplace_back(name, model);
}

void Report::AddMissing(const std::string& what) {
  std::printf("missing: %s\n", what.c_str());
  missing_.push_back(what);
}

void Report::Section(const std::string& title) {
  std::printf("\n%s\n  %-58s %11s %11s %11s   %11s %11s %11s %7s\n", title.c_str(), "", "ours",
              "p99", "rate", "baseline", "p99", "rate", "ratio");
}

void Report::Add(Row row) {
  // A ratio to zero is no number, and JSON has no text for infinity. A compiler takes no time where
  // a new expression runs by code of the product (docs/decisions/0041).
  if (row.baseline && !(row.baseline->median() > 0)) row.baseline.reset();
  const double ours = row.ours.median();
  std::printf("  %-58s %11s %11s %11s", row.what.c_str(), Duration(ours).c_str(),
              Duration(row.ours.p99()).c_str(), Rate(row.bytes, ours).c_str());
  if (row.baseline) {
    const double base = row.baseline->median();
    std::printf("   %11s %11s %11s %7.2f  %s", Duration(base).c_str(),
                Duration(row.baseline->p99()).c_str(), Rate(row.bytes, base).c_str(), ours / base,
                row.baseline_name.c_str());
  }
  std::printf("\n");
  std::fflush(stdout);
  rows_.push_back(std::move(row));
}

bool Report::WriteJson(const std::string& path) const {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (!file) return false;
  std::string devices, missing;
  for (const auto& [name, model] : devices_)
    devices += (devices.empty() ? "" : ", ") + Quoted(name) + ": " + Quoted(model);
  for (const std::string& what : missing_) missing += (missing.empty() ? "" : ", ") + Quoted(what);
  std::fprintf(file, "{\"devices\": {%s}, \"missing\": [%s], \"rows\": [\n", devices.c_str(),
               missing.c_str());
  for (size_t i = 0; i < rows_.size(); ++i) {
    std::fprintf(file, "  %s%s\n", Json(rows_[i]).c_str(), i + 1 < rows_.size() ? "," : "");
  }
  std::fprintf(file, "]}\n");
  return std::fclose(file) == 0;
}

}  // namespace stride::bench
