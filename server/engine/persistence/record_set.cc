#include "server/engine/persistence/record_set.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/engine/persistence/record_convert.h"
#include "server/recovery/key.h"
#include "server/session/resource_name.h"

namespace stride::engine {

using recovery::Kind;

absl::StatusOr<RecordSet> RecordSet::FromJournals(const recovery::Journals& journals) {
  RecordSet records;
  absl::Status status;
  journals.ForEach([&](uint64_t key, std::string_view bytes) {
    if (status.ok()) status = records.Add(key, bytes);
  });
  if (!status.ok()) return status;
  records.Finish();
  return records;
}

// Calls `visit(map)` with the map of records of this kind. False: there is no such kind.
template <typename Visit>
bool RecordSet::Find(Kind kind, Visit visit) {
  auto is = [&](Kind other, auto& map) { return kind == other && (visit(map), true); };
  return is(Kind::kSession, sessions) || is(Kind::kArray, arrays) || is(Kind::kBuffer, buffers) ||
         is(Kind::kArena, arenas) || is(Kind::kWorker, workers) || is(Kind::kTask, tasks) ||
         is(Kind::kDispatch, dispatches) || is(Kind::kTaskResult, results) ||
         is(Kind::kJob, jobs) || is(Kind::kModule, modules) || is(Kind::kFunction, functions) ||
         is(Kind::kProgram, programs) || is(Kind::kProgramLaunch, program_launches);
}

absl::Status RecordSet::Add(uint64_t key, std::string_view bytes) {
  const uint64_t id = recovery::IdOf(key);
  const Kind kind = recovery::KindOf(key);
  // The disk still has all, and no client has observed a change.
  if (kind == Kind::kReadingDisk) return absl::NotFoundError("");
  // Arenas have a count of their own, and tasks another, which their other records share.
  if (kind == Kind::kTask || kind == Kind::kDispatch || kind == Kind::kTaskResult) {
    last_task = std::max(last_task, id);
  } else if (kind != Kind::kArena) {
    last_id = std::max(last_id, id);
  }
  if (kind == Kind::kInlineBytes) {
    inline_bytes[id] = std::string(bytes);
    return absl::OkStatus();
  }
  bool parsed = false;
  const bool known = Find(kind, [&](auto& map) {
    parsed = map[id].ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  });
  if (!known) return absl::DataLossError("the journal is of a later version");
  if (!parsed) return absl::DataLossError("the journal is damaged: a record cannot be read");
  return absl::OkStatus();
}

void RecordSet::Finish() {
  // Ended tasks have no record, but no later task may get the id of one.
  for (const auto& [id, job] : jobs) {
    for (uint64_t task : job.tasks()) last_task = std::max(last_task, task);
  }
  // An empty dispatch means that the task was taken back.
  for (auto& [id, task] : tasks) {
    if (task.has_dispatch()) dispatches.try_emplace(id, task.dispatch());
    auto dispatch = dispatches.find(id);
    if (dispatch != dispatches.end() && dispatch->second.last_sequence() == 0)
      dispatches.erase(dispatch);
  }
}

RecordSet RecordSet::FromRows(const durable::Rows& rows, std::vector<std::string>* damage) {
  RecordSet records;
  for (const auto& [id, row] : rows.arrays) {
    if (!records.AddArray(row, rows)) damage->push_back(absl::StrCat("the row of array ", id));
  }
  for (const auto& [id, row] : rows.definitions) {
    bool read = true;  // a kind of a later version is left alone
    if (row.kind == durable::DefinitionRow::kFunction) {
      read = records.functions[id].ParseFromString(row.record);
      records.functions[id].set_durable(id);
    } else if (row.kind == durable::DefinitionRow::kProgram) {
      read = records.programs[id].ParseFromString(row.record);
      records.programs[id].set_durable(id);
    }
    if (read) continue;
    damage->push_back(absl::StrCat("the row of function or program ", id));
    records.functions.erase(id);
    records.programs.erase(id);
  }
  return records;
}

// Adds the array and its buffer, which is to be read from the file. False: the row is damaged.
bool RecordSet::AddArray(const durable::ArrayRow& row, const durable::Rows& rows) {
  recovery::ArrayRecord record;
  if (!record.ParseFromString(row.record)) return false;
  auto name = session::ParseArrayName(record.name(), "name");
  auto info = InfoFrom(record.info());
  if (!name.ok() || !name->session.empty() || !info.ok()) return false;
  recovery::BufferRecord buffer;
  buffer.set_tenant(record.tenant());
  auto content = rows.contents.find(row.content);
  const bool kept = row.content != 0 && content != rows.contents.end();
  if (kept) {
    const ByteExtent extent = Extent(*info);
    if (extent.begin < 0 || extent.end > content->second.size) return false;
    buffer.set_size(content->second.size);
    buffer.set_kept(row.content);
  } else {
    buffer.set_size(info->size_bytes());
    *buffer.mutable_error() = record.error();
    if (!record.has_error()) {
      SetStatus(MakeError(absl::StatusCode::kDataLoss, v1::ERROR_REASON_DATA_LOST,
                          "the array's content was lost while the machine was off: its file is not "
                          "known"),
                buffer.mutable_error());
    }
  }
  // Rows of arrays and contents share one count of ids.
  const uint64_t id = kept ? row.content : row.id;
  buffers.try_emplace(id, std::move(buffer));
  record.set_buffer(id);
  record.set_durable(row.id);
  record.clear_error();
  arrays[row.id] = std::move(record);
  return true;
}

}  // namespace stride::engine
