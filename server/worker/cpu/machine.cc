#include "server/worker/cpu/machine.h"

#include <fstream>

namespace stride::cpu {

std::string ProcessorModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    size_t colon = line.find(": ");
    if (line.substr(0, 10) == "model name" && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "CPU";
}

}  // namespace stride::cpu
