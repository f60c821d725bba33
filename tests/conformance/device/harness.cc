#include "tests/conformance/device/harness.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace stride::conformance {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

absl::StatusOr<std::unique_ptr<Harness>> Harness::Start(const SubjectUnderTest& subject,
                                                        int status_page_fd, int fatal_fd) {
  std::unique_ptr<Harness> harness(new Harness(subject));
  if (absl::Status status = harness->StartDevice(status_page_fd, fatal_fd); !status.ok()) {
    return status;
  }
  return harness;
}

absl::Status Harness::StartDevice(int status_page_fd, int fatal_fd) {
  recorder_ = std::make_unique<JournalWriter>(fatal_fd);
  absl::StatusOr<UniqueFd> staging = CreateMemoryFile("staging", kStagingBytes);
  if (!staging.ok()) return staging.status();
  absl::StatusOr<MemoryMap> map = MemoryMap::Map(staging->get(), kStagingBytes, true);
  if (!map.ok()) return map.status();
  staging_ = *std::move(map);
  absl::StatusOr<UniqueFd> page = CreateMemoryFile("status", wire::kStatusPageBytes);
  if (!page.ok()) return page.status();
  map = MemoryMap::Map(status_page_fd >= 0 ? status_page_fd : page->get(), wire::kStatusPageBytes,
                       true);
  if (!map.ok()) return map.status();
  status_page_map_ = *std::move(map);
  status_page_ = reinterpret_cast<wire::StatusPage*>(status_page_map_.data());
  compiler_ = subject_.make_compiler();
  device_ = subject_.make_device();
  worker::Device::Environment environment;
  environment.device_index = subject_.description.index();
  environment.staging = staging_.data();
  environment.staging_bytes = kStagingBytes;
  environment.status_page = status_page_;
  environment.completions = recorder_.get();
  if (absl::Status status = device_->Start(environment); !status.ok()) return status;
  return CreateArena(kArena, kArenaBytes);
}

Harness::~Harness() = default;

absl::Status Harness::CreateArena(uint64_t arena, uint64_t size) {
  const uint64_t unit = std::max<int64_t>(subject_.description.arena_granularity_bytes(), 4096);
  size = RoundUp(size, unit);
  absl::StatusOr<UniqueFd> fd;
  if (!subject_.description.host_memory()) {
    fd = device_->CreateArena(arena, size);
    if (!fd.ok()) return fd.status();
  } else {
    fd = CreateMemoryFile("arena", size);
    if (!fd.ok()) return fd.status();
    absl::StatusOr<UniqueFd> copy = fd->Duplicate();
    if (!copy.ok()) return copy.status();
    absl::Status status = device_->MapArena(arena, size, *std::move(copy));
    if (!status.ok()) return status;
  }
  fds_[arena] = *std::move(fd);
  return absl::OkStatus();
}

absl::Status Harness::DropArena(uint64_t arena) {
  fds_.erase(arena);
  return device_->UnmapArena(arena);
}

uint64_t Harness::Allocate(uint64_t bytes) {
  const uint64_t offset = used_;
  used_ += RoundUp(std::max<uint64_t>(bytes, 1), 256);
  EXPECT_LE(used_, kArenaBytes) << "the test needs a larger arena";
  return offset;
}

DeviceArray Harness::Put(const HostArray& array) {
  const DeviceArray placed{kArena, Allocate(array.buffer.size()), array.info};
  const absl::Status status = Upload(placed.arena, placed.offset, array.buffer);
  EXPECT_TRUE(status.ok()) << "uploading: " << status;
  return placed;
}

HostArray Harness::Get(const DeviceArray& array) {
  const ByteExtent extent = Extent(array.info);
  HostArray host;
  host.info = array.info;
  host.info.offset -= extent.begin;
  auto bytes = Download(array.arena, array.offset + extent.begin, extent.end - extent.begin);
  EXPECT_TRUE(bytes.ok()) << "downloading: " << bytes.status();
  if (bytes.ok()) host.buffer = *std::move(bytes);
  host.buffer.resize(extent.end - extent.begin);
  return host;
}

uint64_t Harness::StartCopy(wire::Copy copy) {
  copy.set_id(++copy_);
  device_->Copy(copy);
  return copy_;
}

absl::Status Harness::Upload(uint64_t arena, uint64_t offset, const std::string& bytes) {
  for (uint64_t at = 0; at < bytes.size(); at += kStagingBytes) {
    wire::Copy copy;
    copy.set_to_device(true);
    copy.set_arena(arena);
    copy.set_arena_offset(offset + at);
    copy.set_size(std::min(kStagingBytes, bytes.size() - at));
    std::memcpy(staging_.data(), bytes.data() + at, copy.size());
    absl::Status status = recorder_->AwaitCopy(StartCopy(copy));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Harness::Download(uint64_t arena, uint64_t offset, uint64_t size) {
  std::string bytes(size, '\0');
  for (uint64_t at = 0; at < size; at += kStagingBytes) {
    wire::Copy copy;
    copy.set_arena(arena);
    copy.set_arena_offset(offset + at);
    copy.set_size(std::min(kStagingBytes, size - at));
    // A copy that moves nothing must not leave the right bytes.
    std::memset(staging_.data(), 0xA5, copy.size());
    absl::Status status = recorder_->AwaitCopy(StartCopy(copy));
    if (!status.ok()) return status;
    std::memcpy(bytes.data() + at, staging_.data(), copy.size());
  }
  return bytes;
}

uint64_t Harness::Submit(wire::Task task) {
  task.set_sequence(++sequence_);
  device_->Enqueue(task);
  return sequence_;
}

uint64_t Harness::SubmitAll(const std::vector<wire::Task>& tasks) {
  google::protobuf::RepeatedPtrField<wire::Task> packet(tasks.begin(), tasks.end());
  for (wire::Task& task : packet) task.set_sequence(++sequence_);
  device_->EnqueueAll(packet);
  return sequence_;
}

absl::Status Harness::Run(wire::Task task) { return recorder_->AwaitTask(Submit(std::move(task))); }

absl::StatusOr<uint64_t> Harness::Load(const wire::Code& code) {
  const std::string key = code.SerializeAsString();
  auto found = modules_.find(key);
  if (found != modules_.end()) return found->second;
  auto compiled = compiler_->Compile(subject_.description.target(), code);
  if (!compiled.ok()) {
    return absl::Status(compiled.status().code(),
                        absl::StrCat("compiling: ", std::string(compiled.status().message())));
  }
  absl::StatusOr<UniqueFd> object = CreateSealedCopy("object", compiled->object);
  if (!object.ok()) return object.status();
  wire::LoadModule load;
  load.set_module(++module_);
  load.set_size(compiled->object.size());
  *load.mutable_description() = compiled->description;
  auto loaded = device_->LoadModule(module_, *std::move(object), load);
  if (!loaded.ok()) {
    return absl::Status(loaded.status().code(),
                        absl::StrCat("loading: ", std::string(loaded.status().message())));
  }
  return modules_[key] = module_;
}

const ops::ClientFunction* Harness::Functions::Find(std::string_view name) const {
  auto found = known.find(std::string(name));
  return found == known.end() ? nullptr : &found->second;
}

absl::Status Harness::Define(const v1::Function& function, const std::string& id) {
  absl::StatusOr<ops::ClientFunction> read = ops::ReadFunction(function, id);
  if (read.ok()) functions_.known[id] = *std::move(read);
  return read.status();
}

absl::StatusOr<wire::Task> Harness::Prepare(const v1::Operation& operation,
                                            const std::vector<DeviceArray>& inputs,
                                            const DeviceArray* existing, DeviceArray* output,
                                            const wire::Code* instead) {
  std::vector<DeviceArray> outputs;
  absl::StatusOr<wire::Task> task = Prepare(
      operation, inputs, std::vector<const DeviceArray*>(operation.outputs_size(), existing),
      &outputs, instead);
  if (task.ok()) *output = outputs[0];
  return task;
}

absl::StatusOr<wire::Task> Harness::Prepare(const v1::Operation& operation,
                                            const std::vector<DeviceArray>& inputs,
                                            const std::vector<const DeviceArray*>& existing,
                                            std::vector<DeviceArray>* outputs,
                                            const wire::Code* instead) {
  std::vector<ops::Input> descriptions, targets;
  std::vector<ops::Location> slots;
  for (const DeviceArray& input : inputs) {
    // A scalar operand has a slot and no array.
    descriptions.push_back(input.arena == 0 ? ops::Input() : ops::Input(input.info));
    slots.push_back({input.arena, input.offset});
  }
  for (int j = 0; j < operation.outputs_size(); ++j) {
    const bool given = j < static_cast<int>(existing.size()) && existing[j] != nullptr;
    targets.push_back(given ? ops::Input(existing[j]->info) : ops::Input());
  }
  absl::StatusOr<ops::Plan> plan =
      ops::PlanOperation(operation, descriptions, targets, &functions_);
  if (!plan.ok()) return plan.status();
  for (size_t j = 0; j < plan->outputs.size(); ++j) {
    outputs->push_back(targets[j] ? *existing[j]
                                  : DeviceArray{kArena, Allocate(plan->outputs[j].size_bytes()),
                                                plan->outputs[j]});
    slots.push_back({outputs->back().arena, outputs->back().offset});
  }
  ops::Bind(&plan->task, slots);
  if (!plan->code) return plan->task;
  absl::StatusOr<uint64_t> module = Load(instead != nullptr ? *instead : *plan->code);
  if (!module.ok()) return module.status();
  ops::SetModule(&plan->task, *module);
  return plan->task;
}

absl::StatusOr<DeviceArray> Harness::Compute(const v1::Operation& operation,
                                             const std::vector<DeviceArray>& inputs,
                                             const DeviceArray* existing) {
  DeviceArray output;
  absl::StatusOr<wire::Task> task = Prepare(operation, inputs, existing, &output);
  if (!task.ok()) return task.status();
  if (absl::Status status = Run(*task); !status.ok()) return status;
  return output;
}

absl::StatusOr<std::vector<DeviceArray>> Harness::ComputeAll(
    const v1::Operation& operation, const std::vector<DeviceArray>& inputs,
    const std::vector<const DeviceArray*>& existing) {
  std::vector<DeviceArray> outputs;
  absl::StatusOr<wire::Task> task = Prepare(operation, inputs, existing, &outputs);
  if (!task.ok()) return task.status();
  if (absl::Status status = Run(*task); !status.ok()) return status;
  return outputs;
}

std::unique_ptr<Harness> DeviceTest::shared_;
absl::Status DeviceTest::reason_;

void DeviceTest::SetUpTestSuite() {
  if (shared_ != nullptr || !reason_.ok()) return;
  absl::StatusOr<SubjectUnderTest> subject = Subject();
  if (!subject.ok()) {
    reason_ = subject.status();
    return;
  }
  // A subject that exists but does not start is a failure, not a reason to skip.
  absl::StatusOr<std::unique_ptr<Harness>> harness = Harness::Start(*subject);
  ASSERT_TRUE(harness.ok()) << "starting the device: " << harness.status();
  shared_ = *std::move(harness);
}

void DeviceTest::SetUp() {
  if (!reason_.ok()) GTEST_SKIP() << reason_.message();
  ASSERT_NE(shared_, nullptr) << "the device did not start";
  shared_->Reset();
}

void EndSharedDevice() { DeviceTest::shared_.reset(); }

v1::Operation UfuncOf(const std::string& function, int num_inputs) {
  v1::Operation operation;
  operation.mutable_ufunc()->set_function(function);
  for (int i = 0; i < num_inputs; ++i) operation.mutable_ufunc()->add_inputs()->set_handle(i + 1);
  operation.add_outputs()->set_handle(100);
  return operation;
}

v1::Operation ReductionOf(v1::Reduction::Function function, std::vector<int32_t> axes) {
  v1::Operation operation;
  operation.mutable_reduction()->set_function(function);
  operation.mutable_reduction()->mutable_input()->set_handle(1);
  for (int32_t axis : axes) operation.mutable_reduction()->add_axes(axis);
  operation.add_outputs()->set_handle(100);
  return operation;
}

v1::Operation MatmulOf() {
  v1::Operation operation;
  operation.mutable_matmul()->mutable_left()->set_handle(1);
  operation.mutable_matmul()->mutable_right()->set_handle(2);
  operation.add_outputs()->set_handle(100);
  return operation;
}

}  // namespace stride::conformance
