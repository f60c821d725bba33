// Compares our reader of PutArrayRequest with the check of all requests and with protobuf. The
// first byte of the input chooses how the rest is cut into slices. With Clang: clang++
// -fsanitize=fuzzer,address and the libraries of target stride_transfer; put_decoder_test also runs
// the corpus next to this file.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/request_check.h"
#include "server/transfer/put_decoder.h"

namespace {

std::vector<std::string_view> Cut(std::string_view bytes, uint8_t seed) {
  std::vector<std::string_view> slices;
  uint32_t state = seed;
  while (!bytes.empty()) {
    state = state * 1664525 + 1013904223;
    size_t size = seed == 0 ? bytes.size() : (state >> 24) % (seed % 16 + 2);
    slices.push_back(bytes.substr(0, size));
    bytes.remove_prefix(slices.back().size());
  }
  return slices;
}

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "put_decoder_fuzz: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  std::string_view input(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  auto ours = stride::transfer::DecodePutMessage(Cut(input, bytes[0]));
  stride::v1::PutArrayRequest theirs;
  const auto& shape = stride::ShapeOf<stride::v1::PutArrayRequest>();
  const bool accepted =
      stride::CheckRequest(absl::MakeConstSpan(&input, 1), shape, {1 << 30, 1 << 30}).ok() &&
      theirs.ParseFromString(std::string(input));
  if (input.size() <= stride::transfer::PutDecoder::kMaxHeaderBytes) {
    Require(ours.ok() == accepted, "one accepts what the other refuses");
  }
  if (!ours.ok()) return 0;
  std::string data;
  for (std::string_view piece : ours->data) data.append(piece);
  Require(data == theirs.data(), "data differs");
  Require(static_cast<int64_t>(data.size()) == ours->data_bytes, "data_bytes is wrong");
  Require(ours->chunk.has_value() == theirs.has_chunk(), "presence of the chunk differs");
  if (ours->chunk.has_value()) {
    Require(ours->chunk->offset() == theirs.chunk().offset(), "the chunk's offset differs");
    Require(ours->chunk->size() == theirs.chunk().size(), "the chunk's size differs");
  }
  Require(ours->header.has_value() == theirs.has_header(), "presence of the header differs");
  if (!ours->header.has_value()) return 0;
  // Not compared as bytes: a merge keeps unknown fields in another order.
  stride::v1::PutArrayRequest::Header expected = theirs.header();
  expected.DiscardUnknownFields();
  ours->header->DiscardUnknownFields();
  Require(ours->header->SerializeAsString() == expected.SerializeAsString(), "header differs");
  return 0;
}
