#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"
#include "tests/simulation/world.h"

namespace stride::simulation {

using Values = std::vector<int64_t>;

// Without its details: their order depends on the machine, not on the seed.
inline std::string Text(const absl::Status& status) {
  return absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message());
}

struct Op;

// The content of a buffer after one operation. `before` is the content that the operation found;
// null if it created the buffer.
struct Version {
  std::shared_ptr<Op> op;
  std::shared_ptr<Version> before;
  std::optional<Values> values;  // once they are certain
  // Codes of errors that an array with this content may carry.
  std::set<absl::StatusCode> errors;
  int64_t size = 0;
};
using VersionPtr = std::shared_ptr<Version>;

struct Buffer {
  std::string tenant;
  VersionPtr now;
};

// Every element of a buffer from `offset`, `stride` apart.
struct View {
  std::shared_ptr<Buffer> buffer;
  int64_t offset = 0, stride = 1, count = 0;
};

// Possible contents of an array.
struct Allowed {
  bool anything = false;    // it was left half written, and its client got an error
  std::set<Values> values;  // if empty, it must carry an error
};

struct Input {
  VersionPtr version;
  View view;
};

enum class Outcome { kPending, kDone, kFailed, kUnknown };

// One accepted operation, or a client's upload.
struct Op {
  enum class Kind { kCombine, kFill, kCopy, kSum, kMove, kUpload, kOverwrite };
  int id = 0;
  Kind kind = Kind::kCombine;
  std::string tenant;
  std::string session;  // empty for a job
  std::vector<Input> inputs;
  View out;
  VersionPtr version;  // that it creates
  bool in_place = false;
  bool through_temporary = false;
  bool in_pieces = false;  // perhaps: its arrays are large
  Values content;          // for an upload
  Outcome outcome = Outcome::kPending;
  absl::Status status;
  bool verified = false;
  // Events that may be the reason of an error.
  bool stop_asked = false;  // cancelled, of a cancelled or failed job, or of a closed session
  SteadyTime deadline = SteadyTime::InfiniteFuture();
  bool faulted = false;
  bool hit = false;        // its worker died while it ran
  bool restarted = false;  // the daemon died before it had ended
  bool of_job = false;
  SteadyTime submit_time;
  SteadyTime end_time;
  int num_began = 0;
};
using OpPtr = std::shared_ptr<Op>;

// Predicts the daemon's valid results. It knows the accepted operations, their order, later
// interventions, and their outcomes; contents follow only from that.
class Model {
 public:
  // Spontaneous events, which excuse any operation.
  struct Excuses {
    bool memory = false;   // RESOURCE_EXHAUSTED
    bool devices = false;  // workers that do not start
    bool compiler = false;
    bool unlabelled_faults = false;  // tasks that cannot be distinguished
  };

  explicit Model(World* world) : world_(world) {}
  ~Model();

  OpPtr Make(Op::Kind kind, const std::string& tenant);
  // Enters it after everything accepted before: inputs read the current contents.
  void Accept(const OpPtr& op);
  // It was never accepted after all, being the last one.
  void Undo(const OpPtr& op);

  void Ended(const OpPtr& op, const absl::Status& status);
  // Examines the operations that ended since.
  void Verify();

  Allowed AllowedIn(const VersionPtr& version);
  void CheckContent(const std::string& what, const VersionPtr& version, const View& view,
                    const Values& values);
  // Returns whether an array with this content may carry an error of this code.
  bool MayCarry(const VersionPtr& version, const absl::Status& status) {
    return version != nullptr && ErrorsOf(version).count(status.code()) > 0;
  }
  void CheckError(const std::string& what, const VersionPtr& version, const absl::Status& status);

  // A copy that the daemon made by itself.
  bool CopyMayFail(absl::StatusCode code) const;

  OpPtr Find(int id) const;
  const std::map<int, OpPtr>& ops() const { return ops_; }
  // Operations whose outcome no longer matters.
  void Prune();
  Excuses& excuses() { return excuses_; }
  int num_pending() const;

  uint64_t num_verified() const { return num_verified_; }
  uint64_t num_contents() const { return num_contents_; }

 private:
  bool MayFail(const Op& op, absl::StatusCode code);
  bool Excused(const Op& op, absl::StatusCode code) const;
  std::set<absl::StatusCode> ErrorsOf(const VersionPtr& version);
  void AddErrors(const VersionPtr& version, std::set<const Version*>& seen,
                 std::set<absl::StatusCode>& all);
  Allowed Compute(const VersionPtr& version);
  // The history that led to it, for a failure's text.
  std::string Story(const VersionPtr& version, int num_lines = 12) const;
  Values Apply(const Op& op, const std::vector<const Values*>& inputs, const Values& before) const;
  void VerifyOne(const OpPtr& op);

  World* const world_;
  Excuses excuses_;
  std::map<int, OpPtr> ops_;
  std::vector<OpPtr> ended_;
  std::map<const Version*, Allowed> known_;  // the current query
  int depth_ = 0;
  int next_id_ = 1;
  uint64_t num_verified_ = 0, num_contents_ = 0;
};

}  // namespace stride::simulation
