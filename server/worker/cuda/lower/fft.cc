#include "server/worker/cuda/lower/fft.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/cuda/driver/cuda_status.h"

namespace stride::cuda {
namespace {

using Request = wire::FftLaunch;
using Extents = std::vector<int64_t>;

constexpr uint32_t kThreads = 256;
constexpr uint64_t kAlignment = 256;

// Parameter of the copying kernel, one struct by value. Strides in bytes.
struct CopyBlock {
  uint64_t from = 0, to = 0;
  int64_t count = 0, rank = 0;
  int64_t extents[codegen::kMaxRank] = {};
  int64_t from_strides[codegen::kMaxRank] = {};
  int64_t to_strides[codegen::kMaxRank] = {};
};
static_assert(sizeof(CopyBlock) == 32 + 3 * 8 * 32);
static_assert(codegen::kMaxRank == 32, "offsets in the kernel's text");

// One thread per element, striding by the grid's width; the last axis varies fastest.
constexpr char kCopyKernel[] = R"(
.visible .entry stride_copy_box_$SIZE(.param .align 8 .b8 block[800])
{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .b64 %d<24>;
  $REGISTERS
  ld.param.u64 %d1, [block];
  ld.param.u64 %d2, [block+8];
  ld.param.u64 %d3, [block+16];
  ld.param.u64 %d4, [block+24];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d2, %d2;
  mov.u64 %d5, block;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %d6, %r1, %r2;
  cvt.u64.u32 %d7, %r3;
  add.s64 %d6, %d6, %d7;
  mul.wide.u32 %d8, %r4, %r2;
loop:
  setp.ge.s64 %p1, %d6, %d3;
  @%p1 bra done;
  mov.u64 %d9, %d6;
  mov.u64 %d10, %d1;
  mov.u64 %d11, %d2;
  shl.b64 %d12, %d4, 3;
  add.s64 %d12, %d5, %d12;
axis:
  setp.le.s64 %p2, %d12, %d5;
  @%p2 bra element;
  ld.param.u64 %d13, [%d12+24];
  ld.param.u64 %d14, [%d12+280];
  ld.param.u64 %d15, [%d12+536];
  div.s64 %d16, %d9, %d13;
  mul.lo.s64 %d17, %d16, %d13;
  sub.s64 %d17, %d9, %d17;
  mad.lo.s64 %d10, %d17, %d14, %d10;
  mad.lo.s64 %d11, %d17, %d15, %d11;
  mov.u64 %d9, %d16;
  add.s64 %d12, %d12, -8;
  bra axis;
element:
  ld.global.$TYPE $VALUE, [%d10];
  st.global.$TYPE [%d11], $VALUE;
  add.s64 %d6, %d6, %d8;
  bra loop;
done:
  ret;
}
)";

constexpr char kScaleKernel[] = R"(
.visible .entry stride_scale_$SIZE(.param .u64 data, .param .u64 count, .param .f64 factor)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %d<12>;
  .reg .f32 %f<4>;
  .reg .f64 %g<4>;
  ld.param.u64 %d1, [data];
  ld.param.u64 %d2, [count];
  ld.param.f64 %g1, [factor];
  cvt.rn.f32.f64 %f1, %g1;
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %d3, %r1, %r2;
  cvt.u64.u32 %d4, %r3;
  add.s64 %d3, %d3, %d4;
  mul.wide.u32 %d5, %r4, %r2;
loop:
  setp.ge.s64 %p1, %d3, %d2;
  @%p1 bra done;
  mad.lo.s64 %d6, %d3, $SIZE, %d1;
  ld.global.$TYPE $VALUE2, [%d6];
  mul.rn.$TYPE $VALUE2, $VALUE2, $VALUE1;
  st.global.$TYPE [%d6], $VALUE2;
  add.s64 %d3, %d3, %d5;
  bra loop;
done:
  ret;
}
)";

std::string CopyEntry(int64_t item) { return absl::StrCat("stride_copy_box_", item); }
std::string ScaleEntry(int64_t item) { return absl::StrCat("stride_scale_", item); }

uint64_t Aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int64_t Product(const Extents& extents) {
  int64_t product = 1;
  for (int64_t extent : extents) product *= extent;
  return product;
}

Extents ContiguousStrides(const Extents& extents, int64_t item) {
  Extents strides(extents.size());
  for (size_t axis = extents.size(); axis-- > 0;) {
    strides[axis] = item;
    item *= extents[axis];
  }
  return strides;
}

// Strides of an array without gaps whose innermost axis is `last`.
Extents StridesWithLast(const Extents& extents, int last, int64_t item) {
  Extents strides(extents.size());
  strides[last] = item;
  item *= extents[last];
  for (size_t axis = extents.size(); axis-- > 0;) {
    if (static_cast<int>(axis) == last) continue;
    strides[axis] = item;
    item *= extents[axis];
  }
  return strides;
}

void AddKernel(const std::string& entry, std::vector<std::pair<uint32_t, uint32_t>> parameters,
               wire::ModuleDescription* description) {
  wire::KernelDescription* kernel = description->add_kernels();
  kernel->set_entry(entry);
  kernel->set_symbol(entry);
  kernel->set_parameters_known(true);
  for (const auto& [offset, size] : parameters) {
    wire::Parameter* parameter = kernel->add_parameters();
    parameter->set_offset(offset);
    parameter->set_size(size);
  }
}

Grid GridFor(const Lowering& lowering, int64_t count) {
  Grid grid;
  grid.block[0] = kThreads;
  grid.grid[0] = static_cast<uint32_t>(std::clamp<int64_t>(
      (count + kThreads - 1) / kThreads, 1, 32ll * lowering.limits.num_multiprocessors));
  return grid;
}

}  // namespace

struct Fft::Box {
  CUdeviceptr from = 0, to = 0;
  Extents extents, from_strides, to_strides;
  int64_t item = 0;
};

// One task: its request and its scratch memory.
struct Fft::Job {
  const Lowering& lowering;
  const Request& launch;
  codegen::FftShape shape;
  CUdeviceptr input = 0, output = 0;
  Extents padded;  // the input's extents once its lines are cut or padded
  int64_t complex_item = 0, real_item = 0;
  int64_t outer_size = 0;  // lines of the real axis
  CUdeviceptr real = 0, complex = 0, work = 0;

  bool inverse() const {
    return launch.inverse() || launch.kind() == Request::KIND_COMPLEX_TO_REAL;
  }
  // The pass that has real numbers on one side.
  const codegen::FftShape::Pass& RealPass() const {
    return launch.kind() == Request::KIND_REAL_TO_COMPLEX ? shape.passes.front()
                                                          : shape.passes.back();
  }
  int64_t half() const { return RealPass().length / 2 + 1; }
  int rank() const { return static_cast<int>(shape.input_extents.size()); }
  // Whether the library may write directly to the output: the lines have no gaps, and their start
  // is aligned to a complex number.
  bool RealIsLast() const { return RealPass().axis + 1 == rank() && output % complex_item == 0; }
  // Whether the library may read the input directly: it has no gaps, is neither cut nor padded, and
  // is aligned to a complex number. From complex to real numbers the library overwrites its input.
  bool ReadsInput() const {
    if (launch.kind() == Request::KIND_COMPLEX_TO_REAL || padded != shape.input_extents ||
        input % complex_item != 0)
      return false;
    const Extents strides = ContiguousStrides(padded, ItemSize(shape.input_dtype));
    for (int axis = 0; axis < rank(); ++axis)
      if (padded[axis] != 1 && launch.input().strides(axis) != strides[axis]) return false;
    return true;
  }
  // The library's plans support at most three axes.
  static constexpr int kMostTogether = 3;
  // Number of trailing axes that one call transforms; 0 when the last axis is not transformed, or
  // when an axis is named twice.
  int Together() const {
    if (launch.kind() != Request::KIND_COMPLEX && !RealIsLast()) return 0;
    std::vector<int> times(rank());
    for (const auto& pass : shape.passes) ++times[pass.axis];
    if (std::any_of(times.begin(), times.end(), [](int one) { return one > 1; })) return 0;
    // A transform from real numbers has the forward sign on all its axes.
    const bool alone = launch.kind() == Request::KIND_REAL_TO_COMPLEX && launch.inverse();
    const int most = std::min(rank(), alone ? 1 : kMostTogether);
    int together = 0;
    while (together < most && times[rank() - 1 - together] == 1) ++together;
    return together;
  }
  bool IsTogether(int axis) const { return axis >= rank() - Together(); }
  // The trailing axes in one call, with real numbers on one side unless all are complex.
  FourierLines TogetherLines() const {
    const int together = Together();
    const bool from_real = launch.kind() == Request::KIND_REAL_TO_COMPLEX,
               to_real = launch.kind() == Request::KIND_COMPLEX_TO_REAL;
    FourierLines lines;
    lines.input = from_real ? shape.input_dtype : shape.complex_dtype;
    lines.output = to_real ? shape.output_dtype : shape.complex_dtype;
    lines.length = from_real || to_real ? RealPass().length : padded.back();
    lines.outer.assign(padded.end() - together, padded.end() - 1);
    lines.count = Product({padded.begin(), padded.end() - together});
    const int64_t outer = Product({padded.end() - together, padded.end() - 1});
    lines.input_distance = outer * (to_real ? half() : lines.length);
    lines.output_distance = outer * (from_real ? half() : lines.length);
    return lines;
  }
  FourierLines RealLines() const {
    if (Together() > 0) return TogetherLines();
    const int64_t length = RealPass().length;
    if (launch.kind() == Request::KIND_REAL_TO_COMPLEX)
      return {shape.input_dtype, shape.complex_dtype, length, outer_size, 1, length, 1, half(), {}};
    return {shape.complex_dtype, shape.output_dtype, length, outer_size, 1, half(), 1, length, {}};
  }
  // Lines along an axis, transformed in place by `loops` calls, `step` elements apart.
  struct ComplexLines {
    FourierLines lines;
    int64_t loops = 1, step = 0;
  };
  ComplexLines LinesOf(const Extents& extents, int axis) const {
    const int64_t length = extents[axis];
    const int64_t inner = Product({extents.begin() + axis + 1, extents.end()});
    const int64_t outer = Product({extents.begin(), extents.begin() + axis});
    const DType dtype = shape.complex_dtype;
    // A plan has one distance between lines; several calls cover the other.
    if (outer <= inner)
      return {{dtype, dtype, length, inner, inner, 1, inner, 1, {}}, outer, length * inner};
    return {
        {dtype, dtype, length, outer, inner, length * inner, inner, length * inner, {}}, inner, 1};
  }
};

std::string Fft::Ptx() {
  std::string text = ".version 7.0\n.target sm_70\n.address_size 64\n";
  const struct {
    const char *size, *type, *registers, *value;
  } items[] = {{"4", "b32", ".reg .b32 %v<2>;", "%v1"},
               {"8", "b64", ".reg .b64 %v<2>;", "%v1"},
               {"16", "v2.b64", ".reg .b64 %v<3>;", "{%v1, %v2}"}};
  for (const auto& item : items) {
    absl::StrAppend(&text, absl::StrReplaceAll(kCopyKernel, {{"$SIZE", item.size},
                                                             {"$TYPE", item.type},
                                                             {"$REGISTERS", item.registers},
                                                             {"$VALUE", item.value}}));
  }
  absl::StrAppend(
      &text,
      absl::StrReplaceAll(kScaleKernel, {{"$SIZE", "4"}, {"$TYPE", "f32"}, {"$VALUE", "%f"}}),
      absl::StrReplaceAll(kScaleKernel, {{"$SIZE", "8"}, {"$TYPE", "f64"}, {"$VALUE", "%g"}}));
  return text;
}

absl::Status Fft::Prepare(const Lowering& lowering) {
  if (prepared_) return absl::OkStatus();
  if (fourier_ == nullptr) {
    auto fourier = Fourier::Open(lowering.driver, lowering.stream);
    if (!fourier.ok()) return fourier.status();
    fourier_ = *std::move(fourier);
  }
  wire::ModuleDescription description;
  for (int64_t item : {4, 8, 16})
    AddKernel(CopyEntry(item), {{0, sizeof(CopyBlock)}}, &description);
  for (int64_t item : {4, 8}) AddKernel(ScaleEntry(item), {{0, 8}, {8, 8}, {16, 8}}, &description);
  auto module = KernelModule::Load(lowering.driver, Ptx().c_str(), description);
  if (!module.ok()) return module.status();
  module_ = *std::move(module);
  prepared_ = true;
  return absl::OkStatus();
}

absl::Status Fft::Lower(const Lowering& lowering, const Request& launch) {
  auto shape = codegen::ReadFft(launch);
  if (!shape.ok()) return shape.status();
  Job job{lowering, launch, *std::move(shape)};
  auto input = lowering.arenas.Address(launch.input(), job.shape.input_extents);
  if (!input.ok()) return input.status();
  auto output = lowering.arenas.Address(launch.output(), job.shape.output_extents());
  if (!output.ok()) return output.status();
  job.input = *input;
  job.output = *output;
  if (Product(job.shape.output_extents()) == 0) return absl::OkStatus();
  job.complex_item = ItemSize(job.shape.complex_dtype);
  job.real_item = job.complex_item / 2;
  job.padded = job.shape.input_extents;
  for (int i = 0; i < launch.axes_size(); ++i) job.padded[launch.axes(i)] = launch.lengths(i);
  if (launch.kind() == Request::KIND_COMPLEX_TO_REAL) job.padded[job.RealPass().axis] = job.half();
  job.outer_size = Product(job.padded) / job.padded[job.RealPass().axis];
  if (absl::Status s = Prepare(lowering); !s.ok()) return s;
  if (absl::Status s = ReserveScratch(job); !s.ok()) return s;
  absl::Status status = launch.kind() == Request::KIND_COMPLEX           ? RunComplex(job)
                        : launch.kind() == Request::KIND_REAL_TO_COMPLEX ? RunToComplex(job)
                                                                         : RunToReal(job);
  return status.ok() ? Scale(job) : status;
}

absl::Status Fft::ReserveScratch(Job& job) {
  uint64_t work = 0;
  auto add = [&](const FourierLines& lines) -> absl::Status {
    auto bytes = fourier_->WorkBytes(lines);
    if (!bytes.ok()) return bytes.status();
    work = std::max(work, *bytes);
    return absl::OkStatus();
  };
  const bool is_real = job.launch.kind() != Request::KIND_COMPLEX;
  // Complex passes work on the output, or on the input of the last pass.
  const Extents& extents =
      job.launch.kind() == Request::KIND_COMPLEX_TO_REAL ? job.padded : job.shape.output_extents();
  if (job.Together() > 0) {
    if (absl::Status s = add(job.TogetherLines()); !s.ok()) return s;
  }
  for (const auto& pass : job.shape.passes) {
    if (pass.kind == Request::KIND_COMPLEX && (pass.length == 1 || job.IsTogether(pass.axis)))
      continue;
    absl::Status s = pass.kind == Request::KIND_COMPLEX ? add(job.LinesOf(extents, pass.axis).lines)
                                                        : add(job.RealLines());
    if (!s.ok()) return s;
  }
  uint64_t real = 0, complex = 0;
  if (is_real) {
    const bool to_real = job.launch.kind() == Request::KIND_COMPLEX_TO_REAL;
    if (to_real ? !job.RealIsLast() : !job.RealIsLast() || !job.ReadsInput())
      real = job.outer_size * job.RealPass().length * job.real_item;
    if (to_real || !job.RealIsLast()) complex = job.outer_size * job.half() * job.complex_item;
    // The axis is moved to the end and back through two such arrays.
    if (to_real && !job.RealIsLast()) complex = 2 * Aligned(complex);
  }
  const uint64_t total = Aligned(real) + Aligned(complex) + Aligned(work);
  if (total == 0) return absl::OkStatus();
  auto scratch = job.lowering.scratch.Reserve(total);
  if (!scratch.ok()) return scratch.status();
  job.real = *scratch;
  job.complex = *scratch + Aligned(real);
  job.work = *scratch + Aligned(real) + Aligned(complex);
  return absl::OkStatus();
}

absl::Status Fft::Copy(Job& job, const Box& box) {
  CopyBlock block;
  block.from = box.from;
  block.to = box.to;
  block.count = Product(box.extents);
  block.rank = static_cast<int64_t>(box.extents.size());
  if (block.count == 0) return absl::OkStatus();
  std::copy(box.extents.begin(), box.extents.end(), block.extents);
  std::copy(box.from_strides.begin(), box.from_strides.end(), block.from_strides);
  std::copy(box.to_strides.begin(), box.to_strides.end(), block.to_strides);
  auto kernel = module_.Find(CopyEntry(box.item));
  if (!kernel.ok()) return kernel.status();
  void* parameters[] = {&block};
  return Launch(job.lowering.driver, job.lowering.stream, **kernel,
                GridFor(job.lowering, block.count), absl::MakeSpan(parameters));
}

// Copies the input, cut or padded, into an array of the padded extents.
absl::Status Fft::CopyInput(Job& job, CUdeviceptr to, const Extents& strides,
                            const Extents& extents) {
  const int64_t item = ItemSize(job.shape.input_dtype);
  Box box{job.input, to, extents, {}, strides, item};
  box.from_strides = {job.launch.input().strides().begin(), job.launch.input().strides().end()};
  bool continued = false;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    box.extents[axis] = std::min(extents[axis], job.shape.input_extents[axis]);
    continued |= extents[axis] > job.shape.input_extents[axis];
  }
  if (continued) {
    STRIDE_CUDA_RETURN(
        job.lowering.driver.cuMemsetD8Async(to, 0, Product(extents) * item, job.lowering.stream),
        "clearing what lines are continued with");
  }
  return Copy(job, box);
}

absl::Status Fft::TransformComplex(Job& job, CUdeviceptr from, CUdeviceptr to,
                                   const Extents& extents, int axis) {
  const Job::ComplexLines lines = job.LinesOf(extents, axis);
  for (int64_t i = 0; i < lines.loops; ++i) {
    const int64_t offset = i * lines.step * job.complex_item;
    absl::Status s =
        fourier_->Run(lines.lines, job.inverse(), from + offset, to + offset, job.work);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status Fft::TransformOthers(Job& job, CUdeviceptr* from, CUdeviceptr to,
                                  const Extents& extents) {
  for (const auto& pass : job.shape.passes) {
    // An axis of one element is its own transform.
    if (pass.kind != Request::KIND_COMPLEX || extents[pass.axis] == 1 || job.IsTogether(pass.axis))
      continue;
    absl::Status s = TransformComplex(job, *from, to, extents, pass.axis);
    if (!s.ok()) return s;
    *from = to;
  }
  return absl::OkStatus();
}

absl::Status Fft::RunComplex(Job& job) {
  CUdeviceptr from = job.input;
  if (!job.ReadsInput()) {
    const Extents strides = ContiguousStrides(job.padded, job.complex_item);
    if (absl::Status s = CopyInput(job, job.output, strides, job.padded); !s.ok()) return s;
    from = job.output;
  }
  if (job.Together() > 0) {
    absl::Status s = fourier_->Run(job.TogetherLines(), job.inverse(), from, job.output, job.work);
    if (!s.ok()) return s;
    from = job.output;
  }
  if (absl::Status s = TransformOthers(job, &from, job.output, job.padded); !s.ok()) return s;
  if (from == job.output) return absl::OkStatus();
  return CopyInput(job, job.output, ContiguousStrides(job.padded, job.complex_item), job.padded);
}

absl::Status Fft::RunToComplex(Job& job) {
  const int axis = job.RealPass().axis;
  const Extents& extents = job.shape.output_extents();
  const bool reads_input = job.RealIsLast() && job.ReadsInput();
  if (!reads_input) {
    const Extents real_strides = StridesWithLast(job.padded, axis, job.real_item);
    if (absl::Status s = CopyInput(job, job.real, real_strides, job.padded); !s.ok()) return s;
  }
  const CUdeviceptr to = job.RealIsLast() ? job.output : job.complex;
  absl::Status s =
      fourier_->Run(job.RealLines(), false, reads_input ? job.input : job.real, to, job.work);
  if (s.ok() && !job.RealIsLast()) {
    s = Copy(job, {to, job.output, extents, StridesWithLast(extents, axis, job.complex_item),
                   ContiguousStrides(extents, job.complex_item), job.complex_item});
  }
  CUdeviceptr from = job.output;
  return s.ok() ? TransformOthers(job, &from, job.output, extents) : s;
}

absl::Status Fft::RunToReal(Job& job) {
  const int axis = job.RealPass().axis;
  const Extents strides = ContiguousStrides(job.padded, job.complex_item);
  if (absl::Status s = CopyInput(job, job.complex, strides, job.padded); !s.ok()) return s;
  CUdeviceptr from = job.complex;
  if (absl::Status s = TransformOthers(job, &from, job.complex, job.padded); !s.ok()) return s;
  if (job.RealIsLast())
    return fourier_->Run(job.RealLines(), true, job.complex, job.output, job.work);
  const CUdeviceptr turned = job.complex + Aligned(job.outer_size * job.half() * job.complex_item);
  absl::Status s =
      Copy(job, {job.complex, turned, job.padded, strides,
                 StridesWithLast(job.padded, axis, job.complex_item), job.complex_item});
  if (s.ok()) s = fourier_->Run(job.RealLines(), true, turned, job.real, job.work);
  const Extents& extents = job.shape.output_extents();
  if (!s.ok()) return s;
  return Copy(job, {job.real, job.output, extents, StridesWithLast(extents, axis, job.real_item),
                    ContiguousStrides(extents, job.real_item), job.real_item});
}

absl::Status Fft::Scale(Job& job) {
  if (job.launch.scale() == 1) return absl::OkStatus();
  auto kernel = module_.Find(ScaleEntry(job.real_item));
  if (!kernel.ok()) return kernel.status();
  uint64_t data = job.output;
  int64_t count = Product(job.shape.output_extents()) * (IsComplex(job.shape.output_dtype) ? 2 : 1);
  double factor = job.launch.scale();
  void* parameters[] = {&data, &count, &factor};
  return Launch(job.lowering.driver, job.lowering.stream, **kernel, GridFor(job.lowering, count),
                absl::MakeSpan(parameters));
}

}  // namespace stride::cuda
