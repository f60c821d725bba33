#include "server/worker/cuda/lower/matmul_plan.h"

namespace stride::cuda {
namespace {

// Merges neighbouring batch axes where a step of the outer axis equals the whole inner axis for
// both factors (the output is contiguous). Drops axes of one element.
std::vector<MatmulLoop> CollapseBatches(const wire::MatmulLaunch& launch, int64_t item) {
  std::vector<MatmulLoop> axes;
  for (int i = 0; i < launch.batch_extents_size(); ++i) {
    const int64_t extent = launch.batch_extents(i);
    if (extent == 1) continue;
    const MatmulLoop axis{extent, launch.left().strides(i) / item, launch.right().strides(i) / item,
                          0};
    if (!axes.empty() && axes.back().left_step == axis.left_step * extent &&
        axes.back().right_step == axis.right_step * extent) {
      axes.back() = {axes.back().extent * extent, axis.left_step, axis.right_step, 0};
    } else {
      axes.push_back(axis);
    }
  }
  int64_t step = launch.m() * launch.n();
  for (size_t i = axes.size(); i-- > 0;) {
    axes[i].output_step = step;
    step *= axes[i].extent;
  }
  return axes;
}

MatmulFactor MakeFactor(const wire::Operand& operand, int64_t rows, int64_t columns, int64_t item) {
  MatmulFactor factor;
  factor.rows = rows;
  factor.columns = columns;
  factor.row_stride = operand.strides(operand.strides_size() - 2) / item;
  factor.column_stride = operand.strides(operand.strides_size() - 1) / item;
  // The stride of an axis with one element is never used: set it as in a contiguous matrix.
  if (columns == 1) factor.column_stride = 1;
  if (rows == 1) factor.row_stride = factor.column_stride == 1 ? columns : 1;
  return factor;
}

void ChooseLayout(MatmulFactor* factor) {
  if (factor->batch_stride >= 0) {
    if (factor->column_stride == 1 && factor->row_stride >= factor->columns) {
      factor->leading = factor->row_stride;
      return;
    }
    if (factor->row_stride == 1 && factor->column_stride >= factor->rows) {
      factor->transposed = true;
      factor->leading = factor->column_stride;
      return;
    }
  }
  factor->copy = true;
  factor->leading = factor->columns;
}

}  // namespace

MatmulPlan PlanMatmul(const wire::MatmulLaunch& launch, int64_t item_bytes) {
  MatmulPlan plan;
  plan.m = launch.m();
  plan.n = launch.n();
  plan.k = launch.k();
  plan.left = MakeFactor(launch.left(), plan.m, plan.k, item_bytes);
  plan.right = MakeFactor(launch.right(), plan.k, plan.n, item_bytes);
  plan.loops = CollapseBatches(launch, item_bytes);
  // A stack of matrices times one matrix is one tall product.
  if (!plan.loops.empty() && plan.loops.back().right_step == 0 && plan.left.column_stride == 1 &&
      plan.left.row_stride >= plan.k &&
      plan.loops.back().left_step == plan.m * plan.left.row_stride) {
    plan.m *= plan.loops.back().extent;
    plan.left.rows = plan.m;
    plan.loops.pop_back();
  }
  if (!plan.loops.empty()) {
    const MatmulLoop& inner = plan.loops.back();
    plan.batch_count = inner.extent;
    plan.left.batch_stride = inner.left_step;
    plan.right.batch_stride = inner.right_step;
    plan.output_batch_stride = inner.output_step;
    plan.loops.pop_back();
  }
  ChooseLayout(&plan.left);
  ChooseLayout(&plan.right);
  return plan;
}

}  // namespace stride::cuda
