#include "stride/operand.h"

#include "client/cpp/src/convert.h"
#include "client/cpp/src/operand_impl.h"

namespace stride {
namespace {

std::shared_ptr<const Operand::Impl> ScalarImpl(const v1::Scalar& scalar) {
  auto impl = std::make_shared<Operand::Impl>();
  *impl->message.mutable_scalar() = scalar;
  return impl;
}

}  // namespace

Operand::Operand(const Array& array) {
  auto impl = std::make_shared<Impl>();
  impl->array = array.state();
  // An empty Array leaves the source unset, which the daemon refuses by field.
  if (impl->array && impl->array->handle() != 0) {
    impl->message.set_handle(impl->array->handle());
  } else if (impl->array) {
    impl->message.set_name(impl->array->given_name());
  }
  impl_ = std::move(impl);
}

Operand::Operand(bool value) {
  v1::Scalar scalar;
  scalar.set_bool_value(value);
  impl_ = ScalarImpl(scalar);
}

Operand::Operand(double value) {
  v1::Scalar scalar;
  scalar.set_float_value(value);
  impl_ = ScalarImpl(scalar);
}

Operand::Operand(std::complex<double> value) {
  v1::Scalar scalar;
  scalar.mutable_complex_value()->set_real(value.real());
  scalar.mutable_complex_value()->set_imaginary(value.imag());
  impl_ = ScalarImpl(scalar);
}

Operand Operand::FromInt(int64_t value) {
  v1::Scalar scalar;
  scalar.set_int_value(value);
  Operand out;
  out.impl_ = ScalarImpl(scalar);
  return out;
}

Operand Operand::FromUint(uint64_t value) {
  v1::Scalar scalar;
  scalar.set_uint_value(value);
  Operand out;
  out.impl_ = ScalarImpl(scalar);
  return out;
}

Operand Operand::Named(std::string name) {
  auto impl = std::make_shared<Impl>();
  impl->message.set_name(std::move(name));
  Operand out;
  out.impl_ = std::move(impl);
  return out;
}

Operand Operand::JobHandle(uint64_t handle) {
  auto impl = std::make_shared<Impl>();
  impl->message.set_handle(handle);
  Operand out;
  out.impl_ = std::move(impl);
  return out;
}

Operand Operand::Inline(std::span<const std::byte> data, const ArraySpec& spec) {
  auto impl = std::make_shared<Impl>();
  auto* array = impl->message.mutable_inline_array();
  internal::ToProto(spec, array->mutable_spec());
  array->set_data(data.data(), data.size());
  Operand out;
  out.impl_ = std::move(impl);
  return out;
}

Operand Operand::As(DataType type) const {
  if (!impl_->message.has_scalar()) return *this;
  auto impl = std::make_shared<Impl>(*impl_);
  impl->message.mutable_scalar()->set_data_type(static_cast<v1::DataType>(type));
  Operand out;
  out.impl_ = std::move(impl);
  return out;
}

}  // namespace stride
