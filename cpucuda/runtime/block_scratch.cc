#include "cpucuda/runtime/block_scratch.h"

#include <sys/mman.h>

namespace stride::cpucuda {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

BlockScratch::~BlockScratch() {
  if (bytes_ != nullptr) munmap(bytes_, size_);
}

unsigned char* BlockScratch::Reserve(size_t num_bytes) {
  // Masked code may read one vector past the end; an extra page makes that harmless.
  size_t needed = (num_bytes + kPage - 1) / kPage * kPage + kPage;
  if (needed <= size_) return bytes_;
  if (bytes_ != nullptr) munmap(bytes_, size_);
  void* fresh = mmap(nullptr, needed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bytes_ = fresh == MAP_FAILED ? nullptr : static_cast<unsigned char*>(fresh);
  size_ = bytes_ == nullptr ? 0 : needed;
  return bytes_;
}

}  // namespace stride::cpucuda
