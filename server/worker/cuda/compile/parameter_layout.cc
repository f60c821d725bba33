#include "server/worker/cuda/compile/parameter_layout.h"

namespace stride::cuda {
namespace {

bool SameSizes(const std::vector<KernelInfo::Slot>& slots,
               const std::vector<ParameterType>& types) {
  if (slots.size() != types.size()) return false;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].size != types[i].size) return false;
  }
  return true;
}

}  // namespace

wire::KernelDescription DescribeKernel(const std::string& entry, const KernelInfo& info,
                                       const std::optional<std::vector<ParameterType>>& types) {
  wire::KernelDescription description;
  description.set_entry(entry);
  description.set_symbol(info.symbol);
  description.set_parameters_known(true);
  description.set_static_shared_bytes(info.static_shared_bytes);
  description.set_max_threads_per_block(info.max_threads);
  const bool typed = types && SameSizes(info.parameters, *types);
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    wire::Parameter* parameter = description.add_parameters();
    if (typed) *parameter = DescribeType((*types)[i]);
    if (!typed && info.parameters[i].pointer) parameter->set_kind(wire::Parameter::KIND_POINTER);
    parameter->set_offset(info.parameters[i].offset);
    parameter->set_size(info.parameters[i].size);
  }
  return description;
}

}  // namespace stride::cuda
