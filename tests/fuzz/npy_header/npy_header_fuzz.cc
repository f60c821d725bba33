// Headers of .npy files: an accepted header can be written again and reads the same.

#include <cstdint>
#include <span>
#include <string>

#include "client/npy/header.h"
#include "tests/fuzz/driver/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using stride::fuzz::Require;
  namespace npy = stride::npy;
  auto header = npy::ParseHeader(std::as_bytes(std::span(bytes, size)));
  if (!header) return 0;
  Require(header->data_offset <= size, "elements begin after the end");
  Require(stride::SizeBytes(header->spec).has_value(), "a size that nothing can hold");
  auto text = npy::FormatHeader(header->spec);
  Require(text.ok(), "what was read cannot be written");
  auto again = npy::ParseHeader(std::as_bytes(std::span(text->data(), text->size())));
  Require(again.ok(), "what was written cannot be read");
  Require(again->spec.shape == header->spec.shape, "another shape");
  Require(again->spec.data_type == header->spec.data_type, "another type");
  return 0;
}
