// Linear algebra, Fourier transforms and random numbers.
#include "client/cpp/src/convert.h"
#include "client/cpp/src/operand_impl.h"
#include "client/cpp/src/operation_impl.h"

namespace stride {
namespace {

using internal::Use;

// `num_results`: set when more than the values are requested.
void SetLinalg(v1::Linalg::Function function, const std::vector<Operand>& operands,
               const LinalgOptions& options, int num_results, Operation::Impl& impl) {
  auto* linalg = impl.message.mutable_linalg();
  linalg->set_function(function);
  for (const Operand& operand : operands) *linalg->add_operands() = Use(operand, impl);
  linalg->set_upper(options.upper);
  linalg->set_full(options.full);
  linalg->set_values_only(options.values_only);
  impl.num_outputs = options.values_only ? 1 : num_results;
}

v1::Fft* SetFft(v1::Fft::Kind kind, const Operand& input, const FftOptions& options,
                Operation::Impl& impl) {
  auto* fft = impl.message.mutable_fft();
  fft->set_kind(kind);
  *fft->mutable_input() = Use(input, impl);
  fft->mutable_axes()->Assign(options.axes.begin(), options.axes.end());
  fft->mutable_lengths()->Assign(options.lengths.begin(), options.lengths.end());
  fft->set_norm(static_cast<v1::Fft::Norm>(options.norm));
  return fft;
}

void SetDistribution(const Distribution& distribution, v1::Creation::Random* random) {
  if (const auto* uniform = std::get_if<Uniform>(&distribution)) {
    random->mutable_uniform()->set_low(uniform->low);
    random->mutable_uniform()->set_high(uniform->high);
  } else if (const auto* normal = std::get_if<Normal>(&distribution)) {
    random->mutable_normal()->set_mean(normal->mean);
    random->mutable_normal()->set_deviation(normal->deviation);
  } else if (const auto* integers = std::get_if<RandomIntegers>(&distribution)) {
    *random->mutable_integers()->mutable_low() = Operand(integers->low).impl().message.scalar();
    *random->mutable_integers()->mutable_high() = Operand(integers->high).impl().message.scalar();
  } else {
    random->mutable_bits();
  }
}

}  // namespace

Operation Operation::Cholesky(const Operand& matrix, const LinalgOptions& options) {
  Operation out;
  SetLinalg(v1::Linalg::FUNCTION_CHOLESKY, {matrix}, options, 1, *out.impl_);
  return out;
}

Operation Operation::Qr(const Operand& matrix, const LinalgOptions& options) {
  Operation out;
  SetLinalg(v1::Linalg::FUNCTION_QR, {matrix}, options, 2, *out.impl_);
  return out;
}

Operation Operation::Svd(const Operand& matrix, const LinalgOptions& options) {
  Operation out;
  SetLinalg(v1::Linalg::FUNCTION_SVD, {matrix}, options, 3, *out.impl_);
  return out;
}

Operation Operation::Eigh(const Operand& matrix, const LinalgOptions& options) {
  Operation out;
  SetLinalg(v1::Linalg::FUNCTION_EIGH, {matrix}, options, 2, *out.impl_);
  return out;
}

Operation Operation::Eig(const Operand& matrix, const LinalgOptions& options) {
  Operation out;
  SetLinalg(v1::Linalg::FUNCTION_EIG, {matrix}, options, 2, *out.impl_);
  return out;
}

Operation Operation::Inverse(const Operand& matrix) {
  Operation out;
  SetLinalg(v1::Linalg::FUNCTION_INVERSE, {matrix}, {}, 1, *out.impl_);
  return out;
}

Operation Operation::Solve(const Operand& matrix, const Operand& right) {
  Operation out;
  SetLinalg(v1::Linalg::FUNCTION_SOLVE, {matrix, right}, {}, 1, *out.impl_);
  return out;
}

Operation Operation::Lu(const Operand& matrix) {
  Operation out;
  SetLinalg(v1::Linalg::FUNCTION_LU, {matrix}, {}, 2, *out.impl_);
  return out;
}

Operation Operation::Fft(const Operand& input, const FftOptions& options) {
  Operation out;
  SetFft(v1::Fft::KIND_COMPLEX, input, options, *out.impl_);
  return out;
}

Operation Operation::InverseFft(const Operand& input, const FftOptions& options) {
  Operation out;
  SetFft(v1::Fft::KIND_COMPLEX, input, options, *out.impl_)->set_inverse(true);
  return out;
}

Operation Operation::RealFft(const Operand& input, const FftOptions& options) {
  Operation out;
  SetFft(v1::Fft::KIND_REAL_TO_COMPLEX, input, options, *out.impl_);
  return out;
}

Operation Operation::InverseRealFft(const Operand& input, const FftOptions& options) {
  Operation out;
  SetFft(v1::Fft::KIND_COMPLEX_TO_REAL, input, options, *out.impl_);
  return out;
}

Operation Operation::Random(const ArraySpec& spec, const RandomStream& stream,
                            const Distribution& distribution) {
  Operation out;
  auto* random = out.impl_->message.mutable_creation()->mutable_random();
  internal::ToProto(spec, random->mutable_spec());
  random->set_generator(static_cast<v1::Creation::Random::Generator>(stream.generator));
  random->set_key(stream.key);
  random->set_counter(stream.counter);
  random->set_counter_high(stream.counter_high);
  SetDistribution(distribution, random);
  return out;
}

}  // namespace stride
