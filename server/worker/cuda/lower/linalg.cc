#include "server/worker/cuda/lower/linalg.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/worker/cuda/driver/cuda_status.h"
#include "server/worker/cuda/lower/element_types.h"
#include "server/worker/cuda/lower/linalg_layout.h"

namespace stride::cuda {
namespace {

using Request = wire::LinalgLaunch;

constexpr uint64_t kFaultBytes = 64;
constexpr char kNoteEntry[] = "stride_note_info";
constexpr uint32_t kThreads = 256;

// Writes the MatrixFaultWord of each matrix with info other than 0; the largest word stays.
constexpr char kNoteKernel[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry stride_note_info(
  .param .u64 infos, .param .u64 count, .param .u64 fault, .param .u64 kind)
{
  .reg .pred %p<3>;
  .reg .b32 %r<4>;
  .reg .b64 %d<12>;
  ld.param.u64 %d1, [infos];
  ld.param.u64 %d2, [count];
  ld.param.u64 %d3, [fault];
  ld.param.u64 %d4, [kind];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d3, %d3;
  mov.u32 %r1, %tid.x;
  cvt.u64.u32 %d5, %r1;
  mov.u32 %r2, %ntid.x;
  cvt.u64.u32 %d6, %r2;
loop:
  setp.ge.u64 %p1, %d5, %d2;
  @%p1 bra done;
  shl.b64 %d7, %d5, 2;
  add.s64 %d7, %d1, %d7;
  ld.global.u32 %r3, [%d7];
  setp.eq.u32 %p2, %r3, 0;
  @%p2 bra next;
  min.u64 %d8, %d5, 2147483646;
  mov.u64 %d11, 2147483647;
  sub.s64 %d8, %d11, %d8;
  shl.b64 %d8, %d8, 32;
  cvt.u64.u32 %d9, %r3;
  or.b64 %d8, %d8, %d9;
  atom.global.max.u64 %d10, [%d3+8], %d8;
  st.global.u64 [%d3], %d4;
  st.global.u64 [%d3+16], %d2;
next:
  add.s64 %d5, %d5, %d6;
  bra loop;
done:
  ret;
}
)";

// For real numbers: writes 1 to `info` where one is not finite.
constexpr char kFiniteKernel[] = R"(
.visible .entry stride_check_finite_$SIZE(
  .param .u64 numbers, .param .u64 count, .param .u64 info)
{
  .reg .pred %p<3>;
  .reg .b32 %r<6>;
  .reg .b64 %d<10>;
  .reg .$TYPE %v<2>;
  ld.param.u64 %d1, [numbers];
  ld.param.u64 %d2, [count];
  ld.param.u64 %d3, [info];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d3, %d3;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %d4, %r1, %r2;
  cvt.u64.u32 %d5, %r3;
  add.s64 %d4, %d4, %d5;
  mul.wide.u32 %d6, %r4, %r2;
loop:
  setp.ge.s64 %p1, %d4, %d2;
  @%p1 bra done;
  mad.lo.s64 %d7, %d4, $SIZE, %d1;
  ld.global.$TYPE %v1, [%d7];
  testp.finite.$TYPE %p2, %v1;
  @%p2 bra next;
  mov.u32 %r5, 1;
  st.global.u32 [%d3], %r5;
next:
  add.s64 %d4, %d4, %d6;
  bra loop;
done:
  ret;
}
)";

// Eigenvectors of a real matrix as complex numbers, row by row, from the result of Solver::Eig: for
// a conjugate pair, the real parts in one column, the imaginary parts in the next. One thread per
// element, striding over the matrix by the grid's width. If the library has found no eigenvalues,
// their memory has arbitrary numbers; only the columns of the matrix are read.
constexpr char kJoinKernel[] = R"(
.visible .entry stride_join_vectors_$SIZE(
  .param .u64 values, .param .u64 vectors, .param .u64 destination, .param .u64 order)
{
  .reg .pred %p<5>;
  .reg .b32 %r<5>;
  .reg .b64 %d<20>;
  .reg .$TYPE %v<6>;
  ld.param.u64 %d1, [values];
  ld.param.u64 %d2, [vectors];
  ld.param.u64 %d3, [destination];
  ld.param.u64 %d4, [order];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d2, %d2;
  cvta.to.global.u64 %d3, %d3;
  mad.lo.s64 %d1, %d4, $SIZE, %d1;
  mul.lo.s64 %d5, %d4, %d4;
  sub.s64 %d13, %d4, 1;
  mov.$TYPE %v5, $ZERO;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %d6, %r1, %r2;
  cvt.u64.u32 %d7, %r3;
  add.s64 %d6, %d6, %d7;
  mul.wide.u32 %d7, %r4, %r2;
loop:
  setp.ge.s64 %p1, %d6, %d5;
  @%p1 bra done;
  div.s64 %d8, %d6, %d4;
  mul.lo.s64 %d9, %d8, %d4;
  sub.s64 %d9, %d6, %d9;
  mad.lo.s64 %d10, %d9, $SIZE, %d1;
  ld.global.$TYPE %v1, [%d10];
  setp.lt.$TYPE %p2, %v1, %v5;
  setp.gt.$TYPE %p3, %v1, %v5;
  or.pred %p4, %p2, %p3;
  sub.s64 %d11, %d9, 1;
  max.s64 %d11, %d11, 0;
  selp.b64 %d11, %d11, %d9, %p2;
  add.s64 %d12, %d9, 1;
  min.s64 %d12, %d12, %d13;
  selp.b64 %d12, %d12, %d9, %p3;
  mad.lo.s64 %d14, %d11, %d4, %d8;
  mad.lo.s64 %d14, %d14, $SIZE, %d2;
  ld.global.$TYPE %v2, [%d14];
  mad.lo.s64 %d15, %d12, %d4, %d8;
  mad.lo.s64 %d15, %d15, $SIZE, %d2;
  ld.global.$TYPE %v3, [%d15];
  neg.$TYPE %v4, %v3;
  selp.$TYPE %v3, %v4, %v3, %p2;
  selp.$TYPE %v3, %v3, %v5, %p4;
  mad.lo.s64 %d16, %d6, $PAIR, %d3;
  st.global.$TYPE [%d16], %v2;
  st.global.$TYPE [%d16+$SIZE], %v3;
  add.s64 %d6, %d6, %d7;
  bra loop;
done:
  ret;
}
)";

struct RealType {
  const char *size, *pair, *type, *zero;
};
constexpr RealType kRealTypes[] = {{"4", "8", "f32", "0f00000000"},
                                   {"8", "16", "f64", "0d0000000000000000"}};

std::string FiniteEntry(std::string_view size) {
  return absl::StrCat("stride_check_finite_", std::string(size));
}
std::string JoinEntry(std::string_view size) {
  return absl::StrCat("stride_join_vectors_", std::string(size));
}
// The size of the dtype's real numbers.
std::string RealSize(DType dtype) { return IsDoublePrecision(dtype) ? "8" : "4"; }

// One thread per element, up to the device's capacity.
Grid GridOver(int64_t elements, const LaunchLimits& limits) {
  Grid grid;
  grid.block[0] = kThreads;
  grid.grid[0] = static_cast<uint32_t>(
      std::min<int64_t>((elements + kThreads - 1) / kThreads, 32ll * limits.num_multiprocessors));
  return grid;
}

codegen::RoutineFault::Kind FaultKind(Request::Function function) {
  switch (function) {
    case Request::FUNCTION_CHOLESKY:
      return codegen::RoutineFault::kNotPositiveDefinite;
    case Request::FUNCTION_SVD:
    case Request::FUNCTION_EIGH:
    case Request::FUNCTION_EIG:
      return codegen::RoutineFault::kNotConverged;
    case Request::FUNCTION_INVERSE:
    case Request::FUNCTION_SOLVE:
      return codegen::RoutineFault::kSingular;
    default:
      return codegen::RoutineFault::kNone;  // all data have a result
  }
}

// A zeroed n x n matrix without gaps becomes the identity: the upper half of each diagonal
// element's first number is the upper half of 1.
absl::Status SetDiagonal(const Lowering& lowering, CUdeviceptr matrix, int64_t n, DType dtype) {
  const bool twice = dtype == DType::kFloat64 || dtype == DType::kComplex128;
  return ToStatus(
      lowering.driver.cuMemsetD2D32Async(matrix + (twice ? 4 : 0), (n + 1) * ItemSize(dtype),
                                         twice ? 0x3ff00000 : 0x3f800000, 1, n, lowering.stream),
      "making an identity matrix");
}

absl::Status SetIdentity(const Lowering& lowering, CUdeviceptr matrix, int64_t n, DType dtype) {
  STRIDE_CUDA_RETURN(
      lowering.driver.cuMemsetD8Async(matrix, 0, n * n * ItemSize(dtype), lowering.stream),
      "clearing a matrix");
  return SetDiagonal(lowering, matrix, n, dtype);
}

}  // namespace

// One task: its request and its scratch memory.
struct Linalg::Job {
  const Lowering& lowering;
  const Request& launch;
  codegen::LinalgShape shape;
  std::vector<CUdeviceptr> inputs, outputs;  // matrix 0
  std::vector<CUdeviceptr> in, out;          // the current matrix
  int64_t item = 0;
  // Matrices in the library's order: the input, and other results of the function.
  CUdeviceptr fault = 0, infos = 0, a = 0, b = 0, c = 0, vector = 0;
  Solver::Call call;            // place of its findings
  SolverWork second;            // work memory of a second call
  CUdeviceptr unused_info = 0;  // info of calls that cannot fail

  int64_t m() const { return launch.m(); }
  int64_t n() const { return launch.n(); }
  int64_t least() const { return std::min(m(), n()); }
  // Columns of Q or U, and rows of Vh.
  int64_t columns() const { return launch.full() ? m() : least(); }
  int64_t rows() const { return launch.full() ? n() : least(); }
  // The library's singular values require m >= n. For wide matrices it gets the transpose: a
  // row-major matrix is its own transpose in column-major order.
  bool wide() const { return m() < n(); }
};

std::string Linalg::Ptx() {
  std::string text = kNoteKernel;
  for (const RealType& real : kRealTypes) {
    for (const char* kernel : {kFiniteKernel, kJoinKernel}) {
      absl::StrAppend(&text, absl::StrReplaceAll(kernel, {{"$SIZE", real.size},
                                                          {"$PAIR", real.pair},
                                                          {"$TYPE", real.type},
                                                          {"$ZERO", real.zero}}));
    }
  }
  return text;
}

absl::Status Linalg::Prepare(const Lowering& lowering) {
  if (prepared_) return absl::OkStatus();
  if (solver_ == nullptr) {
    auto solver = Solver::Open(lowering.driver, lowering.stream);
    if (!solver.ok()) return solver.status();
    solver_ = *std::move(solver);
  }
  wire::ModuleDescription description;
  auto add = [&](const std::string& entry, int num_parameters) {
    wire::KernelDescription* kernel = description.add_kernels();
    kernel->set_entry(entry);
    kernel->set_symbol(entry);
    kernel->set_parameters_known(true);
    for (int i = 0; i < num_parameters; ++i) {
      wire::Parameter* parameter = kernel->add_parameters();
      parameter->set_offset(8 * i);
      parameter->set_size(8);
    }
  };
  add(kNoteEntry, 4);
  for (const RealType& real : kRealTypes) {
    add(FiniteEntry(real.size), 3);
    add(JoinEntry(real.size), 4);
  }
  auto module = KernelModule::Load(lowering.driver, Ptx().c_str(), description);
  if (!module.ok()) return module.status();
  module_ = *std::move(module);
  prepared_ = true;
  return absl::OkStatus();
}

absl::Status Linalg::Lower(const Lowering& lowering, const Request& launch,
                           codegen::RoutineFault* fault) {
  auto shape = codegen::ReadLinalg(launch);
  if (!shape.ok()) return shape.status();
  Job job{lowering, launch, *std::move(shape)};
  job.item = ItemSize(job.shape.dtype);
  for (int i = 0; i < launch.inputs_size(); ++i) {
    auto address = lowering.arenas.Address(launch.inputs(i), job.shape.inputs[i].extents);
    if (!address.ok()) return address.status();
    job.inputs.push_back(*address);
  }
  for (int j = 0; j < launch.outputs_size(); ++j) {
    auto address = lowering.arenas.Address(launch.outputs(j), job.shape.outputs[j].extents);
    if (!address.ok()) return address.status();
    job.outputs.push_back(*address);
  }
  if (job.shape.num_matrices == 0) return absl::OkStatus();
  if (absl::Status s = Prepare(lowering); !s.ok()) return s;
  if (absl::Status s = RunMatrices(job); !s.ok()) return s;
  if (FaultKind(launch.function()) == codegen::RoutineFault::kNone) return absl::OkStatus();
  if (absl::Status s = NoteFaults(job); !s.ok()) return s;
  return ToStatus(
      lowering.driver.cuMemcpyDtoHAsync(fault, job.fault, sizeof(*fault), lowering.stream),
      "fetching a fault");
}

absl::Status Linalg::RunMatrices(Job& job) {
  const LinalgBatch::Task task{job.lowering, job.launch, job.shape, job.inputs, job.outputs};
  absl::StatusOr<bool> takes = batch_.Takes(task);
  if (!takes.ok()) return takes.status();
  if (*takes) {
    absl::StatusOr<LinalgBatch::Notes> notes = batch_.Run(task, gather_, kFaultBytes);
    if (!notes.ok()) return notes.status();
    job.fault = notes->fault;
    job.infos = notes->infos;
    return absl::OkStatus();
  }
  if (absl::Status s = ReserveScratch(job); !s.ok()) return s;
  for (int64_t i = 0; i < job.shape.num_matrices; ++i) {
    if (absl::Status s = RunMatrix(job, i); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status Linalg::ReserveScratch(Job& job) {
  const int64_t m = job.m(), n = job.n(), item = job.item;
  const DType dtype = job.shape.dtype;
  const bool values_only = job.launch.values_only(), upper = job.launch.upper();
  // Any array of the dtype, which the library does not read.
  const CUdeviceptr sample = job.inputs[0];
  uint64_t a = Bytes(m, n, item), b = 0, c = 0, vector = 0;
  absl::StatusOr<SolverWork> work = SolverWork(), second = SolverWork();
  if (m > 0 && n > 0) {
    switch (job.launch.function()) {
      case Request::FUNCTION_CHOLESKY:
        work = solver_->CholeskyWork(dtype, upper, n, sample);
        break;
      case Request::FUNCTION_QR: {
        const int64_t columns = values_only ? 0 : job.columns();
        a = Bytes(m, std::max(n, columns), item);
        vector = Bytes(job.least(), 1, item);
        work = solver_->QrWork(dtype, m, n, sample);
        if (columns > 0) second = solver_->QWork(dtype, m, columns, job.least(), sample);
        break;
      }
      case Request::FUNCTION_SVD: {
        // With the transpose, U and Vh need no copies; otherwise they are copied too.
        if (!job.wide() && !values_only) {
          b = Bytes(m, job.columns(), item);
          c = Bytes(job.rows(), n, item);
        }
        const char vectors = values_only ? 'N' : (job.launch.full() ? 'A' : 'S');
        work = solver_->SvdWork(dtype, vectors, std::max(m, n), job.least(), sample);
        break;
      }
      case Request::FUNCTION_EIGH:
        work = solver_->EighWork(dtype, !values_only, upper, n, sample);
        break;
      case Request::FUNCTION_EIG:
        // The library's eigenvectors, and for a real matrix the parts of its eigenvalues.
        if (!values_only) b = a;
        if (!IsComplex(dtype)) vector = Bytes(n, 2, item);
        work = solver_->EigWork(dtype, !values_only, n, sample);
        break;
      case Request::FUNCTION_INVERSE:
      case Request::FUNCTION_SOLVE:
        b = Bytes(n, job.launch.function() == Request::FUNCTION_SOLVE ? job.launch.k() : n, item);
        [[fallthrough]];
      default:
        vector = Bytes(job.least(), 1, sizeof(int64_t));
        work = solver_->LuWork(dtype, m, n, sample);
    }
  }
  if (!work.ok()) return work.status();
  if (!second.ok()) return second.status();
  job.call.need = *work;
  job.call.work_bytes = std::max(work->device_bytes(), second->device_bytes());
  job.second = *second;
  Layout layout;
  const uint64_t fault_at = layout.Add(kFaultBytes), unused_at = layout.Add(sizeof(int));
  const uint64_t infos_at = layout.Add(Bytes(job.shape.num_matrices, 1, sizeof(int)));
  const uint64_t cleared = layout.size();
  const uint64_t a_at = layout.Add(a), b_at = layout.Add(b), c_at = layout.Add(c),
                 vector_at = layout.Add(vector), work_at = layout.Add(job.call.work_bytes);
  auto scratch = job.lowering.scratch.Reserve(layout.size());
  if (!scratch.ok()) return scratch.status();
  job.fault = *scratch + fault_at;
  job.unused_info = *scratch + unused_at;
  job.infos = *scratch + infos_at;
  job.a = *scratch + a_at;
  job.b = *scratch + b_at;
  job.c = *scratch + c_at;
  job.vector = *scratch + vector_at;
  job.call.work = *scratch + work_at;
  return ToStatus(job.lowering.driver.cuMemsetD8Async(*scratch, 0, cleared, job.lowering.stream),
                  "clearing a fault");
}

absl::Status Linalg::RunMatrix(Job& job, int64_t index) {
  job.in = job.inputs;
  job.out = job.outputs;
  for (size_t i = 0; i < job.in.size(); ++i)
    job.in[i] += OffsetOf(job.launch.inputs(static_cast<int>(i)), job.shape.batch_extents, index);
  for (size_t j = 0; j < job.out.size(); ++j)
    job.out[j] += OffsetOf(job.launch.outputs(static_cast<int>(j)), job.shape.batch_extents, index);
  job.call.info = job.infos + index * sizeof(int);
  if (job.m() == 0 || job.n() == 0) {
    // For a matrix without elements only square orthogonal factors have elements.
    for (size_t j = 0; j < job.out.size(); ++j) {
      const auto& output = job.shape.outputs[j];
      if (output.rows != output.columns || output.rows == 0) continue;
      absl::Status s = SetIdentity(job.lowering, job.out[j], output.rows, output.dtype);
      if (!s.ok()) return s;
    }
    return absl::OkStatus();
  }
  switch (job.launch.function()) {
    case Request::FUNCTION_CHOLESKY:
      return Cholesky(job);
    case Request::FUNCTION_QR:
      return Qr(job);
    case Request::FUNCTION_SVD:
      return Svd(job);
    case Request::FUNCTION_EIGH:
      return Eigh(job);
    case Request::FUNCTION_EIG:
      return Eig(job);
    case Request::FUNCTION_LU:
      return Lu(job);
    default:
      return Solve(job);
  }
}

absl::Status Linalg::CopyIn(Job& job, int input, CUdeviceptr to) {
  const wire::Operand& operand = job.launch.inputs(input);
  const auto& matrix = job.shape.inputs[input];
  const int rank = operand.strides_size();
  // Its columns are the rows of the copy.
  GatherSource source{job.in[input],
                      matrix.columns,
                      matrix.rows,
                      1,
                      operand.strides(rank - 1) / job.item,
                      operand.strides(rank - 2) / job.item,
                      0};
  // Clear the triangle that must not be read, since the library may read it.
  if (job.launch.function() == Request::FUNCTION_CHOLESKY ||
      job.launch.function() == Request::FUNCTION_EIGH) {
    (job.launch.upper() ? source.highest_diagonal : source.lowest_diagonal) = 0;
  }
  return gather_.Run(job.lowering, source, job.item, to);
}

absl::Status Linalg::CopyOut(Job& job, CUdeviceptr from, int64_t leading, int output,
                             int64_t lowest_diagonal, int64_t highest_diagonal) {
  const auto& matrix = job.shape.outputs[output];
  const GatherSource source{from, matrix.rows,     matrix.columns,  1, 1, leading,
                            0,    lowest_diagonal, highest_diagonal};
  return gather_.Run(job.lowering, source, job.item, job.out[output]);
}

absl::Status Linalg::Cholesky(Job& job) {
  const bool upper = job.launch.upper();
  if (absl::Status s = CopyIn(job, 0, job.a); !s.ok()) return s;
  absl::Status s = solver_->Cholesky(job.shape.dtype, upper, job.n(), job.a, job.call);
  if (!s.ok()) return s;
  return CopyOut(job, job.a, job.n(), 0, upper ? 0 : -job.n(), upper ? job.n() : 0);
}

absl::Status Linalg::Qr(Job& job) {
  const DType dtype = job.shape.dtype;
  const bool values_only = job.launch.values_only();
  if (absl::Status s = CopyIn(job, 0, job.a); !s.ok()) return s;
  Solver::Call call = job.call;
  call.info = job.unused_info;
  absl::Status s = solver_->Qr(dtype, job.m(), job.n(), job.a, job.vector, call);
  if (!s.ok()) return s;
  s = CopyOut(job, job.a, job.m(), values_only ? 0 : 1, 0, job.n());
  if (!s.ok() || values_only) return s;
  call.need = job.second;
  s = solver_->Q(dtype, job.m(), job.columns(), job.least(), job.a, job.vector, call);
  return s.ok() ? CopyOut(job, job.a, job.m(), 0) : s;
}

absl::Status Linalg::Svd(Job& job) {
  const bool values_only = job.launch.values_only();
  const char vectors = values_only ? 'N' : (job.launch.full() ? 'A' : 'S');
  const CUdeviceptr values = job.out[values_only ? 0 : 1];
  if (!job.wide()) {
    if (absl::Status s = CopyIn(job, 0, job.a); !s.ok()) return s;
    absl::Status s = solver_->Svd(job.shape.dtype, vectors, job.m(), job.n(), job.a, values, job.b,
                                  job.c, job.call);
    if (!s.ok() || values_only) return s;
    s = CopyOut(job, job.b, job.m(), 0);
    return s.ok() ? CopyOut(job, job.c, job.n(), 2) : s;
  }
  // A^T = V* S U^T: read as row-major matrices, V* is Vh and U^T is U.
  const wire::Operand& operand = job.launch.inputs(0);
  const int rank = operand.strides_size();
  const GatherSource rows{job.in[0],
                          job.m(),
                          job.n(),
                          1,
                          operand.strides(rank - 2) / job.item,
                          operand.strides(rank - 1) / job.item,
                          0};
  if (absl::Status s = gather_.Run(job.lowering, rows, job.item, job.a); !s.ok()) return s;
  return solver_->Svd(job.shape.dtype, vectors, job.n(), job.m(), job.a, values,
                      values_only ? 0 : job.out[2], values_only ? 0 : job.out[0], job.call);
}

absl::Status Linalg::Eigh(Job& job) {
  const bool vectors = !job.launch.values_only();
  if (absl::Status s = CopyIn(job, 0, job.a); !s.ok()) return s;
  absl::Status s = solver_->Eigh(job.shape.dtype, vectors, job.launch.upper(), job.n(), job.a,
                                 job.out[0], job.call);
  return s.ok() && vectors ? CopyOut(job, job.a, job.n(), 1) : s;
}

absl::StatusOr<bool> Linalg::IsFinite(Job& job) {
  absl::StatusOr<Kernel*> kernel = module_.Find(FiniteEntry(RealSize(job.shape.dtype)));
  if (!kernel.ok()) return kernel.status();
  uint64_t numbers = job.a, info = job.call.info;
  int64_t count = job.n() * job.n() * (IsComplex(job.shape.dtype) ? 2 : 1);
  void* parameters[] = {&numbers, &count, &info};
  absl::Status launched = Launch(job.lowering.driver, job.lowering.stream, **kernel,
                                 GridOver(count, job.lowering.limits), absl::MakeSpan(parameters));
  if (!launched.ok()) return launched;
  int found = 0;
  STRIDE_CUDA_RETURN(
      job.lowering.driver.cuMemcpyDtoHAsync(&found, info, sizeof(found), job.lowering.stream),
      "fetching whether a matrix is finite");
  STRIDE_CUDA_RETURN(job.lowering.driver.cuStreamSynchronize(job.lowering.stream),
                     "awaiting whether a matrix is finite");
  return found == 0;
}

absl::Status Linalg::Eig(Job& job) {
  const bool vectors = !job.launch.values_only(), is_complex = IsComplex(job.shape.dtype);
  if (absl::Status s = CopyIn(job, 0, job.a); !s.ok()) return s;
  // The library iterates on the host, and may not terminate for numbers that are not finite.
  absl::StatusOr<bool> finite = IsFinite(job);
  if (!finite.ok()) return finite.status();
  if (!*finite) return absl::OkStatus();
  absl::Status s =
      solver_->Eig(job.shape.dtype, vectors, job.n(), job.a, is_complex ? job.out[0] : job.vector,
                   vectors ? job.b : 0, job.call);
  if (!s.ok()) return s;
  if (is_complex) return vectors ? CopyOut(job, job.b, job.n(), 1) : absl::OkStatus();
  // All real parts, then all imaginary parts, become pairs.
  const GatherSource pairs{job.vector, job.n(), 2, 1, 1, job.n(), 0};
  s = gather_.Run(job.lowering, pairs, job.item, job.out[0]);
  if (!s.ok() || !vectors) return s;
  absl::StatusOr<Kernel*> kernel = module_.Find(JoinEntry(RealSize(job.shape.dtype)));
  if (!kernel.ok()) return kernel.status();
  uint64_t values = job.vector, packed = job.b, to = job.out[1];
  int64_t order = job.n();
  void* parameters[] = {&values, &packed, &to, &order};
  return Launch(job.lowering.driver, job.lowering.stream, **kernel,
                GridOver(order * order, job.lowering.limits), absl::MakeSpan(parameters));
}

absl::Status Linalg::Solve(Job& job) {
  const DType dtype = job.shape.dtype;
  const bool inverse = job.launch.function() == Request::FUNCTION_INVERSE;
  if (absl::Status s = CopyIn(job, 0, job.a); !s.ok()) return s;
  absl::Status s =
      inverse ? SetIdentity(job.lowering, job.b, job.n(), dtype) : CopyIn(job, 1, job.b);
  if (!s.ok()) return s;
  s = solver_->Lu(dtype, job.n(), job.n(), job.a, job.vector, job.call);
  if (!s.ok()) return s;
  s = solver_->SolveByLu(dtype, job.n(), inverse ? job.n() : job.launch.k(), job.a, job.vector,
                         job.b, job.unused_info);
  return s.ok() ? CopyOut(job, job.b, job.n(), 0) : s;
}

absl::Status Linalg::Lu(Job& job) {
  if (absl::Status s = CopyIn(job, 0, job.a); !s.ok()) return s;
  Solver::Call call = job.call;
  call.info = job.unused_info;  // a zero on the diagonal is no fault of an LU
  absl::Status s = solver_->Lu(job.shape.dtype, job.m(), job.n(), job.a, job.out[1], call);
  return s.ok() ? CopyOut(job, job.a, job.m(), 0) : s;
}

absl::Status Linalg::NoteFaults(Job& job) {
  absl::StatusOr<Kernel*> kernel = module_.Find(kNoteEntry);
  if (!kernel.ok()) return kernel.status();
  Grid grid;
  grid.block[0] = kThreads;
  uint64_t infos = job.infos, fault = job.fault, kind = FaultKind(job.launch.function());
  int64_t count = job.shape.num_matrices;
  void* parameters[] = {&infos, &count, &fault, &kind};
  return Launch(job.lowering.driver, job.lowering.stream, **kernel, grid,
                absl::MakeSpan(parameters));
}

}  // namespace stride::cuda
