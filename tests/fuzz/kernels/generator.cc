#include "tests/fuzz/kernels/generator.h"

#include <bit>
#include <optional>
#include <random>

#include "tests/fuzz/kernels/scalar.h"

namespace stride::cpucuda::fuzz {
namespace {

// How far a value, or the control flow of a statement, may diverge: not within the block, not
// within a warp, or per thread.
enum Level { kByBlock, kByWarp, kByThread };

constexpr int kMaxDepth = 3;  // limits of expressions and of statements

struct Variable {
  int index;
  Type type;
  Level level;
  bool assigned = true;  // upper bound
  bool small = false;    // 0..15
};

// Accesses of the threads to a shared array since the last barrier.
struct Mode {
  enum Kind { kFree, kOwned, kRead, kAtomic, kSingle, kConflict };
  Kind kind = kFree;
  int param = 0;  // owned: which permutation; atomic: which operation; single: which thread
  bool operator==(const Mode&) const = default;
};

struct Context {
  Level level = kByBlock;
  bool helper = false;
  bool barriers = true;
  bool in_loop = false, in_switch = false, may_continue = true;
  Level loop_level = kByThread;
  int depth = 0;
  int single = -1;  // the only thread that executes here
};

class Generator {
 public:
  Generator(uint64_t seed, Flavour flavour) : random_(seed), warp_(flavour == Flavour::kWarp) {
    program_.seed = seed;
    program_.warp = warp_;
  }

  Program Run() {
    program_.flat = Chance(60);
    program_.shared_size = Chance(8) ? 1024 : 256;
    early_returns_ = !warp_ && Chance(50);
    int num_shared = Below(4);
    for (int i = 0; i < num_shared; ++i) AddShared();
    for (int i = Below(3); i > 0; --i) program_.locals.push_back(ValueType());
    for (int i = 0; i < 8; ++i) program_.constants.push_back(Below(100));
    for (int i = Below(3); i > 0; --i) AddHelper();
    program_.variables = {Type::kI32, Type::kI32, Type::kI32, Type::kU32, Type::kF32};
    scope_ = {{kThread, Type::kI32, kByThread, false},
              {kGlobal, Type::kI32, kByThread, false},
              {kCount, Type::kI32, kByBlock, false},
              {kParameter, Type::kU32, kByBlock, false},
              {kReal, Type::kF32, kByBlock, false}};
    variables_ = &program_.variables;
    modes_.assign(program_.shared.size(), {});
    std::vector<Statement> body;
    budget_ = 8 + Below(20);
    if (Chance(30)) body.push_back(Guard());
    for (int i = 2 + Below(3); i > 0; --i) Declare(Context{}, body);
    Context top;
    while (budget_ > 0) AddStatement(top, body);
    Finish(body);
    program_.body = std::move(body);
    return std::move(program_);
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  Type ValueType() {
    constexpr Type kTypes[] = {Type::kI32, Type::kI32, Type::kI32, Type::kU32, Type::kU32,
                               Type::kI64, Type::kF32, Type::kF32, Type::kF64, Type::kBool};
    return kTypes[Below(10)];
  }

  void AddShared() {
    SharedArray array;
    constexpr Type kTypes[] = {Type::kI32, Type::kI32, Type::kU32, Type::kF32,
                               Type::kI64, Type::kU8,  Type::kI16, Type::kF64};
    array.type = kTypes[Below(8)];
    bool has_dynamic = false, has_global = false;
    for (const SharedArray& other : program_.shared) {
      has_dynamic |= other.where == SharedArray::Where::kDynamic;
      has_global |= other.where == SharedArray::Where::kGlobal;
    }
    if (Chance(25) && !has_dynamic) {
      array.where = SharedArray::Where::kDynamic;
    } else if (Chance(15) && !has_global) {
      array = {Type::kI32, SharedArray::Where::kGlobal};
    }
    program_.shared.push_back(array);
  }

  // Expressions.

  static Expression Make(Op op, Type type, std::vector<Expression> args = {}, int index = 0,
                         Bits bits = 0) {
    Expression e;
    e.op = op;
    e.type = type;
    e.args = std::move(args);
    e.index = index;
    e.bits = bits;
    return e;
  }
  static Expression Number(Type type, int64_t value) {
    return Make(Op::kConstant, type, {}, 0, fuzz::Cast(Type::kI64, type, static_cast<Bits>(value)));
  }
  static Expression Of(const Variable& variable) {
    return Make(Op::kVariable, variable.type, {}, variable.index);
  }
  Expression Thread() { return Make(Op::kVariable, Type::kI32, {}, kThread); }
  static Expression To(Type type, Expression e) {
    if (e.type == type) return e;
    return Make(Op::kCast, type, {std::move(e)});
  }

  Expression Constant(Type type) {
    if (!IsReal(type)) {
      constexpr int64_t kOdd[] = {0, 1, -1, 2147483647, -2147483648ll, 255, 0x5bd1e995};
      return Number(type, Chance(20) ? kOdd[Below(7)] : Below(40));
    }
    double value = Chance(5) ? 1e30 : (Below(4001) - 2000) / 16.0;
    if (type == Type::kF64) return Make(Op::kConstant, type, {}, 0, std::bit_cast<Bits>(value));
    return Make(Op::kConstant, type, {}, 0, std::bit_cast<uint32_t>(static_cast<float>(value)));
  }

  std::vector<Variable> Visible(Type type, Level level) {
    std::vector<Variable> found;
    for (const Variable& v : scope_) {
      if (v.type == type && v.level <= level) found.push_back(v);
    }
    return found;
  }

  Expression Leaf(Type type, Level level) {
    std::vector<Variable> visible = Visible(type, level);
    if (!visible.empty() && Chance(70)) return Of(visible[Below(visible.size())]);
    if (type == Type::kU32 && !in_helper_ && Chance(50)) {
      int first = level == kByThread && !program_.flat && Chance(40) ? 0 : 3;
      return Make(Op::kBuiltin, type, {}, first + (first == 0 ? Below(3) : Below(9)));
    }
    if (type == Type::kI32 && level >= kByWarp && !in_helper_ && Chance(15)) {
      return Make(Op::kShr, type, {Thread(), Number(Type::kI32, 5)});
    }
    if (type == Type::kBool) {
      Expression a = Make(Op::kAnd, Type::kI32, {Leaf(Type::kI32, level), Number(Type::kI32, 7)});
      return Make(Op::kLess, type, {std::move(a), Number(Type::kI32, 1 + Below(6))});
    }
    visible = Visible(scope_[Below(scope_.size())].type, level);
    if (!visible.empty() && Chance(60)) return To(type, Of(visible[Below(visible.size())]));
    return Constant(type);
  }

  Expression Load(Type type, Level level, int depth) {
    int kind = Below(10);
    if (kind < 3 && level == kByThread) {
      std::vector<Variable> small;
      for (const Variable& v : scope_) {
        if (v.small) small.push_back(v);
      }
      Expression step = small.empty() || Chance(30) ? Number(Type::kI32, Below(16))
                                                    : Of(small[Below(small.size())]);
      bool real = Chance(40);
      Bits stride = Chance(50) ? 1 : 1 + Below(64);
      return To(type, Make(real ? Op::kRealInputNear : Op::kInputNear,
                           real ? Type::kF32 : Type::kI32, {std::move(step)}, 0, stride));
    }
    if (kind < 5) {
      bool real = Chance(40);
      return To(type, Make(real ? Op::kRealInput : Op::kInput, real ? Type::kF32 : Type::kI32,
                           {Expr(Type::kI32, level, depth - 1)}));
    }
    if (kind == 5)
      return To(type, Make(Op::kConstantMemory, Type::kI32, {Expr(Type::kI32, level, depth - 1)}));
    if (kind == 6 && level == kByThread && !program_.locals.empty()) {
      int which = Below(program_.locals.size());
      return To(type, Make(Op::kLocal, program_.locals[which], {Expr(Type::kI32, level, depth - 1)},
                           which));
    }
    if (kind == 7 && level == kByThread) {
      int which = Below(kNumOwn);
      if (Chance(50)) return To(type, Make(Op::kOwn, Type::kI32, {}, which));
      return To(type, Make(Op::kRealOwn, Type::kF32, {}, which));
    }
    if (kind >= 8 && shared_reads_ && !program_.shared.empty()) {
      int which = Below(program_.shared.size());
      if (auto read = ReadShared(which, level, depth); read.has_value())
        return To(type, std::move(*read));
    }
    return Leaf(type, level);
  }

  std::optional<Expression> ReadShared(int which, Level level, int depth) {
    Mode& mode = modes_[which];
    const Type type = program_.shared[which].type;
    if (mode.kind == Mode::kOwned && level == kByThread)
      return Make(Op::kShared, type, {Permuted(mode.param)}, which);
    bool single = mode.kind == Mode::kSingle && mode.param == single_ && single_ >= 0;
    if (mode.kind != Mode::kFree && mode.kind != Mode::kRead && !single) return {};
    if (!single) mode = {Mode::kRead};
    return Make(Op::kShared, type, {AnyElement(level, depth)}, which);
  }

  Expression AnyElement(Level level, int depth) {
    return Make(Op::kAnd, Type::kI32,
                {Expr(Type::kI32, level, depth - 1), Number(Type::kI32, program_.shared_size - 1)});
  }

  // Bijections of [0, shared_size).
  Expression Permuted(int param) {
    const int last = program_.shared_size - 1, kind = param & 3, by = param >> 2;
    switch (kind) {
      case 0:
        return Thread();
      case 1:
        return Make(Op::kAnd, Type::kI32,
                    {Make(Op::kAddSmall, Type::kI32, {Thread(), Number(Type::kI32, by)}),
                     Number(Type::kI32, last)});
      case 2:
        return Make(Op::kSub, Type::kI32, {Number(Type::kI32, last), Thread()});
      default:
        return Make(Op::kXor, Type::kI32, {Thread(), Number(Type::kI32, by)});
    }
  }

  Expression Call(Type type, Level level, int depth) {
    int which = Below(program_.helpers.size());
    const Helper& helper = program_.helpers[which];
    std::vector<Expression> args;
    for (int i = 0; i < helper.num_parameters; ++i)
      args.push_back(Expr(helper.variables[i], level, depth - 1));
    return To(type, Make(Op::kCall, helper.result, std::move(args), which));
  }

  Expression Condition(Level level, int depth) {
    if (depth > 0 && Chance(20)) {
      constexpr Op kOps[] = {Op::kAnd, Op::kOr, Op::kXor};
      return Make(kOps[Below(3)], Type::kBool,
                  {Expr(Type::kBool, level, depth - 1), Expr(Type::kBool, level, depth - 1)});
    }
    if (depth > 0 && Chance(10))
      return Make(Op::kNot, Type::kBool, {Expr(Type::kBool, level, depth - 1)});
    constexpr Op kOps[] = {Op::kLess, Op::kLessEqual, Op::kEqual};
    Type type = Type::kI32;
    do type = ValueType();
    while (type == Type::kBool);
    Expression a = Expr(type, level, depth - 1), b = Expr(type, level, depth - 1);
    if (type == Type::kI32 && Chance(60)) {
      a = Make(Op::kAnd, type, {std::move(a), Number(type, 7)});
      b = Number(type, Below(8));
    }
    return Make(kOps[Below(3)], Type::kBool, {std::move(a), std::move(b)});
  }

  Expression Expr(Type type, Level level, int depth) {
    if (depth <= 0 || Chance(15)) return Leaf(type, level);
    if (!in_helper_ && Chance(25)) return Load(type, level, depth);
    if (!in_helper_ && !program_.helpers.empty() && Chance(8)) return Call(type, level, depth);
    if (type == Type::kBool) return Condition(level, depth);
    if (Chance(8)) {
      return Make(Op::kSelect, type,
                  {Expr(Type::kBool, level, depth - 1), Expr(type, level, depth - 1),
                   Expr(type, level, depth - 1)});
    }
    if (Chance(10)) return To(type, Expr(ValueType(), level, depth - 1));
    return IsReal(type) ? Real(type, level, depth) : Integer(type, level, depth);
  }

  Expression Real(Type type, Level level, int depth) {
    auto part = [&] { return Expr(type, level, depth - 1); };
    if (Chance(15)) {
      constexpr Op kOps[] = {Op::kNegate, Op::kSquareRoot, Op::kFloor};
      return Make(kOps[Below(3)], type, {part()});
    }
    if (Chance(10)) {
      Expression a = part(), b = part(), c = part();
      return Make(Op::kFusedMultiplyAdd, type, {std::move(a), std::move(b), std::move(c)});
    }
    constexpr Op kOps[] = {Op::kAdd, Op::kAdd, Op::kSub, Op::kMul,
                           Op::kMul, Op::kDiv, Op::kMin, Op::kMax};
    Expression a = part(), b = part();
    return Make(kOps[Below(8)], type, {std::move(a), std::move(b)});
  }

  Expression Integer(Type type, Level level, int depth) {
    if (Chance(5)) return Make(Op::kNegate, type, {Expr(type, level, depth - 1)});
    if (Chance(5)) return Make(Op::kNot, type, {Expr(type, level, depth - 1)});
    if (type == Type::kI32 && Chance(5))
      return Make(Op::kPopCount, type, {Expr(Type::kU32, level, depth - 1)});
    if (type == Type::kI32 && Chance(5))
      return Make(Op::kBits, type, {Expr(Chance(50) ? Type::kF32 : Type::kF64, level, depth - 1)});
    constexpr Op kOps[] = {Op::kAdd,      Op::kAdd,      Op::kSub, Op::kMul, Op::kAddSmall,
                           Op::kAddSmall, Op::kMulSmall, Op::kDiv, Op::kRem, Op::kAnd,
                           Op::kOr,       Op::kXor,      Op::kXor, Op::kShl, Op::kShr,
                           Op::kMin,      Op::kMax};
    Op op = kOps[Below(17)];
    Expression a = Expr(type, level, depth - 1), b = Expr(type, level, depth - 1);
    return Make(op, type, {std::move(a), std::move(b)});
  }

  // Modes of shared arrays.

  void Reset() { modes_.assign(modes_.size(), {}); }
  static void Merge(std::vector<Mode>& into, const std::vector<Mode>& from) {
    for (size_t i = 0; i < into.size(); ++i) {
      if (into[i].kind == Mode::kFree) {
        into[i] = from[i];
      } else if (from[i].kind != Mode::kFree && !(from[i] == into[i])) {
        into[i] = {Mode::kConflict};
      }
    }
  }
  bool Request(int which, Mode mode, const Context& context, std::vector<Statement>& out) {
    if (modes_[which].kind == Mode::kFree || modes_[which] == mode) {
      modes_[which] = mode;
      return true;
    }
    if (!CanWait(context)) return false;
    out.push_back(Simple(Do::kBarrier));
    Reset();
    modes_[which] = mode;
    return true;
  }
  bool CanWait(const Context& context) const {
    return context.barriers && context.level == kByBlock && !in_helper_;
  }

  // Statements.

  static Statement Simple(Do what, std::vector<Expression> args = {}, int index = 0,
                          int extra = 0) {
    Statement s;
    s.what = what;
    s.args = std::move(args);
    s.index = index;
    s.extra = extra;
    return s;
  }

  int NewVariable(Type type) {
    variables_->push_back(type);
    return static_cast<int>(variables_->size()) - 1;
  }
  Variable& AddVariable(Type type, Level level, bool assigned) {
    scope_.push_back({NewVariable(type), type, level, assigned});
    return scope_.back();
  }
  Level AtLeast(Level level) { return static_cast<Level>(level + Below(3 - level)); }

  Statement Guard() {
    Expression limit =
        Make(Op::kSub, Type::kI32,
             {Make(Op::kVariable, Type::kI32, {}, kCount), Number(Type::kI32, Below(70))});
    Expression out = Make(Op::kLessEqual, Type::kBool,
                          {std::move(limit), Make(Op::kVariable, Type::kI32, {}, kGlobal)});
    if (!early_returns_)
      out = Make(Op::kAnd, Type::kBool, {std::move(out), Number(Type::kBool, 0)});
    return Simple(Do::kReturn, {std::move(out)});
  }

  void Declare(const Context& context, std::vector<Statement>& out) {
    Type type = ValueType();
    Level level = AtLeast(context.level);
    Expression value = Expr(type, level, kMaxDepth);
    Variable& v = AddVariable(type, level, true);
    out.push_back(Simple(Do::kDeclare, {std::move(value)}, v.index));
  }

  void Assign(const Context& context, std::vector<Statement>& out) {
    std::vector<Variable> targets;
    for (const Variable& v : scope_) {
      if (v.assigned && v.level >= context.level) targets.push_back(v);
    }
    if (targets.empty()) return Declare(context, out);
    const Variable v = targets[Below(targets.size())];
    if (CanWait(context) && Chance(8)) {
      Expression flag = Expr(Type::kBool, kByThread, kMaxDepth);
      constexpr Op kOps[] = {Op::kCountThreads, Op::kAnyThread, Op::kAllThreads};
      Expression vote = Make(kOps[Below(3)], Type::kI32, {std::move(flag)});
      Reset();
      out.push_back(Simple(Do::kAssign, {To(v.type, std::move(vote))}, v.index));
      return;
    }
    if (warp_ && !in_helper_ && context.level <= kByWarp && v.level >= kByWarp && Chance(35)) {
      out.push_back(Simple(Do::kAssign,
                           {To(v.type, WarpOperation(Number(Type::kU32, -1), v.level))}, v.index));
      return;
    }
    Expression value = Expr(v.type, v.level, kMaxDepth);
    if (!IsReal(v.type) && v.type != Type::kBool && Chance(40))
      value = Make(Op::kAdd, v.type, {Of(v), std::move(value)});
    out.push_back(Simple(Do::kAssign, {std::move(value)}, v.index));
  }

  Expression WarpOperation(Expression mask, Level result) {
    int kind = Below(result == kByThread ? 8 : 4);
    Type type = Type::kI32;
    do type = ValueType();
    while (type == Type::kBool);
    if (kind < 3) {
      constexpr Op kOps[] = {Op::kBallot, Op::kAny, Op::kAll};
      return Make(kOps[kind], kind == 0 ? Type::kU32 : Type::kI32,
                  {std::move(mask), Expr(Type::kBool, kByThread, kMaxDepth)});
    }
    if (kind == 3)
      return Make(Op::kReduceAdd, Type::kI32,
                  {std::move(mask), Expr(Type::kI32, kByThread, kMaxDepth)});
    constexpr Op kOps[] = {Op::kShuffle, Op::kShuffleUp, Op::kShuffleDown, Op::kShuffleXor};
    Expression value = Expr(type, kByThread, kMaxDepth);
    return Make(kOps[kind - 4], type,
                {std::move(mask), std::move(value), Expr(Type::kI32, kByThread, 1)});
  }

  // The threads for which a condition holds exchange values.
  void PartOfWarp(std::vector<Statement>& out) {
    Expression condition = Expr(Type::kBool, kByThread, 2);
    const Variable flag = AddVariable(Type::kBool, kByThread, false);
    out.push_back(Simple(Do::kDeclare, {std::move(condition)}, flag.index));
    const Variable mask = AddVariable(Type::kU32, kByWarp, false);
    out.push_back(Simple(Do::kDeclare,
                         {Make(Op::kBallot, Type::kU32, {Number(Type::kU32, -1), Of(flag)})},
                         mask.index));
    const Variable result = AddVariable(Type::kI32, kByThread, true);
    out.push_back(Simple(Do::kDeclare, {Number(Type::kI32, 0)}, result.index));
    Statement branch = Simple(Do::kIf, {Of(flag)});
    branch.bodies.resize(2);
    for (int i = 1 + Below(2); i > 0; --i) {
      branch.bodies[0].push_back(
          Simple(Do::kAssign, {To(Type::kI32, WarpOperation(Of(mask), kByThread))}, result.index));
    }
    out.push_back(std::move(branch));
  }

  void Store(const Context& context, std::vector<Statement>& out) {
    if (program_.shared.empty()) return Assign(context, out);
    const int which = Below(program_.shared.size());
    const Type type = program_.shared[which].type;
    int by = Below(Chance(50) ? 8 : program_.shared_size);
    Mode mode{Mode::kOwned, Chance(40) ? 0 : Below(4) | by << 2};
    if ((mode.param & 3) == 0 || (mode.param & 3) == 2) mode.param &= 3;
    if (modes_[which].kind == Mode::kOwned && Chance(70)) mode = modes_[which];
    if (!Request(which, mode, context, out)) return Assign(context, out);
    Expression value = Expr(ValueType(), kByThread, kMaxDepth);
    out.push_back(Simple(Do::kStore, {Permuted(mode.param), To(type, std::move(value))}, which));
  }

  // One thread writes arbitrary elements.
  void StoreOfOne(const Context& context, std::vector<Statement>& out) {
    if (program_.shared.empty()) return Assign(context, out);
    const int which = Below(program_.shared.size()), thread = Below(40);
    if (!Request(which, {Mode::kSingle, thread}, context, out)) return Assign(context, out);
    Statement branch =
        Simple(Do::kIf, {Make(Op::kEqual, Type::kBool, {Thread(), Number(Type::kI32, thread)})});
    branch.bodies.resize(2);
    single_ = thread;
    for (int i = 1 + Below(2); i > 0; --i) {
      Expression at = Chance(50) ? Number(Type::kI32, Below(8)) : AnyElement(kByThread, 2);
      Expression value = Expr(ValueType(), kByThread, kMaxDepth);
      branch.bodies[0].push_back(Simple(
          Do::kStore, {std::move(at), To(program_.shared[which].type, std::move(value))}, which));
    }
    single_ = -1;
    out.push_back(std::move(branch));
  }

  void AtomicUpdate(const Context& context, std::vector<Statement>& out) {
    std::vector<int> fit;
    for (size_t i = 0; i < program_.shared.size(); ++i) {
      Type type = program_.shared[i].type;
      if (type == Type::kI32 || type == Type::kU32 || type == Type::kI64)
        fit.push_back(static_cast<int>(i));
    }
    if (fit.empty() || Chance(30)) {
      Expression at = Expr(Type::kI32, kByThread, 2);
      Expression value = Expr(Type::kI32, kByThread, kMaxDepth);
      out.push_back(Simple(Do::kGlobalAtomic, {std::move(at), std::move(value)}, 0, Below(6)));
      return;
    }
    const int which = fit[Below(fit.size())];
    int operation = Below(7);  // 6: tickets
    if (modes_[which].kind == Mode::kAtomic) operation = modes_[which].param;
    if (program_.shared[which].type == Type::kI64 && operation == 6) operation = 0;
    if (!Request(which, {Mode::kAtomic, operation}, context, out)) return Assign(context, out);
    const Type type = program_.shared[which].type;
    if (operation == 6) {
      out.push_back(Simple(Do::kTicket, {Number(Type::kI32, 7)}, which));
      return;
    }
    Expression at = Chance(30) ? Number(Type::kI32, Below(9)) : AnyElement(kByThread, 2);
    Expression value = Expr(type, kByThread, kMaxDepth);
    out.push_back(Simple(Do::kAtomic, {std::move(at), std::move(value)}, which, operation));
  }

  void PrivateStore(std::vector<Statement>& out) {
    if (program_.locals.empty()) return OwnStore(out);
    const int which = Below(program_.locals.size());
    Expression at = Expr(Type::kI32, kByThread, 2);
    Expression value = Expr(program_.locals[which], kByThread, kMaxDepth);
    out.push_back(Simple(Do::kLocalStore, {std::move(at), std::move(value)}, which));
  }
  void OwnStore(std::vector<Statement>& out) {
    if (Chance(60)) {
      out.push_back(
          Simple(Do::kOwnStore, {Expr(Type::kI32, kByThread, kMaxDepth)}, Below(kNumOwn)));
    } else {
      out.push_back(
          Simple(Do::kRealOwnStore, {Expr(Type::kF32, kByThread, kMaxDepth)}, Below(kNumOwn)));
    }
  }

  // The statements of a nested body; its declarations end with it.
  std::vector<Statement> Body(Context context, int most) {
    ++context.depth;
    size_t visible = scope_.size();
    std::vector<Statement> body;
    for (int i = 1 + Below(most); i > 0 && budget_ > 0; --i) AddStatement(context, body);
    scope_.erase(scope_.begin() + static_cast<std::ptrdiff_t>(visible), scope_.end());
    return body;
  }

  Level Deeper(Level level) {
    return Chance(level == kByBlock ? 55 : 0) ? level
           : Chance(15)                       ? std::max(level, kByWarp)
                                              : kByThread;
  }

  void Branch(Context context, std::vector<Statement>& out) {
    context.level = Deeper(context.level);
    Statement branch = Simple(Do::kIf, {Expr(Type::kBool, context.level, kMaxDepth)});
    branch.bodies.resize(2);
    std::vector<Mode> before = modes_;
    branch.bodies[0] = Body(context, 4);
    std::vector<Mode> after = modes_;
    const bool apart = context.level == kByBlock;
    if (apart) modes_ = before;
    if (Chance(60)) branch.bodies[1] = Body(context, 4);
    if (apart) Merge(modes_, after);
    out.push_back(std::move(branch));
  }

  void Switch(Context context, std::vector<Statement>& out) {
    context.level = Deeper(context.level);
    context.in_switch = true;
    Statement choice = Simple(Do::kSwitch, {Expr(Type::kI32, context.level, 2)});
    const bool apart = context.level == kByBlock;
    std::vector<Mode> before = modes_, after(modes_.size());
    const int cases = 2 + Below(4);
    for (int i = 0; i < cases; ++i) {
      choice.bodies.push_back(Body(context, 2));
      const bool falls = i + 1 < cases && Chance(20);
      if (falls) choice.extra |= 1 << i;
      if (!apart) continue;
      if (falls) {
        Merge(modes_, before);
      } else {
        Merge(after, modes_);
        modes_ = before;
      }
    }
    if (apart) modes_ = after;
    out.push_back(std::move(choice));
  }

  void Loop(Context context, std::vector<Statement>& out) {
    context.level = context.loop_level = Deeper(context.level);
    context.in_loop = true;
    context.in_switch = false;
    const bool counted = Chance(75);
    shared_reads_ = false;
    Expression limit =
        Chance(50) ? Number(Type::kI32, 2 + Below(4))
                   : Make(Op::kAddSmall, Type::kI32,
                          {Make(Op::kAnd, Type::kI32,
                                {Expr(Type::kI32, context.level, 2), Number(Type::kI32, 3)}),
                           Number(Type::kI32, Below(3))});
    shared_reads_ = true;
    const size_t visible = scope_.size();
    Variable counter = AddVariable(Type::kI32, context.level, false);
    scope_.back().small = true;
    const bool waits = context.level == kByBlock && context.barriers && !in_helper_ && Chance(70);
    const bool wait_first = Chance(50);
    context.barriers = waits;
    context.may_continue = !waits || wait_first;
    std::vector<Mode> saved_exits = std::move(exits_);
    exits_ = modes_;
    Statement loop = Simple(counted ? Do::kFor : Do::kDoWhile, {}, counter.index);
    ++loops_;
    std::vector<Statement> body;
    if (waits && wait_first) {
      body.push_back(Simple(Do::kBarrier));
      Reset();
    }
    for (Statement& s : Body(context, 5)) body.push_back(std::move(s));
    if (waits && !wait_first) {
      body.push_back(Simple(Do::kBarrier));
      Reset();
    }
    --loops_;
    Merge(modes_, exits_);
    exits_ = std::move(saved_exits);
    loop.bodies.push_back(std::move(body));
    if (counted) {
      loop.args = {Number(Type::kI32, Below(2)), std::move(limit)};
      loop.extra = 1 + (Chance(20) ? Below(2) : 0);
    } else {
      // The scope is outside the loop: the body's declarations are gone.
      scope_.erase(scope_.begin() + static_cast<std::ptrdiff_t>(visible), scope_.end());
      shared_reads_ = false;
      loop.args = {Expr(Type::kBool, context.level, 2)};
      shared_reads_ = true;
      loop.extra = 1 + Below(5);
    }
    scope_.erase(scope_.begin() + static_cast<std::ptrdiff_t>(visible), scope_.end());
    out.push_back(std::move(loop));
  }

  void Jump(const Context& context, std::vector<Statement>& out) {
    if (!context.in_loop || context.level > context.loop_level) return Assign(context, out);
    bool leave = !context.in_switch && (!context.may_continue || Chance(60));
    if (!leave && !context.may_continue) return Assign(context, out);
    Expression when = Expr(Type::kBool, context.loop_level, 2);
    Merge(exits_, modes_);
    out.push_back(Simple(leave ? Do::kBreak : Do::kContinue, {std::move(when)}));
  }

  void Return(const Context& context, std::vector<Statement>& out) {
    if (in_helper_) {
      Expression when = Expr(Type::kBool, kByThread, 2);
      out.push_back(
          Simple(Do::kReturn, {std::move(when), Expr(helper_result_, kByThread, kMaxDepth)}));
      return;
    }
    if (!early_returns_) return Assign(context, out);
    // Mostly few: threads that have left test nothing more.
    Expression who =
        Make(Op::kLess, Type::kBool,
             {Make(Op::kAnd, Type::kI32, {Expr(Type::kI32, kByThread, 2), Number(Type::kI32, 15)}),
              Number(Type::kI32, 1 + Below(2))});
    out.push_back(Simple(Do::kReturn, {std::move(who)}));
  }

  void AddStatement(const Context& context, std::vector<Statement>& out) {
    --budget_;
    const bool nest = context.depth < kMaxDepth;
    int kind = Below(100);
    if (in_helper_) {
      if (kind < 20) return Declare(context, out);
      if (kind < 60 || !nest) return kind < 54 ? Assign(context, out) : Return(context, out);
      if (kind < 78) return Branch(context, out);
      if (kind < 84) return Switch(context, out);
      if (kind < 94 && loops_ < 2) return Loop(context, out);
      return Jump(context, out);
    }
    if (kind < 8) return Declare(context, out);
    if (kind < 26) return Assign(context, out);
    if (kind < 42) return Store(context, out);
    if (kind < 46) return StoreOfOne(context, out);
    if (kind < 52) return AtomicUpdate(context, out);
    if (kind < 56) return PrivateStore(out);
    if (kind < 60) return OwnStore(out);
    if (kind < 64) return Return(context, out);
    if (kind < 70) return Jump(context, out);
    if (kind < 74 && warp_ && context.level <= kByWarp) {
      if (Chance(60)) return PartOfWarp(out);
      out.push_back(Simple(Do::kWarpBarrier));
      return;
    }
    if (kind < 78 && CanWait(context)) {
      out.push_back(Simple(Do::kBarrier));
      Reset();
      return;
    }
    if (!nest) return Assign(context, out);
    if (kind < 87) return Branch(context, out);
    if (kind < 91) return Switch(context, out);
    if (loops_ < 3) return Loop(context, out);
    Assign(context, out);
  }

  void AddHelper() {
    Helper helper;
    in_helper_ = true;
    helper.num_parameters = 1 + Below(3);
    do helper_result_ = ValueType();
    while (helper_result_ == Type::kBool);
    helper.result = helper_result_;
    scope_.clear();
    variables_ = &helper.variables;
    for (int i = 0; i < helper.num_parameters; ++i) AddVariable(ValueType(), kByThread, true);
    budget_ = 2 + Below(5);
    Context context;
    context.level = kByThread;
    context.barriers = false;
    while (budget_ > 0) AddStatement(context, helper.body);
    helper.body.push_back(
        Simple(Do::kReturn, {Number(Type::kBool, 1), Expr(helper_result_, kByThread, kMaxDepth)}));
    in_helper_ = false;
    program_.helpers.push_back(std::move(helper));
    scope_.clear();
  }

  // Stores the final value of every variable and private array.
  void Finish(std::vector<Statement>& out) {
    Expression sum = Number(Type::kU32, 1);
    auto mix = [&](Expression value) {
      if (IsReal(value.type)) value = Make(Op::kBits, Type::kI32, {std::move(value)});
      sum = Make(Op::kAdd, Type::kU32,
                 {Make(Op::kMul, Type::kU32, {std::move(sum), Number(Type::kU32, 31)}),
                  To(Type::kU32, std::move(value))});
    };
    for (const Variable& v : scope_) {
      if (v.index >= kFirstOwn) mix(Of(v));
    }
    for (size_t i = 0; i < program_.locals.size(); ++i)
      mix(Make(Op::kLocal, program_.locals[i], {Expr(Type::kI32, kByThread, 1)},
               static_cast<int>(i)));
    for (size_t i = 0; i < program_.shared.size(); ++i) {
      if (auto read = ReadShared(static_cast<int>(i), kByThread, 1); read.has_value())
        mix(std::move(*read));
    }
    out.push_back(Simple(Do::kOwnStore, {To(Type::kI32, std::move(sum))}, kNumOwn));
  }

  std::mt19937_64 random_;
  Program program_;
  bool warp_ = false, early_returns_ = false, in_helper_ = false, shared_reads_ = true;
  Type helper_result_ = Type::kI32;
  int budget_ = 0, loops_ = 0, single_ = -1;
  std::vector<Type>* variables_ = nullptr;
  std::vector<Variable> scope_;
  std::vector<Mode> modes_;
  std::vector<Mode> exits_;  // merged over the exits of the innermost loop
};

}  // namespace

Program Generate(uint64_t seed, Flavour flavour) { return Generator(seed, flavour).Run(); }

}  // namespace stride::cpucuda::fuzz
