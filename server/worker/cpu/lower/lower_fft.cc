#include <algorithm>
#include <atomic>
#include <new>

#include "server/worker/codegen/fft_shape.h"
#include "server/worker/cpu/lower/fft_plan_cache.h"
#include "server/worker/cpu/lower/lowering.h"
#include "server/worker/cpu/lower/scratch.h"

namespace stride::cpu {
namespace {

using Kind = wire::FftLaunch;

// Lines that are transformed together: along a strided axis, neighbouring lines share cache lines.
constexpr int64_t kLinesPerBlock = kFftLines;

// An array between two passes.
struct Strided {
  std::byte* data = nullptr;
  std::vector<int64_t> strides;  // bytes
};

// The transforms along one axis.
struct PassWork {
  const codegen::FftShape::Pass* pass = nullptr;
  int64_t input_length = 0;  // elements along the axis
  Strided from, to;
  bool inverse = false;
  double scale = 1;
  std::vector<int64_t> line_extents;  // extents of the other axes
  int64_t num_lines = 1;

  // Byte offsets of a line's first elements.
  void Find(int64_t line, int64_t* from_offset, int64_t* to_offset) const {
    *from_offset = *to_offset = 0;
    for (size_t axis = line_extents.size(); axis-- > 0;) {
      if (static_cast<int>(axis) == pass->axis) continue;
      const int64_t index = line % line_extents[axis];
      line /= line_extents[axis];
      *from_offset += index * from.strides[axis];
      *to_offset += index * to.strides[axis];
    }
  }
};

template <typename T>
Complex<T> Conjugate(Complex<T> a) {
  return {a.re, -a.im};
}

// Transforms the lines of one pass: gather, transform, scatter.
template <typename T>
class LineTransform {
 public:
  LineTransform(const PassWork& work, FftPlanCache& cache)
      : work_(work),
        n_(work.pass->length),
        tables_(cache.Get<T>(n_, work.pass->kind != Kind::KIND_COMPLEX)),
        plan_(tables_->plan),
        half_roots_(tables_->half_roots),
        is_halved_(tables_->is_halved) {}

  size_t scratch_bytes() const {
    return kLinesPerBlock * line_bytes() +
           (std::max(plan_.work_bytes(), plan_.together_bytes()) + 63) / 64 * 64;
  }

  void RunBlock(int64_t block, std::byte* scratch) const {
    const int64_t first = block * kLinesPerBlock;
    const int64_t count = std::min(kLinesPerBlock, work_.num_lines - first);
    int64_t from[kLinesPerBlock], to[kLinesPerBlock];
    Complex<T>* lines[kLinesPerBlock];
    for (int64_t i = 0; i < count; ++i) {
      work_.Find(first + i, &from[i], &to[i]);
      lines[i] = reinterpret_cast<Complex<T>*>(scratch + i * line_bytes());
    }
    std::byte* rest = scratch + kLinesPerBlock * line_bytes();
    switch (work_.pass->kind) {
      case Kind::KIND_REAL_TO_COMPLEX:
        for (int64_t i = 0; i < count; ++i) LoadReal(from[i], lines[i]);
        RunLines(lines, count, rest);
        for (int64_t i = 0; i < count; ++i) StoreHalf(lines[i], to[i]);
        break;
      case Kind::KIND_COMPLEX_TO_REAL:
        for (int64_t i = 0; i < count; ++i) LoadHalf(from[i], lines[i]);
        RunLines(lines, count, rest);
        for (int64_t i = 0; i < count; ++i) StoreReal(lines[i], to[i]);
        break;
      default:
        Load(from, count, lines);
        RunLines(lines, count, rest);
        Store(lines, count, to);
    }
  }

 private:
  void RunLines(Complex<T>* const* lines, int64_t count, std::byte* rest) const {
    if (count == kFftLines && plan_.together_bytes() > 0) return plan_.RunTogether(lines, rest);
    for (int64_t i = 0; i < count; ++i) plan_.Run(lines[i], rest);
  }
  size_t line_bytes() const {
    return (std::max<size_t>(n_, n_ / 2 + 1) * sizeof(Complex<T>) + 63) / 64 * 64;
  }
  int64_t from_stride() const { return work_.from.strides[work_.pass->axis]; }
  int64_t to_stride() const { return work_.to.strides[work_.pass->axis]; }
  const Complex<T>& In(int64_t offset, int64_t j) const {
    return *reinterpret_cast<const Complex<T>*>(work_.from.data + offset + j * from_stride());
  }
  T RealIn(int64_t offset, int64_t j) const {
    if (j >= work_.input_length) return 0;
    return *reinterpret_cast<const T*>(work_.from.data + offset + j * from_stride());
  }
  Complex<T>& Out(int64_t offset, int64_t j) const {
    return *reinterpret_cast<Complex<T>*>(work_.to.data + offset + j * to_stride());
  }
  T& RealOut(int64_t offset, int64_t j) const {
    return *reinterpret_cast<T*>(work_.to.data + offset + j * to_stride());
  }

  // The inverse transform is the forward one of conjugates, conjugated.
  void Load(const int64_t* from, int64_t count, Complex<T>* const* lines) const {
    const int64_t given = std::min(n_, work_.input_length);
    for (int64_t j = 0; j < given; ++j) {
      for (int64_t i = 0; i < count; ++i) {
        const Complex<T> element = In(from[i], j);
        lines[i][j] = work_.inverse ? Conjugate(element) : element;
      }
    }
    for (int64_t i = 0; i < count; ++i) std::fill(lines[i] + given, lines[i] + n_, Complex<T>());
  }
  void Store(Complex<T>* const* lines, int64_t count, const int64_t* to) const {
    const T scale = static_cast<T>(work_.scale);
    const T imaginary_scale = work_.inverse ? -scale : scale;
    for (int64_t j = 0; j < n_; ++j) {
      for (int64_t i = 0; i < count; ++i)
        Out(to[i], j) = {scale * lines[i][j].re, imaginary_scale * lines[i][j].im};
    }
  }

  // For even length, pairs of neighbours form complex numbers. Their transform has half the length,
  // and the transforms of even and odd elements are separated from it.
  void LoadReal(int64_t from, Complex<T>* line) const {
    if (!is_halved_) {
      for (int64_t j = 0; j < n_; ++j) line[j] = {RealIn(from, j), 0};
      return;
    }
    const int64_t given = std::min(n_, work_.input_length) / 2;
    const std::byte* at = work_.from.data + from;
    for (int64_t j = 0; j < given; ++j, at += 2 * from_stride()) {
      line[j] = {*reinterpret_cast<const T*>(at), *reinterpret_cast<const T*>(at + from_stride())};
    }
    for (int64_t j = given; j < n_ / 2; ++j)
      line[j] = {RealIn(from, 2 * j), RealIn(from, 2 * j + 1)};
  }
  void StoreHalf(const Complex<T>* line, int64_t to) const {
    const T scale = static_cast<T>(work_.scale);
    const int64_t half = n_ / 2;
    if (!is_halved_) {
      for (int64_t k = 0; k <= half; ++k) Out(to, k) = {scale * line[k].re, scale * line[k].im};
      return;
    }
    const auto store = [&](int64_t k, Complex<T> a, Complex<T> b) {
      b = Conjugate(b);
      const Complex<T> even = {(a.re + b.re) / 2, (a.im + b.im) / 2};
      const Complex<T> odd = {(a.im - b.im) / 2, (b.re - a.re) / 2};  // divided by i
      const Complex<T> root = half_roots_[k];
      Out(to, k) = {scale * (even.re + root.re * odd.re - root.im * odd.im),
                    scale * (even.im + root.re * odd.im + root.im * odd.re)};
    };
    store(0, line[0], line[0]);
    for (int64_t k = 1; k < half; ++k) store(k, line[k], line[half - k]);
    store(half, line[0], line[0]);
  }

  // Missing elements are zero. A real transform has no imaginary parts at both ends, so they are
  // dropped.
  Complex<T> HalfIn(int64_t from, int64_t k) const {
    Complex<T> element = k < work_.input_length ? In(from, k) : Complex<T>();
    if (k == 0 || 2 * k == n_) element.im = 0;
    return element;
  }
  // Loads conjugates, for a forward transform.
  void LoadHalf(int64_t from, Complex<T>* line) const {
    const int64_t half = n_ / 2;
    if (!is_halved_) {
      for (int64_t k = 0; k <= half; ++k) {
        const Complex<T> element = HalfIn(from, k);
        if (k > 0) line[n_ - k] = element;
        line[k] = Conjugate(element);
      }
      return;
    }
    for (int64_t k = 0; k < half; ++k) {
      const Complex<T> a = HalfIn(from, k), b = Conjugate(HalfIn(from, half - k));
      const Complex<T> even = {a.re + b.re, a.im + b.im}, difference = {a.re - b.re, a.im - b.im};
      const Complex<T> root = Conjugate(half_roots_[k]);
      const Complex<T> odd = {root.re * difference.re - root.im * difference.im,
                              root.re * difference.im + root.im * difference.re};
      line[k] = Conjugate(Complex<T>{even.re - odd.im, even.im + odd.re});  // even + i odd
    }
  }
  void StoreReal(const Complex<T>* line, int64_t to) const {
    const T scale = static_cast<T>(work_.scale);
    if (!is_halved_) {
      for (int64_t j = 0; j < n_; ++j) RealOut(to, j) = scale * line[j].re;
      return;
    }
    for (int64_t j = 0; j < n_ / 2; ++j) {
      RealOut(to, 2 * j) = scale * line[j].re;
      RealOut(to, 2 * j + 1) = scale * -line[j].im;
    }
  }

  const PassWork& work_;
  const int64_t n_;
  const std::shared_ptr<const FftTables<T>> tables_;
  const FftPlan<T>& plan_;
  const std::vector<Complex<T>>& half_roots_;
  const bool is_halved_;
};

absl::Status NoMemory() {
  return absl::ResourceExhaustedError("no memory for what a Fourier transform keeps between axes");
}

template <typename T>
absl::Status RunPass(const PassWork& work, cpucuda::ThreadPool& pool, FftPlanCache& cache) {
  std::unique_ptr<LineTransform<T>> lines;
  try {
    lines = std::make_unique<LineTransform<T>>(work, cache);
  } catch (const std::bad_alloc&) {  // the tables of a very long line
    return NoMemory();
  }
  const int64_t num_blocks = (work.num_lines + kLinesPerBlock - 1) / kLinesPerBlock;
  std::vector<ScratchMemory> scratch(pool.num_threads());
  std::atomic<bool> no_memory{false};
  pool.ParallelFor(num_blocks, num_blocks / (int64_t{pool.num_threads()} * 8) + 1,
                   [&](int64_t begin, int64_t end, int thread) {
                     if (!scratch[thread])
                       scratch[thread] = AllocateScratch(lines->scratch_bytes());
                     if (!scratch[thread]) {
                       no_memory = true;
                       return;
                     }
                     for (int64_t i = begin; i < end; ++i)
                       lines->RunBlock(i, scratch[thread].get());
                   });
  return no_memory ? NoMemory() : absl::OkStatus();
}

struct Transform {
  codegen::FftShape shape;
  Strided input, output;
  bool inverse = false;
  double scale = 1;
};

std::vector<int64_t> ContiguousStrides(const std::vector<int64_t>& extents, int64_t item) {
  std::vector<int64_t> strides(extents.size());
  for (size_t axis = extents.size(); axis-- > 0;) {
    strides[axis] = item;
    item *= extents[axis];
  }
  return strides;
}

absl::Status Run(const Transform& transform, cpucuda::ThreadPool& pool, FftPlanCache& cache) {
  const codegen::FftShape& shape = transform.shape;
  const int64_t item = ItemSize(shape.complex_dtype);
  const bool single = shape.complex_dtype == DType::kComplex64;
  std::vector<ScratchMemory> between;
  Strided current = transform.input;
  std::vector<int64_t> extents = shape.input_extents;
  for (size_t i = 0; i < shape.passes.size(); ++i) {
    const codegen::FftShape::Pass& pass = shape.passes[i];
    PassWork work{&pass, extents[pass.axis], current};
    const bool is_last = i + 1 == shape.passes.size();
    // Once an array has its final shape and type, it is transformed in place; a line is read whole
    // before it is written.
    const bool in_output =
        shape.output_dtype == shape.complex_dtype && pass.extents == shape.output_extents();
    if (is_last || in_output) {
      work.to = transform.output;
    } else if (i > 0 && pass.extents == extents) {
      work.to = current;
    } else {
      auto count = NumElements(pass.extents);
      int64_t bytes = 0;
      if (!count.ok() || __builtin_mul_overflow(*count, item, &bytes)) return NoMemory();
      between.push_back(AllocateScratch(std::max<int64_t>(bytes, 1)));
      if (!between.back()) return NoMemory();
      work.to = {between.back().get(), ContiguousStrides(pass.extents, item)};
    }
    work.inverse = transform.inverse;
    work.scale = is_last ? transform.scale : 1;
    work.line_extents = extents;
    for (size_t axis = 0; axis < extents.size(); ++axis)
      if (static_cast<int>(axis) != pass.axis) work.num_lines *= extents[axis];
    absl::Status status =
        single ? RunPass<float>(work, pool, cache) : RunPass<double>(work, pool, cache);
    if (!status.ok()) return status;
    current = work.to;
    extents = pass.extents;
  }
  return absl::OkStatus();
}

absl::StatusOr<Place> FindArray(const LoweringContext& context, const wire::Operand& operand,
                                const std::vector<int64_t>& extents) {
  auto count = NumElements(extents);
  if (!count.ok()) return count.status();
  if (*count == 0) return context.arenas->Bytes(operand.arena(), operand.offset(), 0);
  return context.arenas->Elements(operand, extents);
}

}  // namespace

absl::StatusOr<Work> LowerFft(const LoweringContext& context, const wire::FftLaunch& launch) {
  auto shape = codegen::ReadFft(launch);
  if (!shape.ok()) return shape.status();
  auto input = FindArray(context, launch.input(), shape->input_extents);
  if (!input.ok()) return input.status();
  auto output = FindArray(context, launch.output(), shape->output_extents());
  if (!output.ok()) return output.status();
  if (*NumElements(shape->output_extents()) == 0) return NoWork();
  auto transform = std::make_shared<Transform>();
  transform->input = {input->address,
                      {launch.input().strides().begin(), launch.input().strides().end()}};
  transform->output = {output->address,
                       {launch.output().strides().begin(), launch.output().strides().end()}};
  transform->inverse = launch.inverse() || launch.kind() == Kind::KIND_COMPLEX_TO_REAL;
  transform->scale = launch.scale();
  transform->shape = *std::move(shape);
  Work work;
  work.run = [pool = context.pool, cache = context.fft_plans, transform] {
    return Run(*transform, *pool, *cache);
  };
  work.operands = {*std::move(input), *std::move(output)};
  return work;
}

}  // namespace stride::cpu
