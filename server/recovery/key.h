#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace stride::recovery {

// Kinds of records. The numbers are in journals: never change one.
enum class Kind : uint8_t {
  kSession = 1,
  kArray = 2,
  kBuffer = 3,
  kInlineBytes = 4,  // plain content of a buffer that is on no device yet
  kArena = 5,
  kWorker = 6,
  kTask = 7,
  kDispatch = 8,
  kTaskResult = 9,
  kJob = 10,
  kModule = 11,
  kReadingDisk = 12,  // no id, of earlier daemons: the disk was not read completely
  kFunction = 13,
  kProgram = 14,
  kProgramLaunch = 15,
  kStripes = 16,  // the id is the number of partitions whose journals are complete
};

constexpr uint64_t Key(Kind kind, uint64_t id) { return static_cast<uint64_t>(kind) << 56 | id; }
constexpr Kind KindOf(uint64_t key) { return static_cast<Kind>(key >> 56); }
constexpr uint64_t IdOf(uint64_t key) { return key & ((uint64_t{1} << 56) - 1); }

// Names of descriptors at the FdStore.
inline std::string ArenaName(uint64_t id) { return absl::StrCat("arena-", id); }
inline std::string StatusPageName(uint64_t worker) { return absl::StrCat("page-", worker); }
inline std::string ProcessName(uint64_t worker) { return absl::StrCat("process-", worker); }

}  // namespace stride::recovery
