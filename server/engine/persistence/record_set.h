#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/durable/rows.h"
#include "server/recovery/journals.h"
#include "server/recovery/key.h"
#include "server/recovery/records.pb.h"

namespace stride::engine {

// The records of an earlier daemon, by id: from its journals or, after a reboot, from the disk.
// Both are restored in the same way.
struct RecordSet {
  std::map<uint64_t, recovery::SessionRecord> sessions;
  std::map<uint64_t, recovery::ArrayRecord> arrays;
  std::map<uint64_t, recovery::BufferRecord> buffers;
  std::map<uint64_t, std::string> inline_bytes;
  std::map<uint64_t, recovery::ArenaRecord> arenas;
  std::map<uint64_t, recovery::WorkerRecord> workers;
  std::map<uint64_t, recovery::TaskRecord> tasks;
  std::map<uint64_t, recovery::DispatchRecord> dispatches;  // tasks that a worker has
  std::map<uint64_t, recovery::TaskResultRecord> results;
  std::map<uint64_t, recovery::JobRecord> jobs;
  std::map<uint64_t, recovery::ModuleRecord> modules;
  std::map<uint64_t, recovery::FunctionRecord> functions;
  std::map<uint64_t, recovery::ProgramRecord> programs;
  std::map<uint64_t, recovery::ProgramLaunchRecord> program_launches;
  uint64_t last_id = 0;    // the highest id from the journal writer's count
  uint64_t last_task = 0;  // the highest id of a task

  // DATA_LOSS when a record is damaged or of a later version. NOT_FOUND when the daemon ended while
  // it read the disk: the disk has everything then.
  static absl::StatusOr<RecordSet> FromJournals(const recovery::Journals& journals);

  // Arrays, their buffers, which have files and no blocks, functions and programs. Jobs are not
  // among them, since they run again from their requests. The ids are those of the rows. Damaged
  // rows are left out; `damage` gets a line for each.
  static RecordSet FromRows(const durable::Rows& rows, std::vector<std::string>* damage);

 private:
  absl::Status Add(uint64_t key, std::string_view bytes);
  template <typename Visit>
  bool Find(recovery::Kind kind, Visit visit);
  void Finish();
  bool AddArray(const durable::ArrayRow& row, const durable::Rows& rows);
};

}  // namespace stride::engine
