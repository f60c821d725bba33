#include "client/examples/demo.h"

#include <cstdarg>
#include <cstdio>

namespace stride::demo {

std::string Text(const char* format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof(buffer), format, arguments);
  va_end(arguments);
  return buffer;
}

double Milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

void Demo::Run(const std::string& name, const std::function<Result<Check>(Phases&)>& workload) {
  Phases phases;
  const auto checked = workload(phases);
  const Check check = checked ? *checked : Check{false, checked.error().ToString()};
  all_good_ &= check.good;
  std::printf("%-44s %-16s %8.2f %8.2f %8.2f %8.2f %8.2f  %s %s\n", name.c_str(),
              phases.device.c_str(), Milliseconds(phases.upload), Milliseconds(phases.queue),
              Milliseconds(phases.compile), Milliseconds(phases.run), Milliseconds(phases.download),
              check.good ? "ok  " : "FAIL", check.text.c_str());
  std::fflush(stdout);
}

Result<Array> Demo::Compute(const Operation& operation, Phases& phases) {
  ComputeOptions options;
  options.timeline = true;
  Array array = client_.Compute(operation, options);
  DEMO_TRY(timeline, array.Timeline());
  std::string device = timeline.device.substr(timeline.device.find('/') + 1);
  if (device.size() > 16) device.resize(16);
  if (phases.device.empty()) {
    phases.device = device;
  } else if (phases.device != device) {
    phases.device = "several";
  }
  // `queue` includes the compile time.
  phases.queue += timeline.queue - timeline.compile;
  phases.compile += timeline.compile;
  // Copies between host staging and the device count as upload.
  phases.upload += timeline.upload;
  phases.run += timeline.run;
  return array;
}

}  // namespace stride::demo
