#pragma once

#include <string_view>
#include <utility>

#include "server/recovery/journal.h"
#include "server/recovery/journals.h"
#include "tests/support/memory_keeper.h"

namespace stride::testing {

// The descriptors as a daemon of an earlier version would have left them, with one journal for all.
// Unchanged if their journals cannot be read.
inline MemoryKeeper::Files WithOneJournal(MemoryKeeper::Files files) {
  MemoryKeeper before, after;
  for (const auto& [name, fd] : files) before.Store(name, fd.get()).IgnoreError();
  MemoryKeeper::Files copies = before.Copy();
  auto journals = recovery::Journals::Open(&before, &copies);
  if (!journals.ok()) return files;
  auto one = recovery::Journal::Create(&after, "journal");
  if (!one.ok()) return files;
  (*journals)->ForEach([&](uint64_t key, std::string_view bytes) { (*one)->Set(key, bytes); });
  if (!(*one)->Commit().ok()) return files;
  MemoryKeeper::Files merged = after.Copy();
  for (auto& [name, fd] : files) {
    if (!recovery::Journals::IsFileName(name)) merged[name] = std::move(fd);
  }
  return merged;
}

}  // namespace stride::testing
