#include "tests/simulation/model.h"

#include <algorithm>
#include <deque>

#include "absl/strings/str_join.h"
#include "server/base/steady_time.h"

namespace stride::simulation {
namespace {

constexpr size_t kMaxPossibilities = 64;
constexpr int64_t kLargestSmall = 16;  // elements

int64_t At(const Values& values, const View& view, int64_t i) {
  return values[view.offset + i * view.stride];
}

Values In(const Values& values, const View& view) {
  Values out;
  for (int64_t i = 0; i < view.count; ++i) out.push_back(At(values, view, i));
  return out;
}

}  // namespace

// Operations, their results and their locations reference each other.
Model::~Model() {
  for (auto& [id, op] : ops_) {
    op->version->op = nullptr;
    op->version->before = nullptr;
    op->inputs.clear();
  }
}

OpPtr Model::Make(Op::Kind kind, const std::string& tenant) {
  auto op = std::make_shared<Op>();
  op->id = next_id_++;
  op->kind = kind;
  op->tenant = tenant;
  op->submit_time = world_->Now();
  return op;
}

void Model::Accept(const OpPtr& op) {
  for (Input& input : op->inputs) input.version = input.view.buffer->now;
  op->version = std::make_shared<Version>();
  op->version->op = op;
  op->version->before = op->out.buffer->now;
  op->version->size = op->in_place ? op->version->before->size : op->out.count;
  op->out.buffer->now = op->version;
  op->in_pieces = op->version->size > kLargestSmall;
  for (const Input& input : op->inputs)
    op->in_pieces = op->in_pieces || input.version->size > kLargestSmall;
  ops_[op->id] = op;
}

void Model::Undo(const OpPtr& op) {
  if (op->out.buffer->now != op->version) world_->Fail("simulation: an operation undone too late");
  op->out.buffer->now = op->version->before;
  op->version->op = nullptr;
  ops_.erase(op->id);
}

void Model::Ended(const OpPtr& op, const absl::Status& status) {
  if (op->outcome == Outcome::kDone || op->outcome == Outcome::kFailed) {
    world_->Fail("operation ", op->id, " ended twice");
    return;
  }
  op->outcome = status.ok() ? Outcome::kDone : Outcome::kFailed;
  op->status = status;
  op->end_time = world_->Now();
  world_->Note("operation ", op->id, " ended: ", Text(status));
  ended_.push_back(op);
}

bool Model::CopyMayFail(absl::StatusCode code) const {
  Op op;
  op.kind = Op::Kind::kCopy;
  return Excused(op, code);
}

OpPtr Model::Find(int id) const {
  auto found = ops_.find(id);
  return found == ops_.end() ? nullptr : found->second;
}

int Model::num_pending() const {
  int count = 0;
  for (const auto& [id, op] : ops_) count += op->outcome == Outcome::kPending;
  return count;
}

void Model::Verify() {
  for (const OpPtr& op : std::exchange(ended_, {})) VerifyOne(op);
}

bool Model::Excused(const Op& op, absl::StatusCode code) const {
  bool labelled = op.kind == Op::Kind::kCombine && !op.through_temporary;
  switch (code) {
    case absl::StatusCode::kCancelled:
      return op.stop_asked ||
             op.of_job;  // the rest of a job is dropped when one operation has failed
    case absl::StatusCode::kDeadlineExceeded:
      return op.deadline <= world_->Now();
    case absl::StatusCode::kFailedPrecondition:
      return op.faulted || op.kind == Op::Kind::kUpload ||
             (!labelled && excuses_.unlabelled_faults);
    case absl::StatusCode::kAborted:
      // Not repeatable, or it went down with its workers too often.
      return (op.hit && (op.in_place || op.num_began >= 3)) || excuses_.compiler ||
             (op.restarted && (op.in_pieces || (op.in_place && op.hit))) ||
             // It failed, the report was lost, and its inputs have changed since.
             (op.faulted && op.hit) ||
             // Recalled tasks without a reply at the daemon's death may have run.
             (op.in_place && op.restarted &&
              (op.stop_asked || op.deadline != SteadyTime::InfiniteFuture())) ||
             (!labelled && excuses_.unlabelled_faults);
    case absl::StatusCode::kResourceExhausted:
      return excuses_.memory;
    case absl::StatusCode::kUnavailable:
      return excuses_.devices || op.kind == Op::Kind::kUpload || op.kind == Op::Kind::kOverwrite ||
             (!labelled && excuses_.unlabelled_faults);
    default:
      return false;
  }
}

std::set<absl::StatusCode> Model::ErrorsOf(const VersionPtr& version) {
  std::set<absl::StatusCode> all;
  std::set<const Version*> seen;
  AddErrors(version, seen, all);
  return all;
}

void Model::AddErrors(const VersionPtr& version, std::set<const Version*>& seen,
                      std::set<absl::StatusCode>& all) {
  if (!seen.insert(version.get()).second) return;
  all.insert(version->errors.begin(), version->errors.end());
  if (version->before != nullptr) AddErrors(version->before, seen, all);
  if (version->op == nullptr) return;
  const Op& op = *version->op;
  if (op.outcome == Outcome::kFailed) all.insert(op.status.code());
  // For a job's operations, only the whole job is reported.
  if (op.outcome == Outcome::kUnknown ||
      ((op.of_job || op.kind == Op::Kind::kUpload) && op.outcome == Outcome::kPending)) {
    for (int code = 1; code <= 16; ++code) {
      if (Excused(op, static_cast<absl::StatusCode>(code)))
        all.insert(static_cast<absl::StatusCode>(code));
    }
    for (const Input& input : op.inputs) AddErrors(input.version, seen, all);
  }
}

bool Model::MayFail(const Op& op, absl::StatusCode code) {
  if (Excused(op, code)) return true;
  for (const Input& input : op.inputs) {
    if (ErrorsOf(input.version).count(code) > 0) return true;
  }
  return op.in_place && ErrorsOf(op.version->before).count(code) > 0;
}

void Model::VerifyOne(const OpPtr& op) {
  ++num_verified_;
  op->verified = true;
  if (!op->status.ok()) {
    if (!MayFail(*op, op->status.code()))
      world_->Fail("operation ", op->id, " has an error that nothing explains: ", Text(op->status),
                   Story(op->version));
    return;
  }
  auto check = [&](const VersionPtr& version) {
    if (version == nullptr || version->op == nullptr) return;
    const Op& source = *version->op;
    if (source.outcome == Outcome::kPending && !source.of_job &&
        source.kind != Op::Kind::kOverwrite && source.kind != Op::Kind::kMove) {
      world_->Fail("operation ", op->id, " ended before ", source.id, ", which it needs");
    }
    if (source.outcome != Outcome::kFailed) return;
    bool had_made_it = source.in_place;
    if (!had_made_it)
      world_->Fail("operation ", op->id, " succeeded although ", source.id, " failed");
    bool counted_on = source.kind != Op::Kind::kMove && source.kind != Op::Kind::kOverwrite &&
                      source.end_time > op->submit_time;
    if (counted_on && !op->restarted && !source.restarted)
      world_->Fail("operation ", op->id, " succeeded although it counted on ", source.id,
                   ", which failed");
  };
  for (const Input& input : op->inputs) check(input.version);
  if (op->in_place && op->kind != Op::Kind::kMove) check(op->version->before);
}

Values Model::Apply(const Op& op, const std::vector<const Values*>& inputs,
                    const Values& before) const {
  Values out = op.in_place ? before : Values(op.version->size);
  auto put = [&](int64_t i, uint64_t value) {
    out[op.out.offset + i * op.out.stride] = static_cast<int64_t>(value);
  };
  auto in = [&](int input, int64_t i) {
    return static_cast<uint64_t>(At(*inputs[input], op.inputs[input].view, i));
  };
  switch (op.kind) {
    case Op::Kind::kCombine:
      for (int64_t i = 0; i < op.out.count; ++i) put(i, in(0, i) * 3 + in(1, i) + op.id);
      break;
    case Op::Kind::kFill:
      for (int64_t i = 0; i < op.out.count; ++i) put(i, op.id);
      break;
    case Op::Kind::kCopy:
      for (int64_t i = 0; i < op.out.count; ++i) put(i, in(0, i));
      break;
    case Op::Kind::kSum: {
      uint64_t sum = 0;
      for (int64_t i = 0; i < op.inputs[0].view.count; ++i) sum += in(0, i);
      put(0, sum);
      break;
    }
    case Op::Kind::kMove:
      break;
    case Op::Kind::kUpload:
    case Op::Kind::kOverwrite:
      for (int64_t i = 0; i < op.out.count; ++i) put(i, op.content[i]);
      break;
  }
  return out;
}

Allowed Model::AllowedIn(const VersionPtr& version) {
  auto known = known_.find(version.get());
  if (known != known_.end()) return known->second;
  ++depth_;
  Allowed allowed = Compute(version);
  known_[version.get()] = allowed;
  if (--depth_ == 0) known_.clear();
  return allowed;
}

Allowed Model::Compute(const VersionPtr& version) {
  if (version->values.has_value()) return {.values = {*version->values}};
  if (version->op == nullptr) return {.anything = true};
  const Op& op = *version->op;
  Allowed before;
  if (op.in_place) before = AllowedIn(version->before);
  if (op.outcome == Outcome::kFailed) {
    // A client that got an error while it overwrote an array knows nothing.
    if (op.kind == Op::Kind::kOverwrite) return {.anything = true};
    return before;
  }
  if (op.outcome != Outcome::kDone && op.kind == Op::Kind::kOverwrite) return {.anything = true};
  Allowed allowed;
  std::vector<Allowed> inputs;
  for (const Input& input : op.inputs) {
    inputs.push_back(AllowedIn(input.version));
    allowed.anything = allowed.anything || inputs.back().anything;
  }
  allowed.anything = allowed.anything || before.anything;
  if (allowed.anything) return allowed;
  bool whole = op.in_place && op.out.count == version->size && op.kind == Op::Kind::kOverwrite;
  std::set<Values> befores = op.in_place && !whole ? before.values : std::set<Values>{{}};
  if (whole) befores = {Values(version->size)};
  if (inputs.empty()) inputs.push_back({.values = {{}}});
  for (const Values& first : inputs[0].values) {
    std::set<Values> seconds = inputs.size() > 1 ? inputs[1].values : std::set<Values>{{}};
    // Two views of one buffer have one content.
    if (inputs.size() > 1 && op.inputs[0].version == op.inputs[1].version) seconds = {first};
    for (const Values& second : seconds) {
      for (const Values& old : befores) {
        bool same = op.in_place && !whole && !op.inputs.empty();
        if (same && op.inputs[0].version == version->before && first != old) continue;
        if (same && op.inputs.size() > 1 && op.inputs[1].version == version->before &&
            second != old)
          continue;
        allowed.values.insert(Apply(op, {&first, &second}, old));
      }
    }
  }
  bool may_not_have_run = op.outcome == Outcome::kUnknown || op.outcome == Outcome::kPending;
  if (may_not_have_run && op.in_place) {
    bool may_fail = false;
    for (int code = 1; code <= 16; ++code)
      may_fail = may_fail || MayFail(op, static_cast<absl::StatusCode>(code));
    if (may_fail || op.outcome == Outcome::kPending) allowed.values.merge(before.values);
  }
  if (allowed.values.size() > kMaxPossibilities) return {.anything = true};
  bool certain = op.outcome == Outcome::kDone && allowed.values.size() == 1;
  if (certain) {
    // Its causes need not be kept.
    version->errors = ErrorsOf(version);
    version->values = *allowed.values.begin();
  }
  return allowed;
}

std::string Model::Story(const VersionPtr& version, int num_lines) const {
  static constexpr const char* kOutcomes[] = {"pending", "done", "failed", "unknown"};
  std::string story;
  std::deque<VersionPtr> next = {version};
  std::set<const Version*> seen;
  for (; !next.empty() && num_lines > 0; next.pop_front()) {
    const VersionPtr& at = next.front();
    if (at == nullptr || at->op == nullptr || !seen.insert(at.get()).second) continue;
    const Op& op = *at->op;
    --num_lines;
    absl::StrAppend(&story, "\n  operation ", op.id, ", ", kOutcomes[static_cast<int>(op.outcome)],
                    op.status.ok() ? "" : " ", op.status.ok() ? "" : Text(op.status),
                    op.of_job ? ", of a job" : "", op.stop_asked ? ", stop asked" : "",
                    op.faulted ? ", faulted" : "", op.hit ? ", hit" : "",
                    op.restarted ? ", restarted" : "", ", began ", op.num_began, " times");
    if (op.deadline != SteadyTime::InfiniteFuture())
      absl::StrAppend(&story, ", deadline in ", absl::FormatDuration(op.deadline - world_->Now()));
    absl::StrAppend(&story, op.in_place ? ", in place of " : ", reads");
    if (op.in_place && at->before != nullptr && at->before->op != nullptr)
      absl::StrAppend(&story, at->before->op->id, ", reads");
    for (const Input& input : op.inputs) {
      absl::StrAppend(&story, " ", input.version->op == nullptr ? 0 : input.version->op->id);
      next.push_back(input.version);
    }
    next.push_back(at->before);
  }
  return story;
}

void Model::CheckContent(const std::string& what, const VersionPtr& version, const View& view,
                         const Values& values) {
  ++num_contents_;
  Allowed allowed = AllowedIn(version);
  if (allowed.anything) return;
  for (const Values& whole : allowed.values) {
    if (In(whole, view) == values) return;
  }
  std::string wanted;
  for (const Values& whole : allowed.values)
    absl::StrAppend(&wanted, "\n  allowed: ", absl::StrJoin(In(whole, view), " "));
  world_->Fail(what, ", left by operation ", version->op == nullptr ? 0 : version->op->id,
               ", has the wrong content:\n  found:   ", absl::StrJoin(values, " "), wanted,
               Story(version));
}

void Model::CheckError(const std::string& what, const VersionPtr& version,
                       const absl::Status& status) {
  if (ErrorsOf(version).count(status.code()) > 0) return;
  world_->Fail(what, ", left by operation ", version->op == nullptr ? 0 : version->op->id,
               ", carries an error that nothing explains: ", Text(status), Story(version));
}

void Model::Prune() {
  for (auto it = ops_.begin(); it != ops_.end();) {
    Op& op = *it->second;
    if (!op.verified || op.outcome == Outcome::kPending || op.outcome == Outcome::kUnknown) {
      ++it;
      continue;
    }
    if (op.outcome == Outcome::kDone) AllowedIn(op.version);
    if (op.version->values.has_value()) {
      op.version->before = nullptr;
      op.inputs.clear();
      op.version->op = nullptr;
      it = ops_.erase(it);
    } else {
      ++it;
    }
  }
}

}  // namespace stride::simulation
