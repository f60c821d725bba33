#pragma once

#include <string>
#include <vector>

namespace stride::cuda {

// Folders of the CUDA toolkits on this machine, links resolved: libraries, and headers for NVRTC.
std::vector<std::string> ToolkitRoots();

// Folders of the driver's libraries, links resolved.
std::vector<std::string> DriverFolders();

// The driver's device files that exist: /dev/nvidia*, with /dev/nvidia-caps below it.
std::vector<std::string> DeviceFiles();

}  // namespace stride::cuda
