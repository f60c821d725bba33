#include "server/worker/cuda/lower/gather.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace stride::cuda {
namespace {

// One thread per element, striding over the matrix by the grid's width; grid.y counts matrices. The
// thread for element i of the copy reads row i / columns, column i % columns, or writes zero where
// column - row is not within [low, high].
constexpr char kKernel[] = R"(
.visible .entry stride_gather_$SIZE(
  .param .u64 source, .param .u64 destination, .param .u64 rows, .param .u64 columns,
  .param .u64 row_stride, .param .u64 column_stride, .param .u64 matrix_stride,
  .param .u64 low, .param .u64 high)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %d<24>;
  $REGISTERS
  ld.param.u64 %d1, [source];
  ld.param.u64 %d2, [destination];
  ld.param.u64 %d3, [rows];
  ld.param.u64 %d4, [columns];
  ld.param.u64 %d5, [row_stride];
  ld.param.u64 %d6, [column_stride];
  ld.param.u64 %d7, [matrix_stride];
  ld.param.u64 %d18, [low];
  ld.param.u64 %d19, [high];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d2, %d2;
  mul.lo.s64 %d8, %d3, %d4;
  mov.u32 %r1, %ctaid.y;
  cvt.u64.u32 %d9, %r1;
  mul.lo.s64 %d10, %d9, %d7;
  mad.lo.s64 %d1, %d10, $SIZE, %d1;
  mul.lo.s64 %d10, %d9, %d8;
  mad.lo.s64 %d2, %d10, $SIZE, %d2;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mov.u32 %r5, %nctaid.x;
  mul.wide.u32 %d11, %r2, %r3;
  cvt.u64.u32 %d12, %r4;
  add.s64 %d11, %d11, %d12;
  mul.wide.u32 %d13, %r5, %r3;
loop:
  setp.ge.s64 %p1, %d11, %d8;
  @%p1 bra done;
  div.s64 %d14, %d11, %d4;
  mul.lo.s64 %d15, %d14, %d4;
  sub.s64 %d15, %d11, %d15;
  mul.lo.s64 %d16, %d14, %d5;
  mad.lo.s64 %d16, %d15, %d6, %d16;
  mad.lo.s64 %d16, %d16, $SIZE, %d1;
  mad.lo.s64 %d17, %d11, $SIZE, %d2;
  sub.s64 %d20, %d15, %d14;
  setp.ge.s64 %p2, %d20, %d18;
  setp.le.and.s64 %p3, %d20, %d19, %p2;
  $ZERO
  @%p3 ld.global.$TYPE $VALUE, [%d16];
  st.global.$TYPE [%d17], $VALUE;
  add.s64 %d11, %d11, %d13;
  bra loop;
done:
  ret;
}
)";

struct Item {
  const char* size;
  const char* type;
  const char* registers;
  const char* value;
  const char* zero;
};
constexpr Item kItems[] = {
    {"2", "b16", ".reg .b16 %v<2>;", "%v1", "mov.b16 %v1, 0;"},
    {"4", "b32", ".reg .b32 %v<2>;", "%v1", "mov.b32 %v1, 0;"},
    {"8", "b64", ".reg .b64 %v<2>;", "%v1", "mov.b64 %v1, 0;"},
    {"16", "v2.b64", ".reg .b64 %v<3>;", "{%v1, %v2}", "mov.b64 %v1, 0;\n  mov.b64 %v2, 0;"},
};

std::string EntryName(const std::string& size) { return absl::StrCat("stride_gather_", size); }

constexpr uint32_t kThreads = 256;
constexpr int64_t kMaxMatrices = 65535;  // grid.y

}  // namespace

std::string Gather::Ptx() {
  std::string text = ".version 7.0\n.target sm_70\n.address_size 64\n";
  for (const Item& item : kItems) {
    absl::StrAppend(&text, absl::StrReplaceAll(kKernel, {{"$SIZE", item.size},
                                                         {"$TYPE", item.type},
                                                         {"$REGISTERS", item.registers},
                                                         {"$VALUE", item.value},
                                                         {"$ZERO", item.zero}}));
  }
  return text;
}

absl::Status Gather::Prepare(const Lowering& lowering) {
  if (prepared_) return absl::OkStatus();
  wire::ModuleDescription description;
  for (const Item& item : kItems) {
    wire::KernelDescription* kernel = description.add_kernels();
    kernel->set_entry(EntryName(item.size));
    kernel->set_symbol(kernel->entry());
    kernel->set_parameters_known(true);
    for (int i = 0; i < 9; ++i) {
      wire::Parameter* parameter = kernel->add_parameters();
      parameter->set_offset(8 * i);
      parameter->set_size(8);
    }
  }
  absl::StatusOr<KernelModule> module =
      KernelModule::Load(lowering.driver, Ptx().c_str(), description);
  if (!module.ok()) return module.status();
  module_ = *std::move(module);
  prepared_ = true;
  return absl::OkStatus();
}

absl::Status Gather::Run(const Lowering& lowering, const GatherSource& source, int64_t item_bytes,
                         CUdeviceptr destination) {
  if (absl::Status status = Prepare(lowering); !status.ok()) return status;
  absl::StatusOr<Kernel*> kernel = module_.Find(EntryName(absl::StrCat(item_bytes)));
  if (!kernel.ok()) return kernel.status();
  int64_t elements = source.rows * source.columns;
  Grid grid;
  grid.block[0] = kThreads;
  grid.grid[0] = static_cast<uint32_t>(std::min<int64_t>(
      (elements + kThreads - 1) / kThreads, 32ll * lowering.limits.num_multiprocessors));
  for (int64_t first = 0; first < source.num_matrices; first += kMaxMatrices) {
    grid.grid[1] = static_cast<uint32_t>(std::min(kMaxMatrices, source.num_matrices - first));
    uint64_t from = source.address + first * source.matrix_stride * item_bytes;
    uint64_t to = destination + first * elements * item_bytes;
    int64_t rows = source.rows, columns = source.columns;
    int64_t row_stride = source.row_stride, column_stride = source.column_stride;
    int64_t matrix_stride = source.matrix_stride;
    int64_t low = source.lowest_diagonal, high = source.highest_diagonal;
    void* parameters[] = {&from,          &to,  &rows, &columns, &row_stride, &column_stride,
                          &matrix_stride, &low, &high};
    absl::Status status =
        Launch(lowering.driver, lowering.stream, **kernel, grid, absl::MakeSpan(parameters));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace stride::cuda
