#include "stride/shared_buffer.h"

#include "client/cpp/src/user_region.h"

namespace stride {

SharedBuffer::SharedBuffer(std::shared_ptr<internal::UserRegion> region)
    : region_(std::move(region)) {}

SharedBuffer& SharedBuffer::operator=(SharedBuffer&&) noexcept = default;

SharedBuffer::~SharedBuffer() = default;

std::byte* SharedBuffer::data() const {
  return region_ == nullptr ? nullptr : region_->region().data();
}

size_t SharedBuffer::size() const {
  return region_ == nullptr ? 0 : static_cast<size_t>(region_->region().size());
}

}  // namespace stride
