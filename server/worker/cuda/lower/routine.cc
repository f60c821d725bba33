#include "server/worker/cuda/lower/routine.h"

#include <vector>

#include "server/worker/cuda/driver/cuda_status.h"
#include "server/worker/cuda/lower/emitted.h"

namespace stride::cuda {
namespace {

// Size of the fault in front of the memory between passes, which stays aligned.
constexpr uint64_t kFaultBytes = 64;
static_assert(sizeof(codegen::RoutineFault) <= kFaultBytes);

absl::StatusOr<std::vector<uint64_t>> FindOperands(const Lowering& lowering,
                                                   const wire::RoutineLaunch& launch) {
  std::vector<uint64_t> addresses;
  for (const wire::RoutineOperand& operand : launch.operands()) {
    std::vector<int64_t> extents(launch.extents().begin(), launch.extents().end());
    extents.insert(extents.end(), operand.own_extents().begin(), operand.own_extents().end());
    wire::Operand all = operand.operand();
    all.mutable_strides()->MergeFrom(operand.own_strides());
    absl::StatusOr<CUdeviceptr> address = lowering.arenas.Address(all, extents);
    if (!address.ok()) return address.status();
    addresses.push_back(*address);
  }
  return addresses;
}

}  // namespace

absl::Status LowerRoutine(const Lowering& lowering, KernelModule& module,
                          const wire::RoutineLaunch& launch, codegen::RoutineFault* fault) {
  auto addresses = FindOperands(lowering, launch);
  if (!addresses.ok()) return addresses.status();
  const codegen::RoutineTarget target{lowering.limits.num_multiprocessors};
  const codegen::RoutineShape shape = codegen::PlanRoutine(launch, target);
  if (shape.passes.empty()) return absl::OkStatus();
  CUdeviceptr scratch = 0;
  if (shape.may_fault || shape.scratch_bytes > 0) {
    absl::StatusOr<CUdeviceptr> reserved =
        lowering.scratch.Reserve(kFaultBytes + shape.scratch_bytes);
    if (!reserved.ok()) return reserved.status();
    scratch = *reserved;
  }
  const bool own_fault = shape.may_fault && lowering.device_fault == 0;
  if (own_fault) {
    STRIDE_CUDA_RETURN(lowering.driver.cuMemsetD8Async(scratch, 0, kFaultBytes, lowering.stream),
                       "clearing a fault");
  }
  codegen::LaunchBlock block = codegen::PackRoutine(launch, *addresses, scratch + kFaultBytes,
                                                    own_fault ? scratch : lowering.device_fault);
  for (const codegen::RoutinePass& pass : shape.passes) {
    codegen::SetPass(pass, &block);
    absl::Status status = LaunchEmitted(lowering, module, codegen::PhaseEntry(pass.phase).c_str(),
                                        codegen::PassShape(launch, pass, target), block);
    if (!status.ok()) return status;
  }
  if (!own_fault) return absl::OkStatus();
  return ToStatus(
      lowering.driver.cuMemcpyDtoHAsync(fault, scratch, sizeof(*fault), lowering.stream),
      "fetching a fault");
}

}  // namespace stride::cuda
