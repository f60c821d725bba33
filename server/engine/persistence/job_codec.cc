#include "server/engine/persistence/job_codec.h"

#include <set>

#include "server/ops/operation_view.h"
#include "server/session/resource_name.h"

namespace stride::engine {

void ToRecord(const v1::Job& asked, recovery::DurableJobRecord* record) {
  v1::Job accepted = asked;
  accepted.clear_state();
  accepted.clear_error();
  accepted.clear_timelines();
  accepted.clear_results();
  accepted.SerializeToString(record->mutable_job());
  std::set<std::string> known;
  auto add = [&](const std::string& name, bool made) {
    if (!session::ParseArrayName(name, "name").ok() || !known.insert(name).second) return;
    recovery::NamedArrayRecord* array = record->add_arrays();
    array->set_name(name);
    array->set_made(made);
  };
  // An array that it makes is not one that it finds, though it uses it too.
  for (const v1::Operation& operation : asked.operations()) {
    for (const v1::Output* output : ops::OutputsOf(operation)) {
      if (output->target_case() == v1::Output::kName && !output->existing())
        add(output->name(), /*made=*/true);
    }
  }
  for (const v1::Operation& operation : asked.operations()) {
    for (const v1::Operand* operand : ops::OperandsOf(operation)) {
      if (operand->source_case() == v1::Operand::kName) add(operand->name(), /*made=*/false);
    }
    for (const v1::Output* output : ops::OutputsOf(operation)) {
      if (output->target_case() == v1::Output::kName && output->existing())
        add(output->name(), /*made=*/false);
    }
  }
}

}  // namespace stride::engine
