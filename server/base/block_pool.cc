#include "server/base/block_pool.h"

#include <array>
#include <atomic>
#include <new>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stride {
namespace {

constexpr size_t kNumSizes = BlockPool::kLargestBytes / BlockPool::kUnitBytes;
constexpr size_t kMagazineBlocks = 32;
constexpr std::align_val_t kAlignment{BlockPool::kUnitBytes};

size_t Rounded(size_t bytes) {
  return (bytes + BlockPool::kUnitBytes - 1) / BlockPool::kUnitBytes * BlockPool::kUnitBytes;
}

struct FreeBlock {
  FreeBlock* next;
};

// Requests a block's cache lines for writing. Lines that another thread released are in another
// processor's cache, and demand misses on them would take longer than filling them in.
void Prefetch(const void* block, size_t bytes) {
  if (block == nullptr) return;
  const char* const begin = static_cast<const char*>(block);
  for (size_t i = 0; i < bytes; i += BlockPool::kUnitBytes) {
#if defined(__x86_64__)
    // Without -mprfchw the builtin prefetches for reading.
    asm volatile("prefetchw %0" : : "m"(begin[i]));
#else
    __builtin_prefetch(begin + i, 1);
#endif
  }
}

// Free blocks of one size, as an intrusive list.
struct Magazine {
  FreeBlock* first = nullptr;
  size_t count = 0;

  void Push(void* block) {
    first = new (block) FreeBlock{first};
    ++count;
  }
  void* Pop() {
    --count;
    return std::exchange(first, first->next);
  }
  void Free(size_t bytes) {
    while (count > 0) ::operator delete(Pop(), bytes, kAlignment);
  }
};

class Depot {
 public:
  // Never destroyed: threads may end after all static destructors.
  static Depot& Get() {
    static Depot* const depot = new Depot;
    return *depot;
  }

  Magazine Take(size_t size) {
    Shelf& shelf = shelves_[size];
    absl::MutexLock lock(&shelf.mutex);
    if (shelf.magazines.empty()) return {};
    const Magazine taken = shelf.magazines.back();
    shelf.magazines.pop_back();
    free_bytes_.fetch_sub(taken.count * BytesOf(size), std::memory_order_relaxed);
    return taken;
  }

  void Give(size_t size, Magazine magazine) {
    if (magazine.count == 0) return;
    const size_t bytes = magazine.count * BytesOf(size);
    if (free_bytes_.load(std::memory_order_relaxed) + bytes > BlockPool::kMaxFreeBytes) {
      magazine.Free(BytesOf(size));
      return;
    }
    free_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    Shelf& shelf = shelves_[size];
    absl::MutexLock lock(&shelf.mutex);
    shelf.magazines.push_back(magazine);
  }

  void Trim() {
    for (size_t size = 0; size < kNumSizes; ++size) {
      for (Magazine taken = Take(size); taken.count > 0; taken = Take(size))
        taken.Free(BytesOf(size));
    }
  }

  size_t free_bytes() const { return free_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Shelf {
    absl::Mutex mutex;
    std::vector<Magazine> magazines ABSL_GUARDED_BY(mutex);
  };
  static size_t BytesOf(size_t size) { return (size + 1) * BlockPool::kUnitBytes; }

  std::array<Shelf, kNumSizes> shelves_;
  std::atomic<size_t> free_bytes_{0};
};

// One thread's cache of blocks. Its two magazines bound the trips of a thread that alternates
// between Take and Give: at most one per kMagazineBlocks blocks.
class Cache {
 public:
  ~Cache() {
    for (size_t size = 0; size < kNumSizes; ++size) {
      Depot::Get().Give(size, pairs_[size].loaded);
      Depot::Get().Give(size, pairs_[size].spare);
    }
    ended = true;
  }

  void* Take(size_t size) {
    Pair& pair = pairs_[size];
    if (pair.loaded.count == 0) {
      std::swap(pair.loaded, pair.spare);
      if (pair.loaded.count == 0) pair.loaded = Depot::Get().Take(size);
      if (pair.loaded.count == 0) return nullptr;
    }
    void* const block = pair.loaded.Pop();
    Prefetch(pair.loaded.first, (size + 1) * BlockPool::kUnitBytes);  // the next block to be taken
    return block;
  }

  void Give(void* block, size_t size) {
    Pair& pair = pairs_[size];
    if (pair.loaded.count == kMagazineBlocks) {
      Depot::Get().Give(size, std::exchange(pair.spare, pair.loaded));
      pair.loaded = {};
    }
    pair.loaded.Push(block);
  }

  // Set once this thread's cache is destroyed: other thread_local destructors may still release
  // blocks.
  static thread_local bool ended;

 private:
  struct Pair {
    Magazine loaded, spare;
  };
  std::array<Pair, kNumSizes> pairs_;
};

thread_local bool Cache::ended = false;
thread_local Cache cache;

bool IsPooled(size_t rounded) {
  return BlockPool::kPools && rounded > 0 && rounded <= BlockPool::kLargestBytes && !Cache::ended;
}

}  // namespace

void* BlockPool::Take(size_t bytes) {
  const size_t rounded = Rounded(bytes);
  if (!IsPooled(rounded)) return ::operator new(rounded, kAlignment);
  void* block = cache.Take(rounded / kUnitBytes - 1);
  return block != nullptr ? block : ::operator new(rounded, kAlignment);
}

void BlockPool::Give(void* block, size_t bytes) {
  const size_t rounded = Rounded(bytes);
  if (IsPooled(rounded)) {
    cache.Give(block, rounded / kUnitBytes - 1);
  } else {
    ::operator delete(block, rounded, kAlignment);
  }
}

size_t BlockPool::free_bytes() { return Depot::Get().free_bytes(); }

void BlockPool::Trim() { Depot::Get().Trim(); }

}  // namespace stride
