// Methods of ufuncs, and operations by index, order and count.
#include "client/cpp/src/operand_impl.h"
#include "client/cpp/src/operation_impl.h"

namespace stride {
namespace {

using internal::ToProto;
using internal::Use;

// The common fields of Gather, Scatter and ApplyAt.
template <typename Message>
void SetIndices(const std::vector<Operand>& indices, const IndexOptions& options, Message* message,
                Operation::Impl& impl) {
  for (const Operand& index : indices) *message->add_indices() = Use(index, impl);
  message->set_axis(options.axis);
  message->set_mode(static_cast<v1::IndexMode>(options.mode));
}

}  // namespace

Operation Operation::Accumulate(std::string_view function, const Operand& input,
                                const AccumulateOptions& options) {
  Operation out;
  auto* accumulation = out.impl_->message.mutable_accumulation();
  accumulation->set_function(std::string(function));
  *accumulation->mutable_input() = Use(input, *out.impl_);
  if (options.axis) accumulation->set_axis(*options.axis);
  accumulation->set_include_initial(options.include_initial);
  accumulation->set_reverse(options.reverse);
  accumulation->set_exclusive(options.exclusive);
  accumulation->set_data_type(ToProto(options.data_type));
  return out;
}

Operation Operation::ReduceAt(std::string_view function, const Operand& input,
                              const Operand& indices, int32_t axis, DataType data_type) {
  Operation out;
  auto* reduce = out.impl_->message.mutable_reduce_at();
  reduce->set_function(std::string(function));
  *reduce->mutable_input() = Use(input, *out.impl_);
  *reduce->mutable_indices() = Use(indices, *out.impl_);
  reduce->set_axis(axis);
  reduce->set_data_type(ToProto(data_type));
  return out;
}

Operation Operation::Outer(std::string_view function, const Operand& left, const Operand& right,
                           DataType data_type) {
  Operation out;
  auto* outer = out.impl_->message.mutable_outer();
  outer->set_function(std::string(function));
  *outer->mutable_left() = Use(left, *out.impl_);
  *outer->mutable_right() = Use(right, *out.impl_);
  outer->set_data_type(ToProto(data_type));
  return out;
}

Operation Operation::ApplyAt(std::string_view function, const Operand& values,
                             const std::vector<Operand>& indices, const IndexOptions& options) {
  Operation out;
  auto* apply = out.impl_->message.mutable_apply_at();
  apply->set_function(std::string(function));
  *apply->mutable_values() = Use(values, *out.impl_);
  SetIndices(indices, options, apply, *out.impl_);
  return out;
}

Operation Operation::Gufunc(std::string_view function, const std::vector<Operand>& inputs,
                            const GufuncOptions& options) {
  Operation out;
  auto* gufunc = out.impl_->message.mutable_gufunc();
  gufunc->set_function(std::string(function));
  for (const Operand& input : inputs) *gufunc->add_inputs() = Use(input, *out.impl_);
  gufunc->set_data_type(ToProto(options.data_type));
  for (const auto& axes : options.axes)
    gufunc->add_axes()->mutable_axes()->Assign(axes.begin(), axes.end());
  if (options.axis) gufunc->set_axis(*options.axis);
  gufunc->set_keep_dims(options.keep_dims);
  return out;
}

Operation Operation::Gather(const Operand& input, const std::vector<Operand>& indices,
                            const IndexOptions& options) {
  Operation out;
  auto* gather = out.impl_->message.mutable_gather();
  *gather->mutable_input() = Use(input, *out.impl_);
  SetIndices(indices, options, gather, *out.impl_);
  gather->set_along_axis(options.along_axis);
  return out;
}

Operation Operation::Scatter(const Operand& values, const std::vector<Operand>& indices,
                             const IndexOptions& options) {
  Operation out;
  auto* scatter = out.impl_->message.mutable_scatter();
  *scatter->mutable_values() = Use(values, *out.impl_);
  SetIndices(indices, options, scatter, *out.impl_);
  scatter->set_along_axis(options.along_axis);
  scatter->set_casting(static_cast<v1::Casting>(options.casting));
  return out;
}

Operation Operation::Compress(const Operand& input, const Operand& mask, int64_t count,
                              int32_t axis) {
  Operation out;
  auto* compress = out.impl_->message.mutable_compress();
  *compress->mutable_input() = Use(input, *out.impl_);
  *compress->mutable_mask() = Use(mask, *out.impl_);
  compress->set_count(count);
  compress->set_axis(axis);
  return out;
}

Operation Operation::Nonzero(const Operand& input, int64_t count, int rank) {
  Operation out;
  auto* nonzero = out.impl_->message.mutable_nonzero();
  *nonzero->mutable_input() = Use(input, *out.impl_);
  nonzero->set_count(count);
  out.impl_->num_outputs = rank;
  return out;
}

Operation Operation::Sort(const Operand& input, const SortOptions& options) {
  Operation out;
  auto* sort = out.impl_->message.mutable_sort();
  *sort->mutable_input() = Use(input, *out.impl_);
  if (options.axis) sort->set_axis(*options.axis);
  sort->set_descending(options.descending);
  sort->set_indices(options.indices);
  for (const Operand& key : options.more_keys) *sort->add_more_keys() = Use(key, *out.impl_);
  return out;
}

Operation Operation::Select(const Operand& input, const Operand& ranks,
                            std::optional<int32_t> axis) {
  Operation out;
  auto* select = out.impl_->message.mutable_select();
  *select->mutable_input() = Use(input, *out.impl_);
  *select->mutable_ranks() = Use(ranks, *out.impl_);
  if (axis) select->set_axis(*axis);
  return out;
}

Operation Operation::Partition(const Operand& input, const std::vector<int64_t>& kth,
                               const PartitionOptions& options) {
  Operation out;
  auto* partition = out.impl_->message.mutable_partition();
  *partition->mutable_input() = Use(input, *out.impl_);
  partition->mutable_kth()->Assign(kth.begin(), kth.end());
  if (options.axis) partition->set_axis(*options.axis);
  partition->set_indices(options.indices);
  return out;
}

Operation Operation::SearchSorted(const Operand& sorted, const Operand& values, bool right) {
  Operation out;
  auto* search = out.impl_->message.mutable_search();
  *search->mutable_sorted() = Use(sorted, *out.impl_);
  *search->mutable_values() = Use(values, *out.impl_);
  search->set_right(right);
  return out;
}

Operation Operation::TopK(const Operand& input, int64_t k, const TopKOptions& options) {
  Operation out;
  auto* top = out.impl_->message.mutable_top_k();
  *top->mutable_input() = Use(input, *out.impl_);
  top->set_k(k);
  if (options.axis) top->set_axis(*options.axis);
  top->set_smallest(options.smallest);
  out.impl_->num_outputs = 2;
  return out;
}

Operation Operation::Histogram(const Operand& input, const UniformBins& bins) {
  Operation out;
  auto* histogram = out.impl_->message.mutable_histogram();
  *histogram->mutable_input() = Use(input, *out.impl_);
  auto* uniform = histogram->mutable_uniform();
  uniform->set_count(bins.count);
  uniform->set_low(bins.low);
  uniform->set_high(bins.high);
  return out;
}

Operation Operation::Histogram(const Operand& input, const UniformBins& bins,
                               const Operand& weights) {
  Operation out = Histogram(input, bins);
  *out.impl_->message.mutable_histogram()->mutable_weights() = Use(weights, *out.impl_);
  return out;
}

Operation Operation::Histogram(const Operand& input, const Operand& edges) {
  Operation out;
  auto* histogram = out.impl_->message.mutable_histogram();
  *histogram->mutable_input() = Use(input, *out.impl_);
  *histogram->mutable_edges() = Use(edges, *out.impl_);
  return out;
}

Operation Operation::Histogram(const Operand& input, const Operand& edges, const Operand& weights) {
  Operation out = Histogram(input, edges);
  *out.impl_->message.mutable_histogram()->mutable_weights() = Use(weights, *out.impl_);
  return out;
}

Operation Operation::GroupReduce(std::string_view function, const Operand& values,
                                 const Operand& groups, int64_t num_groups,
                                 const GroupReduceOptions& options) {
  Operation out;
  auto* reduce = out.impl_->message.mutable_group_reduce();
  reduce->set_function(std::string(function));
  *reduce->mutable_values() = Use(values, *out.impl_);
  *reduce->mutable_groups() = Use(groups, *out.impl_);
  reduce->set_num_groups(num_groups);
  reduce->set_axis(options.axis);
  reduce->set_data_type(ToProto(options.data_type));
  return out;
}

Operation Operation::Interpolate(const Operand& input, const Operand& known, const Operand& values,
                                 const InterpolateOptions& options) {
  Operation out;
  auto* interpolate = out.impl_->message.mutable_interpolate();
  *interpolate->mutable_input() = Use(input, *out.impl_);
  *interpolate->mutable_known() = Use(known, *out.impl_);
  *interpolate->mutable_values() = Use(values, *out.impl_);
  if (options.left) *interpolate->mutable_left() = options.left->impl().message.scalar();
  if (options.right) *interpolate->mutable_right() = options.right->impl().message.scalar();
  return out;
}

Operation Operation::Correlate(const Operand& left, const Operand& right, CorrelateMode mode) {
  Operation out;
  auto* correlate = out.impl_->message.mutable_correlate();
  *correlate->mutable_left() = Use(left, *out.impl_);
  *correlate->mutable_right() = Use(right, *out.impl_);
  correlate->set_mode(static_cast<v1::Correlate::Mode>(mode));
  return out;
}

Operation Operation::Convolve(const Operand& left, const Operand& right, CorrelateMode mode) {
  Operation out = Correlate(left, right, mode);
  out.impl_->message.mutable_correlate()->set_convolve(true);
  return out;
}

}  // namespace stride
