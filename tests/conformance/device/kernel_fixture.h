// Launches of client kernels on the device.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {

class KernelTest : public DeviceTest {
 protected:
  static wire::Code Source(const std::string& source, const std::string& entry,
                           const std::vector<std::string>& globals = {},
                           const std::vector<std::string>& options = {}) {
    wire::Code code;
    code.mutable_source()->set_kind(wire::Source::KIND_CUDA_CPP);
    code.mutable_source()->set_text(source);
    code.mutable_source()->add_entries(entry);
    for (const std::string& global : globals) code.mutable_source()->add_globals(global);
    for (const std::string& option : options) code.mutable_source()->add_options(option);
    return code;
  }
  wire::Task Launch(const std::string& source, const std::string& entry, std::vector<uint32_t> grid,
                    std::vector<uint32_t> block, uint32_t shared = 0,
                    const std::vector<std::string>& globals = {}) {
    auto module = harness().Load(Source(source, entry, globals));
    EXPECT_TRUE(module.ok()) << module.status();
    return LaunchOf(module.ok() ? *module : 0, entry, std::move(grid), std::move(block), shared);
  }
  static wire::Task LaunchOf(uint64_t module, const std::string& entry, std::vector<uint32_t> grid,
                             std::vector<uint32_t> block, uint32_t shared = 0) {
    wire::Task task;
    task.set_label(entry);
    wire::KernelLaunch* launch = task.mutable_kernel();
    launch->set_module(module);
    launch->set_entry(entry);
    grid.resize(3, 1);
    block.resize(3, 1);
    launch->mutable_grid()->Assign(grid.begin(), grid.end());
    launch->mutable_block()->Assign(block.begin(), block.end());
    launch->set_dynamic_shared_bytes(shared);
    return task;
  }
  static void Pass(wire::Task* task, const DeviceArray& array) {
    wire::Operand* operand = task->mutable_kernel()->add_arguments()->mutable_array();
    operand->set_arena(array.arena);
    operand->set_offset(array.offset);
    operand->set_dtype(static_cast<int>(array.info.dtype));
  }
  template <typename T>
  static void PassValue(wire::Task* task, T value) {
    task->mutable_kernel()->add_arguments()->set_raw(
        std::string(reinterpret_cast<const char*>(&value), sizeof(value)));
  }
  template <typename T>
  static void SetGlobal(wire::Task* task, const std::string& name, const std::vector<T>& values) {
    wire::GlobalValue* global = task->mutable_kernel()->add_globals();
    global->set_name(name);
    global->set_raw(
        std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
    global->set_size(global->raw().size());
  }
  static void SetGlobal(wire::Task* task, const std::string& name, const DeviceArray& array) {
    wire::GlobalValue* global = task->mutable_kernel()->add_globals();
    global->set_name(name);
    global->set_size(array.info.size_bytes());
    global->mutable_array()->set_arena(array.arena);
    global->mutable_array()->set_offset(array.offset);
    global->mutable_array()->set_dtype(static_cast<int>(array.info.dtype));
  }
  std::vector<double> Values(const DeviceArray& array, int64_t count) {
    const HostArray got = harness().Get(array);
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(got.At(i).real());
    return values;
  }
  DeviceArray Zeros(DType dtype, std::vector<int64_t> shape) {
    return harness().Put(Make(dtype, std::move(shape), [](int64_t) { return Value(0); }));
  }
};

}  // namespace stride::conformance
