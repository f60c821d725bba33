#include "server/worker/cuda/lower/linalg_batch.h"

#include <algorithm>
#include <limits>

#include "server/worker/cuda/driver/cuda_status.h"
#include "server/worker/cuda/lower/element_types.h"
#include "server/worker/cuda/lower/linalg_layout.h"

namespace stride::cuda {
namespace {

using Request = wire::LinalgLaunch;

// Larger matrices fill a GPU one at a time.
constexpr int64_t kMostRows = 256;
// Scratch memory of one group of matrices; less than Scratch keeps for the next task.
constexpr uint64_t kGroupBytes = 32 << 20;
constexpr char kPointersEntry[] = "stride_matrix_pointers";
constexpr char kWidenEntry[] = "stride_widen_pivots";
constexpr uint32_t kThreads = 256;

// One thread per element, striding by the grid's width.
constexpr char kKernels[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry stride_matrix_pointers(
  .param .u64 pointers, .param .u64 base, .param .u64 bytes, .param .u64 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  .reg .b64 %d<12>;
  ld.param.u64 %d1, [pointers];
  ld.param.u64 %d2, [base];
  ld.param.u64 %d3, [bytes];
  ld.param.u64 %d4, [count];
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %d5, %r1, %r2;
  cvt.u64.u32 %d6, %r3;
  add.s64 %d5, %d5, %d6;
  mul.wide.u32 %d7, %r4, %r2;
loop:
  setp.ge.s64 %p1, %d5, %d4;
  @%p1 bra done;
  mad.lo.s64 %d8, %d5, %d3, %d2;
  shl.b64 %d9, %d5, 3;
  add.s64 %d9, %d1, %d9;
  st.global.u64 [%d9], %d8;
  add.s64 %d5, %d5, %d7;
  bra loop;
done:
  ret;
}
.visible .entry stride_widen_pivots(
  .param .u64 from, .param .u64 to, .param .u64 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %d<12>;
  ld.param.u64 %d1, [from];
  ld.param.u64 %d2, [to];
  ld.param.u64 %d3, [count];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d2, %d2;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %d5, %r1, %r2;
  cvt.u64.u32 %d6, %r3;
  add.s64 %d5, %d5, %d6;
  mul.wide.u32 %d7, %r4, %r2;
loop:
  setp.ge.s64 %p1, %d5, %d3;
  @%p1 bra done;
  shl.b64 %d8, %d5, 2;
  add.s64 %d8, %d1, %d8;
  ld.global.u32 %r5, [%d8];
  cvt.s64.s32 %d9, %r5;
  shl.b64 %d10, %d5, 3;
  add.s64 %d10, %d2, %d10;
  st.global.u64 [%d10], %d9;
  add.s64 %d5, %d5, %d7;
  bra loop;
done:
  ret;
}
)";

Grid GridOver(int64_t elements) {
  Grid grid;
  grid.block[0] = kThreads;
  grid.grid[0] =
      static_cast<uint32_t>(std::min<int64_t>((elements + kThreads - 1) / kThreads, 1024));
  return grid;
}

// The trailing batch axes over which one stride per operand leads to the next matrix, as a number
// of matrices.
struct BatchRun {
  int64_t count = 1;
  std::vector<int64_t> strides;  // in bytes; inputs, then outputs
};

template <typename Function>
void ForOperands(const Request& launch, Function function) {
  for (const wire::Operand& operand : launch.inputs()) function(operand);
  for (const wire::Operand& operand : launch.outputs()) function(operand);
}

BatchRun LastRun(const Request& launch, const std::vector<int64_t>& batch) {
  BatchRun run;
  for (size_t i = batch.size(); i-- > 0;) {
    if (batch[i] == 1) continue;
    const int axis = static_cast<int>(i);
    std::vector<int64_t> strides;
    ForOperands(launch, [&](const wire::Operand& one) { strides.push_back(one.strides(axis)); });
    if (run.count > 1) {
      for (size_t k = 0; k < strides.size(); ++k)
        if (strides[k] != run.strides[k] * run.count) return run;
    } else {
      run.strides = strides;
    }
    run.count *= batch[i];
  }
  return run;
}

// Matrices in column-major order, read by rows; in elements.
GatherSource ColumnMajor(CUdeviceptr address, int64_t leading, int64_t matrix_stride,
                         int64_t lowest_diagonal = std::numeric_limits<int64_t>::min(),
                         int64_t highest_diagonal = std::numeric_limits<int64_t>::max()) {
  GatherSource source;
  source.address = address;
  source.row_stride = 1;
  source.column_stride = leading;
  source.matrix_stride = matrix_stride;
  source.lowest_diagonal = lowest_diagonal;
  source.highest_diagonal = highest_diagonal;
  return source;
}

}  // namespace

// Consecutive matrices of one run.
struct LinalgBatch::Group {
  int64_t first = 0;  // in the batch
  int64_t count = 0;
};

struct LinalgBatch::Job {
  const Task& task;
  Gather& gather;
  int64_t item = 0;
  BatchRun run;
  int64_t most = 1;  // matrices of a group
  // In scratch memory, for one group; `infos` for the whole batch.
  CUdeviceptr fault = 0, infos = 0, a = 0, b = 0, c = 0, pivots = 0, a_pointers = 0, b_pointers = 0,
              work = 0;
  uint64_t work_bytes = 0;

  const Request& launch() const { return task.launch; }
  DType dtype() const { return task.shape.dtype; }
  int64_t m() const { return launch().m(); }
  int64_t n() const { return launch().n(); }
  int64_t least() const { return std::min(m(), n()); }
  CUdeviceptr InfoOf(const Group& group) const {
    return infos + static_cast<CUdeviceptr>(group.first) * sizeof(int);
  }
  CUdeviceptr OutputOf(const Group& group, int output) const {
    return task.outputs[output] +
           OffsetOf(launch().outputs(output), task.shape.batch_extents, group.first);
  }
};

std::string LinalgBatch::Ptx() { return kKernels; }

absl::Status LinalgBatch::Prepare(const Lowering& lowering) {
  if (prepared_) return absl::OkStatus();
  if (solver_ == nullptr) {
    auto solver = BatchSolver::Open(lowering.driver, lowering.stream);
    if (!solver.ok()) return solver.status();
    solver_ = *std::move(solver);
  }
  wire::ModuleDescription description;
  for (auto [entry, num_parameters] : {std::pair(kPointersEntry, 4), std::pair(kWidenEntry, 3)}) {
    wire::KernelDescription* kernel = description.add_kernels();
    kernel->set_entry(entry);
    kernel->set_symbol(entry);
    kernel->set_parameters_known(true);
    for (int i = 0; i < num_parameters; ++i) {
      wire::Parameter* parameter = kernel->add_parameters();
      parameter->set_offset(8 * i);
      parameter->set_size(8);
    }
  }
  auto module = KernelModule::Load(lowering.driver, kKernels, description);
  if (!module.ok()) return module.status();
  module_ = *std::move(module);
  prepared_ = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> LinalgBatch::Takes(const Task& task) {
  const Request& launch = task.launch;
  const int64_t m = launch.m(), n = launch.n();
  if (task.shape.num_matrices < 2 || m == 0 || n == 0 || m > kMostRows || n > kMostRows)
    return false;
  bool is_eigh = false;
  switch (launch.function()) {
    case Request::FUNCTION_CHOLESKY:
    case Request::FUNCTION_INVERSE:
    case Request::FUNCTION_SOLVE:
      break;
    case Request::FUNCTION_LU:
      if (m != n) return false;
      break;
    case Request::FUNCTION_EIGH:
      is_eigh = true;
      break;
    case Request::FUNCTION_SVD:
      // The library returns V; its complex conjugate is not implemented here.
      if (std::max(m, n) > BatchSolver::kMostSvd || IsComplex(task.shape.dtype)) return false;
      if (!launch.values_only() && launch.full()) return false;
      break;
    default:
      return false;
  }
  const BatchRun run = LastRun(launch, task.shape.batch_extents);
  if (run.count < 2) return false;
  // Results are written one matrix after another.
  for (int j = 0; j < launch.outputs_size(); ++j) {
    const auto& matrix = task.shape.outputs[j];
    const int64_t bytes = matrix.rows * matrix.columns * ItemSize(matrix.dtype);
    if (run.strides[launch.inputs_size() + j] != bytes) return false;
  }
  if (absl::Status s = Prepare(task.lowering); !s.ok()) return s;
  return !is_eigh || solver_->HasEigh();
}

absl::StatusOr<LinalgBatch::Notes> LinalgBatch::Run(const Task& task, Gather& gather,
                                                    uint64_t fault_bytes) {
  Job job{task, gather};
  job.item = ItemSize(task.shape.dtype);
  job.run = LastRun(task.launch, task.shape.batch_extents);
  if (absl::Status s = Reserve(job, fault_bytes); !s.ok()) return s;
  for (int64_t first = 0; first < task.shape.num_matrices; first += job.run.count) {
    for (int64_t begin = 0; begin < job.run.count; begin += job.most) {
      const Group group{first + begin, std::min(job.most, job.run.count - begin)};
      if (absl::Status s = RunGroup(job, group); !s.ok()) return s;
    }
  }
  return Notes{job.fault, job.infos};
}

absl::Status LinalgBatch::Reserve(Job& job, uint64_t fault_bytes) {
  const int64_t m = job.m(), n = job.n();
  const Request::Function function = job.launch().function();
  uint64_t a = Bytes(m, n, job.item), b = 0, c = 0, pivots = 0;
  switch (function) {
    case Request::FUNCTION_INVERSE:
    case Request::FUNCTION_SOLVE:
      b = Bytes(n, function == Request::FUNCTION_SOLVE ? job.launch().k() : n, job.item);
      [[fallthrough]];
    case Request::FUNCTION_LU:
      pivots = Bytes(n, 1, sizeof(int));
      break;
    case Request::FUNCTION_SVD:
      b = Bytes(m, m, job.item);
      c = Bytes(n, n, job.item);
      break;
    default:
      break;
  }
  const uint64_t one = a + b + c + pivots + 2 * sizeof(CUdeviceptr);
  job.most = std::clamp<int64_t>(static_cast<int64_t>(kGroupBytes / one), 1, job.run.count);
  if (function == Request::FUNCTION_INVERSE) c = Bytes(n, n, job.item);  // one identity for all
  const Group whole{0, job.most};
  const auto work = Work(job, whole);
  if (!work.ok()) return work.status();
  job.work_bytes = work->device_bytes();
  Layout layout;
  const uint64_t fault_at = layout.Add(fault_bytes);
  const uint64_t infos_at = layout.Add(Bytes(job.task.shape.num_matrices, 1, sizeof(int)));
  const uint64_t cleared = layout.size(), count = static_cast<uint64_t>(job.most);
  const uint64_t a_at = layout.Add(a * count), b_at = layout.Add(b * count),
                 c_at = layout.Add(function == Request::FUNCTION_INVERSE ? c : c * count),
                 pivots_at = layout.Add(pivots * count),
                 a_pointers_at = layout.Add(sizeof(CUdeviceptr) * count),
                 b_pointers_at = layout.Add(sizeof(CUdeviceptr) * count),
                 work_at = layout.Add(job.work_bytes);
  auto scratch = job.task.lowering.scratch.Reserve(layout.size());
  if (!scratch.ok()) return scratch.status();
  job.fault = *scratch + fault_at;
  job.infos = *scratch + infos_at;
  job.a = *scratch + a_at;
  job.b = *scratch + b_at;
  job.c = *scratch + c_at;
  job.pivots = *scratch + pivots_at;
  job.a_pointers = *scratch + a_pointers_at;
  job.b_pointers = *scratch + b_pointers_at;
  job.work = *scratch + work_at;
  const Lowering& lowering = job.task.lowering;
  return ToStatus(lowering.driver.cuMemsetD8Async(*scratch, 0, cleared, lowering.stream),
                  "clearing a fault");
}

absl::StatusOr<SolverWork> LinalgBatch::Work(Job& job, const Group& group) {
  const bool vectors = !job.launch().values_only();
  const CUdeviceptr sample = job.task.inputs[0];
  switch (job.launch().function()) {
    case Request::FUNCTION_EIGH:
      return solver_->EighWork(job.dtype(), vectors, job.launch().upper(), job.n(), sample,
                               group.count);
    case Request::FUNCTION_SVD:
      return solver_->SvdWork(job.dtype(), job.m(), job.n(), sample, group.count);
    default:
      return SolverWork();
  }
}

absl::StatusOr<Solver::Call> LinalgBatch::CallOf(Job& job, const Group& group) {
  const auto work = Work(job, group);
  if (!work.ok()) return work.status();
  return Solver::Call{*work, job.work, job.work_bytes, job.InfoOf(group)};
}

absl::Status LinalgBatch::RunGroup(Job& job, const Group& group) {
  switch (job.launch().function()) {
    case Request::FUNCTION_CHOLESKY:
      return Cholesky(job, group);
    case Request::FUNCTION_LU:
      return Lu(job, group);
    case Request::FUNCTION_EIGH:
      return Eigh(job, group);
    case Request::FUNCTION_SVD:
      return Svd(job, group);
    default:
      return Solve(job, group);
  }
}

absl::Status LinalgBatch::CopyIn(Job& job, const Group& group, int input, CUdeviceptr to) {
  const wire::Operand& operand = job.launch().inputs(input);
  const auto& matrix = job.task.shape.inputs[input];
  const int rank = operand.strides_size();
  // The columns of a matrix are the rows of its copy.
  GatherSource source;
  source.address =
      job.task.inputs[input] + OffsetOf(operand, job.task.shape.batch_extents, group.first);
  source.rows = matrix.columns;
  source.columns = matrix.rows;
  source.num_matrices = group.count;
  source.row_stride = operand.strides(rank - 1) / job.item;
  source.column_stride = operand.strides(rank - 2) / job.item;
  source.matrix_stride = job.run.strides[input] / job.item;
  // Clear the other triangle, since the library may read it.
  if (job.launch().function() == Request::FUNCTION_CHOLESKY ||
      job.launch().function() == Request::FUNCTION_EIGH) {
    (job.launch().upper() ? source.highest_diagonal : source.lowest_diagonal) = 0;
  }
  return job.gather.Run(job.task.lowering, source, job.item, to);
}

absl::Status LinalgBatch::CopyOut(Job& job, const Group& group, const GatherSource& from,
                                  int output) {
  const auto& matrix = job.task.shape.outputs[output];
  GatherSource source = from;
  source.rows = matrix.rows;
  source.columns = matrix.columns;
  source.num_matrices = group.count;
  return job.gather.Run(job.task.lowering, source, job.item, job.OutputOf(group, output));
}

absl::Status LinalgBatch::SetIdentities(Job& job, const Group& group) {
  const Lowering& lowering = job.task.lowering;
  const int64_t n = job.n();
  STRIDE_CUDA_RETURN(lowering.driver.cuMemsetD8Async(job.c, 0, n * n * job.item, lowering.stream),
                     "clearing a matrix");
  // The upper half of 1 in each element of the diagonal.
  const bool twice = IsDoublePrecision(job.dtype());
  STRIDE_CUDA_RETURN(
      lowering.driver.cuMemsetD2D32Async(job.c + (twice ? 4 : 0), (n + 1) * job.item,
                                         twice ? 0x3ff00000 : 0x3f800000, 1, n, lowering.stream),
      "making an identity matrix");
  GatherSource source;
  source.address = job.c;
  source.rows = source.columns = source.row_stride = n;
  source.column_stride = 1;
  source.num_matrices = group.count;
  return job.gather.Run(lowering, source, job.item, job.b);
}

absl::Status LinalgBatch::SetPointers(Job& job, const Group& group, CUdeviceptr pointers,
                                      CUdeviceptr base, int64_t bytes) {
  absl::StatusOr<Kernel*> kernel = module_.Find(kPointersEntry);
  if (!kernel.ok()) return kernel.status();
  uint64_t to = pointers, from = base;
  int64_t step = bytes, count = group.count;
  void* parameters[] = {&to, &from, &step, &count};
  const Lowering& lowering = job.task.lowering;
  return Launch(lowering.driver, lowering.stream, **kernel, GridOver(count),
                absl::MakeSpan(parameters));
}

absl::Status LinalgBatch::Widen(Job& job, CUdeviceptr from, CUdeviceptr to, int64_t count) {
  absl::StatusOr<Kernel*> kernel = module_.Find(kWidenEntry);
  if (!kernel.ok()) return kernel.status();
  uint64_t source = from, destination = to;
  void* parameters[] = {&source, &destination, &count};
  const Lowering& lowering = job.task.lowering;
  return Launch(lowering.driver, lowering.stream, **kernel, GridOver(count),
                absl::MakeSpan(parameters));
}

absl::Status LinalgBatch::Cholesky(Job& job, const Group& group) {
  const bool upper = job.launch().upper();
  const int64_t n = job.n();
  if (absl::Status s = CopyIn(job, group, 0, job.a); !s.ok()) return s;
  absl::Status s = SetPointers(job, group, job.a_pointers, job.a, n * n * job.item);
  if (!s.ok()) return s;
  s = solver_->Cholesky(job.dtype(), upper, n, job.a_pointers, job.InfoOf(group), group.count);
  if (!s.ok()) return s;
  return CopyOut(job, group, ColumnMajor(job.a, n, n * n, upper ? 0 : -n, upper ? n : 0), 0);
}

absl::Status LinalgBatch::Factorize(Job& job, const Group& group) {
  const int64_t n = job.n();
  if (absl::Status s = CopyIn(job, group, 0, job.a); !s.ok()) return s;
  absl::Status s = SetPointers(job, group, job.a_pointers, job.a, n * n * job.item);
  if (!s.ok()) return s;
  return solver_->Lu(job.dtype(), n, job.a_pointers, job.pivots, job.InfoOf(group), group.count);
}

absl::Status LinalgBatch::Solve(Job& job, const Group& group) {
  const bool inverse = job.launch().function() == Request::FUNCTION_INVERSE;
  const int64_t n = job.n(), columns = inverse ? n : job.launch().k();
  if (absl::Status s = Factorize(job, group); !s.ok()) return s;
  absl::Status s = inverse ? SetIdentities(job, group) : CopyIn(job, group, 1, job.b);
  if (!s.ok()) return s;
  s = SetPointers(job, group, job.b_pointers, job.b, n * columns * job.item);
  if (!s.ok()) return s;
  s = solver_->SolveByLu(job.dtype(), n, columns, job.a_pointers, job.pivots, job.b_pointers,
                         group.count);
  return s.ok() ? CopyOut(job, group, ColumnMajor(job.b, n, n * columns), 0) : s;
}

absl::Status LinalgBatch::Lu(Job& job, const Group& group) {
  const int64_t n = job.n();
  if (absl::Status s = Factorize(job, group); !s.ok()) return s;
  if (absl::Status s = Widen(job, job.pivots, job.OutputOf(group, 1), n * group.count); !s.ok())
    return s;
  return CopyOut(job, group, ColumnMajor(job.a, n, n * n), 0);
}

absl::Status LinalgBatch::Eigh(Job& job, const Group& group) {
  const bool vectors = !job.launch().values_only();
  const int64_t n = job.n();
  if (absl::Status s = CopyIn(job, group, 0, job.a); !s.ok()) return s;
  const auto call = CallOf(job, group);
  if (!call.ok()) return call.status();
  absl::Status s = solver_->Eigh(job.dtype(), vectors, job.launch().upper(), n, job.a,
                                 job.OutputOf(group, 0), group.count, *call);
  return s.ok() && vectors ? CopyOut(job, group, ColumnMajor(job.a, n, n * n), 1) : s;
}

absl::Status LinalgBatch::Svd(Job& job, const Group& group) {
  const bool vectors = !job.launch().values_only();
  const int64_t m = job.m(), n = job.n();
  if (absl::Status s = CopyIn(job, group, 0, job.a); !s.ok()) return s;
  const auto call = CallOf(job, group);
  if (!call.ok()) return call.status();
  absl::Status s = solver_->Svd(job.dtype(), m, n, job.a, job.OutputOf(group, vectors ? 1 : 0),
                                job.b, job.c, group.count, *call);
  if (!s.ok() || !vectors) return s;
  s = CopyOut(job, group, ColumnMajor(job.b, m, m * m), 0);
  if (!s.ok()) return s;
  // The columns of a real V are the rows of Vh.
  GatherSource rows;
  rows.address = job.c;
  rows.row_stride = n;
  rows.column_stride = 1;
  rows.matrix_stride = n * n;
  return CopyOut(job, group, rows, 2);
}

}  // namespace stride::cuda
