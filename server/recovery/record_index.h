#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/base/bits.h"

namespace stride::recovery {

// Position of each record of a journal, by key. Keys are kinds with ids that count up (key.h), and
// most are erased soon after insertion. So positions lie in pages of neighbouring keys, and
// recently used pages, also absent ones, are cached. A plain hash table of such keys costs a cache
// miss for each and fills with tombstones. Not thread-safe.
class RecordIndex {
 public:
  struct Place {
    uint64_t offset = 0;  // offset of the bytes in the file
    uint32_t size = 0;
  };

  // Null: there is none. Valid until the next change.
  Place* Find(uint64_t key) const {
    Page* page = PageOf(key);
    return page != nullptr && (page->used & Bit(key)) != 0 ? &page->places[key % kPage] : nullptr;
  }
  // Inserts the key if it is absent; true: it is new.
  std::pair<Place*, bool> Insert(uint64_t key) {
    Page* page = PageOf(key);
    if (page == nullptr) {
      page = (pages_[key / kPage] = NewPage()).get();
      Remembered(key) = {key / kPage, page};
    }
    const bool is_new = (page->used & Bit(key)) == 0;
    page->used |= Bit(key);
    if (is_new) ++size_;
    return {&page->places[key % kPage], is_new};
  }
  // The key may be absent.
  void Erase(uint64_t key) {
    Page* page = PageOf(key);
    if (page == nullptr || (page->used & Bit(key)) == 0) return;
    page->used &= ~Bit(key);
    --size_;
    if (page->used != 0) return;
    auto entry = pages_.find(key / kPage);
    if (spare_.size() < kMostSpare) spare_.push_back(std::move(entry->second));
    pages_.erase(entry);
    Remembered(key) = {key / kPage, nullptr};
  }
  size_t size() const { return size_; }

  // Calls `visit` with each key and its place, in no order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& entry : pages_) {
      Page& page = *entry.second;
      ForEachBit(page.used, [&](int i) {
        visit(entry.first * kPage + static_cast<uint64_t>(i), page.places[i]);
      });
    }
  }

 private:
  static constexpr uint64_t kPage = 32;  // number of bits of Page::used
  static constexpr size_t kRemembered = 64;
  static constexpr size_t kMostSpare = 1024;
  struct Page {
    uint32_t used = 0;
    std::array<Place, kPage> places;
  };
  struct Lately {
    uint64_t number = UINT64_MAX;
    Page* page = nullptr;
  };
  static uint32_t Bit(uint64_t key) { return uint32_t{1} << (key % kPage); }
  std::unique_ptr<Page> NewPage() {
    if (spare_.empty()) return std::make_unique<Page>();
    std::unique_ptr<Page> page = std::move(spare_.back());
    spare_.pop_back();
    return page;
  }
  // Separates kinds (the upper byte) and ids.
  Lately& Remembered(uint64_t key) const {
    return lately_[(key / kPage ^ (key >> 56) * 7) % kRemembered];
  }
  Page* PageOf(uint64_t key) const {
    Lately& lately = Remembered(key);
    if (lately.number != key / kPage) {
      auto found = pages_.find(key / kPage);
      lately = {key / kPage, found != pages_.end() ? found->second.get() : nullptr};
    }
    return lately.page;
  }

  absl::flat_hash_map<uint64_t, std::unique_ptr<Page>> pages_;  // by key / kPage
  mutable std::array<Lately, kRemembered> lately_;
  std::vector<std::unique_ptr<Page>> spare_;  // empty pages for reuse
  size_t size_ = 0;
};

}  // namespace stride::recovery
