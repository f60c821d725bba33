#include "client/cpp/src/convert.h"

#include "client/cpp/src/status.h"
#include "stride/v1/array.pb.h"
#include "stride/v1/device_service.pb.h"
#include "stride/v1/job_service.pb.h"
#include "stride/v1/kernel_service.pb.h"
#include "stride/v1/operation.pb.h"

namespace stride::internal {
namespace {

std::chrono::nanoseconds FromProto(const google::protobuf::Duration& d) {
  return std::chrono::seconds(d.seconds()) + std::chrono::nanoseconds(d.nanos());
}

std::chrono::system_clock::time_point FromProto(const google::protobuf::Timestamp& t) {
  const auto since = std::chrono::seconds(t.seconds()) + std::chrono::nanoseconds(t.nanos());
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(since));
}

}  // namespace

void ToProto(const ArraySpec& spec, v1::ArraySpec* out) {
  out->set_data_type(static_cast<v1::DataType>(spec.data_type));
  out->mutable_shape()->Assign(spec.shape.begin(), spec.shape.end());
}

void ToProto(std::chrono::nanoseconds duration, google::protobuf::Duration* out) {
  out->set_seconds(duration.count() / 1000000000);
  out->set_nanos(static_cast<int32_t>(duration.count() % 1000000000));
}

ArraySpec FromProto(const v1::ArraySpec& spec) {
  return {static_cast<DataType>(spec.data_type()), {spec.shape().begin(), spec.shape().end()}};
}

void ToProto(const Sharding& sharding, v1::Sharding* out) {
  out->set_axis(sharding.axis);
  out->set_replicated(sharding.replicated);
  for (const std::string& device : sharding.devices) out->add_devices(device);
}

Sharding FromProto(const v1::Sharding& sharding) {
  return {.axis = sharding.axis(),
          .replicated = sharding.replicated(),
          .devices = {sharding.devices().begin(), sharding.devices().end()}};
}

ArrayInfo FromProto(const v1::Array& array) {
  ArrayInfo info{.name = array.name(),
                 .spec = {static_cast<DataType>(array.data_type()),
                          {array.shape().begin(), array.shape().end()}},
                 .strides = {array.strides().begin(), array.strides().end()},
                 .size_bytes = array.size_bytes(),
                 .state = static_cast<ArrayInfo::State>(array.state()),
                 .devices = {array.devices().begin(), array.devices().end()}};
  if (array.state() == v1::Array::STATE_FAILED) info.error = ToError(array.error());
  if (array.has_sharding()) info.sharding = FromProto(array.sharding());
  return info;
}

stride::Timeline FromProto(const v1::Timeline& timeline) {
  stride::Timeline out{.device = timeline.device(),
                       .queue = FromProto(timeline.queue()),
                       .compile = FromProto(timeline.compile()),
                       .upload = FromProto(timeline.upload()),
                       .run = FromProto(timeline.run()),
                       .download = FromProto(timeline.download())};
  // Absent times are the epoch, also in messages.
  out.accepted = FromProto(timeline.submit_time());
  out.started = FromProto(timeline.start_time());
  out.ended = FromProto(timeline.end_time());
  if (timeline.has_submit_time() && timeline.has_end_time()) out.total = out.ended - out.accepted;
  return out;
}

Device FromProto(const v1::Device& device) {
  return {.name = device.name(),
          .kind = device.kind(),
          .model = device.model(),
          .index = device.index(),
          .state = static_cast<Device::State>(device.state()),
          .state_reason = device.state_reason(),
          .memory_total_bytes = device.memory_total_bytes(),
          .num_compute_units = device.num_compute_units(),
          .target = device.target(),
          .pci_bus_id = device.pci_bus_id(),
          .driver_version = device.driver_version(),
          .max_workers = device.max_workers()};
}

DeviceSample FromProto(const v1::DeviceSample& s) {
  DeviceSample out;
  out.device = s.device();
  out.time = FromProto(s.time());
  if (s.has_utilization_ratio()) out.utilization_ratio = s.utilization_ratio();
  if (s.has_memory_utilization_ratio()) out.memory_utilization_ratio = s.memory_utilization_ratio();
  if (s.has_memory_used_bytes()) out.memory_used_bytes = s.memory_used_bytes();
  if (s.has_memory_total_bytes()) out.memory_total_bytes = s.memory_total_bytes();
  if (s.has_temperature_celsius()) out.temperature_celsius = s.temperature_celsius();
  if (s.has_power_watts()) out.power_watts = s.power_watts();
  if (s.has_power_limit_watts()) out.power_limit_watts = s.power_limit_watts();
  if (s.has_sm_clock_hertz()) out.sm_clock_hertz = s.sm_clock_hertz();
  if (s.has_memory_clock_hertz()) out.memory_clock_hertz = s.memory_clock_hertz();
  out.arena_bytes = s.arena_bytes();
  out.array_bytes = s.array_bytes();
  out.queue_depth = s.queue_depth();
  out.queue_seconds = s.queue_seconds();
  out.busy_seconds = s.busy_seconds();
  out.jobs_succeeded = s.jobs_succeeded();
  out.jobs_failed = s.jobs_failed();
  out.upload_bytes = s.upload_bytes();
  out.download_bytes = s.download_bytes();
  out.num_workers = s.num_workers();
  out.worker_restarts = s.worker_restarts();
  return out;
}

Job FromProto(const v1::Job& job) {
  Job out{.name = job.name(), .state = static_cast<Job::State>(job.state()), .label = job.label()};
  if (job.has_error()) out.error = ToError(job.error());
  out.create_time = FromProto(job.create_time());
  out.end_time = FromProto(job.end_time());
  for (const auto& timeline : job.timelines()) out.timelines.push_back(FromProto(timeline));
  for (const auto& result : job.results()) out.results.push_back(FromProto(result));
  return out;
}

Module FromProto(const v1::Module& module) {
  Module out{.name = module.name(), .log = module.log()};
  for (const auto& kernel : module.kernels()) {
    KernelInfo info{.entry = kernel.entry(), .target = kernel.target()};
    for (const auto& parameter : kernel.parameters())
      info.parameter_types.push_back(parameter.type());
    info.max_threads_per_block = kernel.max_threads_per_block();
    out.kernels.push_back(std::move(info));
  }
  for (const auto& global : module.global_infos()) {
    out.globals.push_back({.name = global.name(),
                           .target = global.target(),
                           .size_bytes = global.size_bytes(),
                           .constant = global.constant(),
                           .data_type = static_cast<DataType>(global.data_type())});
  }
  return out;
}

}  // namespace stride::internal
