#include "tests/fuzz/kernels/interpreter.h"

#include <bit>
#include <bitset>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/kernels/scalar.h"

namespace stride::cpucuda::fuzz {
namespace {

using Mask = std::bitset<kMaxThreadsPerBlock>;
using Lanes = std::vector<Bits>;

// The variables of the kernel or of one call, and the threads that have left each construct.
struct Frame {
  std::vector<Lanes> variables;
  Lanes result;
  Mask left_loop, next_round, returned;
  Mask Here(const Mask& mask) const { return mask & ~(left_loop | next_round | returned); }
};

// The thread that accessed an element since the last barrier; -1: none, -2: several.
struct Touched {
  int epoch = -1, writer = -1, reader = -1;
  bool atomic = false;
};

class Block {
 public:
  Block(const Program& program, const LaunchConfig& launch, const Dim3& index, Memory& memory)
      : program_(program), launch_(launch), index_(index), memory_(memory) {
    num_threads_ = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
    block_ = static_cast<int>(index.x + launch.grid.x * (index.y + launch.grid.y * index.z));
    total_ = num_threads_ * static_cast<int>(launch.grid.x * launch.grid.y * launch.grid.z);
  }

  std::string Run() {
    Frame frame;
    frame.variables.assign(program_.variables.size(), Lanes(num_threads_));
    for (int i = 0; i < num_threads_; ++i) {
      all_.set(i);
      frame.variables[kThread][i] = i;
      frame.variables[kGlobal][i] = block_ * num_threads_ + i;
      frame.variables[kCount][i] = total_;
      frame.variables[kParameter][i] = memory_.p;
      frame.variables[kReal][i] = std::bit_cast<uint32_t>(memory_.q);
    }
    Fill();
    kernel_ = &frame;
    Exec(program_.body, frame, all_);
    return problem_;
  }

 private:
  void Fill() {
    const int size = program_.shared_size;
    for (size_t k = 0; k < program_.shared.size(); ++k) {
      shared_.emplace_back(size * SizeOf(program_.shared[k].type));
      touched_.emplace_back(size);
      for (int i = 0; i < size; ++i)
        WriteArray(program_.shared[k].type, Shared(k), i,
                   Cast(Type::kI32, program_.shared[k].type, i * (3 + 2 * k)));
    }
    for (Type type : program_.locals) {
      locals_.emplace_back(num_threads_ * kLocalSize);
      for (int t = 0; t < num_threads_; ++t) {
        for (int i = 0; i < kLocalSize; ++i)
          locals_.back()[t * kLocalSize + i] = Cast(Type::kI32, type, i + t);
      }
    }
  }

  void* Shared(int which) {
    if (program_.shared[which].where == SharedArray::Where::kGlobal)
      return memory_.gx.data() + static_cast<size_t>(block_) * program_.shared_size;
    return shared_[which].data();
  }

  void Touch(int which, int64_t at, int thread, bool writes, bool atomic) {
    if (at < 0 || at >= program_.shared_size) {
      problem_ = absl::StrCat("element ", at, " of shared array ", which);
      return;
    }
    Touched& touched = touched_[which][at];
    if (touched.epoch != epoch_) touched = {epoch_};
    auto other = [&](int who) { return who != -1 && who != thread; };
    const bool fresh = touched.writer == -1 && touched.reader == -1;
    if (!fresh && atomic != touched.atomic) {
      problem_ = absl::StrCat("atomic and other accesses of element ", at, " of ", which);
    } else if (!atomic && (other(touched.writer) || (writes && other(touched.reader)))) {
      problem_ = absl::StrCat("race at element ", at, " of shared array ", which);
    }
    touched.atomic = atomic;
    int& mine = writes ? touched.writer : touched.reader;
    mine = mine == -1 || mine == thread ? thread : -2;
  }

  Bits Builtin(int which, int thread) const {
    const Dim3& block = launch_.block;
    const uint32_t t = static_cast<uint32_t>(thread);
    const Dim3 own{t % block.x, t / block.x % block.y, t / block.x / block.y};
    const Dim3* values[] = {&own, &index_, &launch_.block, &launch_.grid};
    const Dim3& value = *values[which / 3];
    return which % 3 == 0 ? value.x : which % 3 == 1 ? value.y : value.z;
  }

  // One thread's value of an operation on operands.
  Bits Scalar(const Expression& e, const Frame& frame, int t, const std::vector<Lanes>& args) {
    auto arg = [&](int i) { return args[i][t]; };
    const int64_t global = static_cast<int64_t>(kernel_->variables[kGlobal][t]);
    switch (e.op) {
      case Op::kConstant:
        return e.bits;
      case Op::kVariable:
        return frame.variables[e.index][t];
      case Op::kBuiltin:
        return Builtin(e.index, t);
      case Op::kNot:
      case Op::kNegate:
      case Op::kPopCount:
      case Op::kSquareRoot:
      case Op::kFloor:
        return Unary(e.op, e.args[0].type, arg(0));
      case Op::kFusedMultiplyAdd:
        return FusedMultiplyAdd(e.type, arg(0), arg(1), arg(2));
      case Op::kSelect:
        return arg(0) != 0 ? arg(1) : arg(2);
      case Op::kCast:
        return Cast(e.args[0].type, e.type, arg(0));
      case Op::kBits:
        return RealBits(e.args[0].type, arg(0));
      case Op::kInput:
        return ReadArray(Type::kI32, memory_.in->data(), arg(0) & (kInputSize - 1));
      case Op::kRealInput:
        return ReadArray(Type::kF32, memory_.fin->data(), arg(0) & (kInputSize - 1));
      case Op::kInputNear:
        return ReadArray(Type::kI32, memory_.in->data(), global + e.bits * arg(0));
      case Op::kRealInputNear:
        return ReadArray(Type::kF32, memory_.fin->data(), global + e.bits * arg(0));
      case Op::kConstantMemory:
        return static_cast<int64_t>(program_.constants[arg(0) & 7]);
      case Op::kLocal:
        return locals_[e.index][t * kLocalSize + (arg(0) & 7)];
      case Op::kShared:
        Touch(e.index, arg(0), t, false, false);
        return problem_.empty() ? ReadArray(e.type, Shared(e.index), arg(0)) : 0;
      case Op::kOwn:
        return ReadArray(Type::kI32, memory_.out.data(), e.index * total_ + global);
      case Op::kRealOwn:
        return ReadArray(Type::kF32, memory_.real.data(), e.index * total_ + global);
      default:
        return Binary(e.op, e.args[0].type, arg(0), arg(1));
    }
  }

  Lanes Eval(const Expression& e, const Frame& frame, const Mask& mask) {
    std::vector<Lanes> args;
    for (const Expression& arg : e.args) args.push_back(Eval(arg, frame, mask));
    if (e.op == Op::kCall) return Call(program_.helpers[e.index], args, mask);
    if (e.op >= Op::kShuffle && e.op <= Op::kReduceAdd) return OfWarps(e, args, mask);
    if (e.op >= Op::kCountThreads) return OfBlock(e, args, mask);
    Lanes result(num_threads_);
    for (int t = 0; t < num_threads_; ++t) {
      if (mask[t]) result[t] = Scalar(e, frame, t, args);
    }
    return result;
  }

  Lanes Call(const Helper& helper, const std::vector<Lanes>& args, const Mask& mask) {
    Frame frame;
    frame.variables.assign(helper.variables.size(), Lanes(num_threads_));
    for (size_t i = 0; i < args.size(); ++i) frame.variables[i] = args[i];
    frame.result.resize(num_threads_);
    Exec(helper.body, frame, mask);
    return frame.result;
  }

  Lanes OfWarps(const Expression& e, const std::vector<Lanes>& args, const Mask& mask) {
    Lanes result(num_threads_);
    for (int first = 0; first < num_threads_; first += 32) {
      uint32_t present = 0;
      for (int lane = 0; lane < 32 && first + lane < num_threads_; ++lane) {
        int t = first + lane;
        if (mask[t] && (args[0][t] >> lane & 1) != 0) present |= 1u << lane;
      }
      for (int lane = 0; lane < 32 && first + lane < num_threads_; ++lane) {
        if (mask[first + lane]) result[first + lane] = OfWarp(e, args, first, lane, present);
      }
    }
    return result;
  }

  static Bits OfWarp(const Expression& e, const std::vector<Lanes>& args, int first, int lane,
                     uint32_t present) {
    uint32_t yes = 0, sum = 0;
    for (int i = 0; i < 32; ++i) {
      if ((present >> i & 1) == 0) continue;
      if (args[1][first + i] != 0) yes |= 1u << i;
      sum += static_cast<uint32_t>(args[1][first + i]);
    }
    int other = args.size() > 2 ? static_cast<int>(args[2][first + lane] & 31) : 0;
    switch (e.op) {
      case Op::kBallot:
        return yes;
      case Op::kAny:
        return yes != 0;
      case Op::kAll:
        return yes == present;
      case Op::kReduceAdd:
        return static_cast<int64_t>(static_cast<int32_t>(sum));
      case Op::kShuffleUp:
        other = lane - other;
        break;
      case Op::kShuffleDown:
        other = lane + other;
        break;
      case Op::kShuffleXor:
        other = lane ^ other;
        break;
      default:
        break;
    }
    // CUDA does not define the value read from an absent lane; this device returns the thread's
    // own.
    bool there = other >= 0 && other < 32 && (present >> other & 1) != 0;
    return args[1][first + (there ? other : lane)];
  }

  void Meet(const Mask& mask) {
    if (mask != (all_ & ~kernel_->returned)) problem_ = "a barrier that some threads do not reach";
    ++epoch_;
  }

  Lanes OfBlock(const Expression& e, const std::vector<Lanes>& args, const Mask& mask) {
    Meet(mask);
    int64_t yes = 0;
    for (int t = 0; t < num_threads_; ++t) yes += mask[t] && args[0][t] != 0 ? 1 : 0;
    int64_t value = yes;
    if (e.op == Op::kAnyThread) value = yes != 0;
    if (e.op == Op::kAllThreads) value = yes == static_cast<int64_t>(mask.count());
    return Lanes(num_threads_, static_cast<Bits>(value));
  }

  void Exec(const std::vector<Statement>& body, Frame& frame, const Mask& mask) {
    for (const Statement& s : body) {
      Mask here = frame.Here(mask);
      if (here.none() || !problem_.empty()) return;
      Exec(s, frame, here);
    }
  }

  static Mask True(const Lanes& flags, const Mask& mask) {
    Mask result;
    for (size_t t = 0; t < flags.size(); ++t) result[t] = mask[t] && flags[t] != 0;
    return result;
  }

  template <class F>
  void ForEach(const Mask& mask, F f) {
    for (int t = 0; t < num_threads_; ++t) {
      if (mask[t] && problem_.empty()) f(t);
    }
  }

  void Exec(const Statement& s, Frame& frame, const Mask& mask) {
    std::vector<Lanes> args;
    const bool loop = s.what == Do::kFor || s.what == Do::kDoWhile;
    if (!loop) {
      for (const Expression& arg : s.args) args.push_back(Eval(arg, frame, mask));
    }
    auto global = [&](int t) { return static_cast<int64_t>(kernel_->variables[kGlobal][t]); };
    switch (s.what) {
      case Do::kDeclare:
      case Do::kAssign:
        ForEach(mask, [&](int t) { frame.variables[s.index][t] = args[0][t]; });
        break;
      case Do::kStore:
        ForEach(mask, [&](int t) {
          Touch(s.index, args[0][t], t, true, false);
          if (problem_.empty())
            WriteArray(program_.shared[s.index].type, Shared(s.index), args[0][t], args[1][t]);
        });
        break;
      case Do::kLocalStore:
        ForEach(mask,
                [&](int t) { locals_[s.index][t * kLocalSize + (args[0][t] & 7)] = args[1][t]; });
        break;
      case Do::kOwnStore:
        ForEach(mask, [&](int t) {
          WriteArray(Type::kI32, memory_.out.data(), s.index * total_ + global(t), args[0][t]);
        });
        break;
      case Do::kRealOwnStore:
        ForEach(mask, [&](int t) {
          WriteArray(Type::kF32, memory_.real.data(), s.index * total_ + global(t), args[0][t]);
        });
        break;
      case Do::kAtomic:
        ForEach(mask, [&](int t) {
          const Type type = program_.shared[s.index].type;
          Touch(s.index, args[0][t], t, true, true);
          if (problem_.empty())
            Update(type, Shared(s.index), args[0][t], static_cast<Atomic>(s.extra), args[1][t]);
        });
        break;
      case Do::kGlobalAtomic:
        ForEach(mask, [&](int t) {
          Update(Type::kI32, memory_.acc.data(), s.extra + 6 * (args[0][t] & 7),
                 static_cast<Atomic>(s.extra), args[1][t]);
        });
        break;
      case Do::kTicket:
        ForEach(mask, [&](int t) {
          const Type type = program_.shared[s.index].type;
          Touch(s.index, args[0][t], t, true, true);
          if (!problem_.empty()) return;
          auto z = static_cast<uint32_t>(ReadArray(type, Shared(s.index), args[0][t]));
          Update(type, Shared(s.index), args[0][t], Atomic::kAdd, 1);
          Update(Type::kI32, memory_.acc.data(), 0, Atomic::kAdd, z * z);
        });
        break;
      case Do::kIf: {
        Mask yes = True(args[0], mask);
        Exec(s.bodies[0], frame, yes);
        Exec(s.bodies[1], frame, mask & ~yes);
        break;
      }
      case Do::kFor:
      case Do::kDoWhile:
        Loop(s, frame, mask);
        break;
      case Do::kSwitch: {
        Mask in;
        for (size_t i = 0; i < s.bodies.size(); ++i) {
          ForEach(mask, [&](int t) {
            if (static_cast<uint32_t>(args[0][t]) % s.bodies.size() == i) in.set(t);
          });
          Exec(s.bodies[i], frame, in);
          if ((s.extra >> i & 1) == 0) in.reset();
        }
        break;
      }
      case Do::kBreak:
        frame.left_loop |= True(args[0], mask);
        break;
      case Do::kContinue:
        frame.next_round |= True(args[0], mask);
        break;
      case Do::kReturn: {
        Mask leaving = True(args[0], mask);
        if (args.size() > 1) ForEach(leaving, [&](int t) { frame.result[t] = args[1][t]; });
        frame.returned |= leaving;
        break;
      }
      case Do::kBarrier:
        Meet(mask);
        break;
      case Do::kWarpBarrier:
        break;
    }
  }

  static void Update(Type type, void* array, int64_t at, Atomic atomic, Bits value) {
    WriteArray(type, array, at, ApplyAtomic(atomic, type, ReadArray(type, array, at), value));
  }

  void Loop(const Statement& s, Frame& frame, const Mask& mask) {
    Mask left = frame.left_loop, next = frame.next_round;
    frame.left_loop.reset();
    frame.next_round.reset();
    Lanes& counter = frame.variables[s.index];
    Mask in = mask;
    if (s.what == Do::kFor) counter = Merge(counter, Eval(s.args[0], frame, in), in);
    if (s.what == Do::kDoWhile) counter = Merge(counter, Lanes(num_threads_), in);
    while (problem_.empty()) {
      if (s.what == Do::kFor) {
        Lanes limit = Eval(s.args[1], frame, in);
        Mask more = in;
        ForEach(in, [&](int t) {
          more[t] = static_cast<int64_t>(counter[t]) < static_cast<int64_t>(limit[t]);
        });
        in = more;
      }
      if (in.none()) break;
      Exec(s.bodies[0], frame, in);
      frame.next_round.reset();
      in = frame.Here(in);
      ForEach(in, [&](int t) { counter[t] += s.what == Do::kFor ? s.extra : 1; });
      if (s.what == Do::kDoWhile) {
        Mask more = in;
        ForEach(in, [&](int t) { more[t] = static_cast<int64_t>(counter[t]) < s.extra; });
        in = True(Eval(s.args[0], frame, more), more);
      }
    }
    frame.left_loop = left;
    frame.next_round = next;
  }

  static Lanes Merge(Lanes old, const Lanes& fresh, const Mask& mask) {
    for (size_t t = 0; t < old.size(); ++t) {
      if (mask[t]) old[t] = fresh[t];
    }
    return old;
  }

  const Program& program_;
  const LaunchConfig& launch_;
  const Dim3 index_;
  Memory& memory_;
  int num_threads_ = 0, block_ = 0, total_ = 0, epoch_ = 0;
  Mask all_;
  const Frame* kernel_ = nullptr;
  std::vector<std::vector<unsigned char>> shared_;
  std::vector<std::vector<Touched>> touched_;
  std::vector<Lanes> locals_;
  std::string problem_;
};

}  // namespace

std::string Interpret(const Program& program, const LaunchConfig& launch, Memory& memory) {
  for (uint32_t z = 0; z < launch.grid.z; ++z) {
    for (uint32_t y = 0; y < launch.grid.y; ++y) {
      for (uint32_t x = 0; x < launch.grid.x; ++x) {
        std::string problem = Block(program, launch, {x, y, z}, memory).Run();
        if (!problem.empty()) return problem;
      }
    }
  }
  return "";
}

}  // namespace stride::cpucuda::fuzz
