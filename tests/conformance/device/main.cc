#include <gtest/gtest.h>

#include <string>

#include "tests/conformance/device/fault.h"
#include "tests/conformance/device/harness.h"

int main(int argc, char** argv) {
  const std::string argument = argc > 1 ? argv[1] : "";
  const std::string prefix = "--fault-child=";
  if (argument.rfind(prefix, 0) == 0) {
    return stride::conformance::RunFaultChild(argument.substr(prefix.size()));
  }
  testing::InitGoogleTest(&argc, argv);
  const int code = RUN_ALL_TESTS();
  stride::conformance::EndSharedDevice();
  return code;
}
