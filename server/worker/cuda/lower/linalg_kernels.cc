#include "server/worker/cuda/lower/linalg_kernels.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/worker/cuda/lower/element_types.h"

namespace stride::cuda {
namespace {

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

std::string FiniteName(std::string_view size) {
  return absl::StrCat("stride_check_finite_", std::string(size));
}
std::string JoinName(std::string_view size) {
  return absl::StrCat("stride_join_vectors_", std::string(size));
}
// The size of the dtype's real numbers.
std::string RealSize(DType dtype) { return IsDoublePrecision(dtype) ? "8" : "4"; }

}  // namespace

std::string FiniteEntry(DType dtype) { return FiniteName(RealSize(dtype)); }
std::string JoinEntry(DType dtype) { return JoinName(RealSize(dtype)); }

std::string LinalgPtx() {
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

wire::ModuleDescription DescribeLinalgPtx() {
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
    add(FiniteName(real.size), 3);
    add(JoinName(real.size), 4);
  }
  return description;
}

}  // namespace stride::cuda
