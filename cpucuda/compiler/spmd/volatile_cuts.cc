#include "cpucuda/compiler/spmd/volatile_cuts.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cpucuda/compiler/spmd/kernel_shape.h"
#include "cpucuda/runtime/block_context.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"

namespace stride::cpucuda::spmd {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

constexpr char kAnchor[] = "__stride_volatile";

llvm::FunctionCallee Marker(llvm::Module& module, const char* name) {
  llvm::FunctionCallee callee =
      module.getOrInsertFunction(name, llvm::Type::getVoidTy(module.getContext()));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setConvergent();
  function->addFnAttr(llvm::Attribute::NoDuplicate);
  function->addFnAttr(llvm::Attribute::WillReturn);
  function->setDoesNotThrow();
  return callee;
}

void InsertBefore(Instruction* at, const char* name) {
  llvm::IRBuilder<>(at).CreateCall(Marker(*at->getModule(), name))->setConvergent();
}

// Memory spaces that several threads may reach. A pointer of unknown origin may lie in either.
enum Space : unsigned { kNowhere = 0, kShared = 1, kGlobal = 2, kAnywhere = kShared | kGlobal };

// The bits of one space; the other space has its bits four positions higher.
enum Kind : unsigned { kRead = 1, kWrite = 2, kVolatileRead = 4, kVolatileWrite = 8 };
using Accesses = unsigned;
constexpr unsigned kSpaceBits = 4, kAllKinds = 15;

Accesses In(unsigned space, unsigned kinds) {
  return ((space & kShared) != 0 ? kinds : 0) | ((space & kGlobal) != 0 ? kinds << kSpaceBits : 0);
}

// A plain write and a volatile one have no order among threads: that is how a flag is set after the
// value it stands for, and a cut must not wait for a thread that waits for the flag.
bool MeetIn(unsigned before, unsigned now) {
  if ((now & kVolatileWrite) != 0 && (before & (kRead | kVolatileRead | kVolatileWrite)) != 0)
    return true;
  if ((now & kVolatileRead) != 0 && (before & (kWrite | kVolatileWrite)) != 0) return true;
  if ((now & kWrite) != 0 && (before & kVolatileRead) != 0) return true;
  return (now & kRead) != 0 && (before & kVolatileWrite) != 0;
}

// Whether two threads may access the same memory, one access volatile and one a write.
bool Meet(Accesses before, Accesses now) {
  return MeetIn(before & kAllKinds, now & kAllKinds) ||
         MeetIn(before >> kSpaceBits, now >> kSpaceBits);
}

// The block's context, or a table that it points to.
bool IsContext(const Value* value) {
  const Value* object = llvm::getUnderlyingObject(value, 0);
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(object))
    return IsContext(load->getPointerOperand());
  const auto* call = llvm::dyn_cast<llvm::CallInst>(object);
  return call != nullptr && CalleeName(*call) == kContext;
}

// The field of the block that a call inserted by the pass reads; -1 for other values.
int64_t PointerField(const Value* value) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(value);
  if (call == nullptr || CalleeName(*call) != kPointer) return -1;
  const auto* offset = llvm::dyn_cast<llvm::ConstantInt>(call->getArgOperand(0));
  return offset == nullptr ? -1 : static_cast<int64_t>(offset->getZExtValue());
}

unsigned SpaceOfObject(const Value* object) {
  if (llvm::isa<llvm::AllocaInst>(object) || IsContext(object)) return kNowhere;
  if (const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(object))
    return global->isConstant() ? kNowhere : kGlobal;
  if (PointerField(object) == offsetof(BlockContext, shared)) return kShared;
  if (PointerField(object) == offsetof(BlockContext, parameters)) return kNowhere;
  if (const auto* call = llvm::dyn_cast<llvm::CallInst>(object)) {
    // Memory of the prelude's own exchanges, which have waits of their own.
    if (CalleeName(*call) == kSlot || CalleeName(*call) == kSlotClear) return kNowhere;
  }
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(object)) {
    const Value* from = llvm::getUnderlyingObject(load->getPointerOperand(), 0);
    if (PointerField(from) == offsetof(BlockContext, parameters)) return kGlobal;
  }
  return kAnywhere;
}

unsigned SpaceOf(const Value* pointer) {
  llvm::SmallVector<const Value*, 4> objects;
  llvm::getUnderlyingObjects(pointer, objects, nullptr, 0);
  unsigned space = kNowhere;
  for (const Value* object : objects) space |= SpaceOfObject(object);
  return space;
}

Accesses AccessesOf(const Instruction& instruction) {
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
    return In(SpaceOf(load->getPointerOperand()), load->isVolatile() ? kVolatileRead : kRead);
  if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
    return In(SpaceOf(store->getPointerOperand()), store->isVolatile() ? kVolatileWrite : kWrite);
  // A thread's atomic operation is indivisible: other threads' operations come before or after it.
  if (const auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction))
    return In(SpaceOf(update->getPointerOperand()), kRead | kWrite);
  if (const auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction))
    return In(SpaceOf(exchange->getPointerOperand()), kRead | kWrite);
  if (const auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(&instruction))
    return In(SpaceOf(copy->getRawSource()), kRead) | In(SpaceOf(copy->getRawDest()), kWrite);
  if (const auto* set = llvm::dyn_cast<llvm::MemSetInst>(&instruction))
    return In(SpaceOf(set->getRawDest()), kWrite);
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr || !call->mayReadOrWriteMemory() || llvm::isa<llvm::IntrinsicInst>(call) ||
      CalleeName(*call).starts_with("__stride_") || IsContext(call->getCalledOperand()))
    return 0;
  // A function that could not be inlined: see RefuseInStep.
  return In(kAnywhere, kRead | kWrite | kVolatileRead | kVolatileWrite);
}

bool IsVolatile(const Instruction& instruction) {
  if (const auto* transfer = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction))
    return transfer->isVolatile();
  return instruction.isVolatile() && !instruction.isAtomic();
}

Value* PointerOf(Instruction& instruction) {
  if (auto* memory = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction)) return memory->getRawDest();
  return const_cast<Value*>(llvm::getLoadStorePointerOperand(&instruction));
}

// Whether a called function accesses volatile memory.
bool CallsVolatile(llvm::Function& kernel) {
  for (const Instruction& call : llvm::instructions(kernel)) {
    const auto* base = llvm::dyn_cast<llvm::CallBase>(&call);
    llvm::Function* callee = base == nullptr ? nullptr : base->getCalledFunction();
    if (callee == nullptr || callee->isDeclaration()) continue;
    for (Instruction& instruction : llvm::instructions(*callee)) {
      if (IsVolatile(instruction) && SpaceOf(PointerOf(instruction)) != kNowhere) return true;
    }
  }
  return false;
}

// Threads are together at each of these, or wait for each other.
bool IsCut(const Instruction& instruction) {
  llvm::StringRef name = CalleeName(instruction);
  return name == kCut || name == kWaitWarp || name == kWaitGrid || name == kSlotClear ||
         name == kInStep;
}

bool HasCut(const BasicBlock* block) {
  return llvm::any_of(*block, [](const Instruction& i) { return CalleeName(i) == kInStep; });
}

// The accesses of threads since they were last together.
class Since {
 public:
  explicit Since(llvm::Function& function) : function_(function) {}

  // At the start of each block, along any path to it.
  void Follow() {
    in_.clear();
    llvm::ReversePostOrderTraversal<llvm::Function*> order(&function_);
    for (bool changed = true; changed;) {
      changed = false;
      for (BasicBlock* block : order) {
        const Accesses out = Through(*block, in_[block]);
        for (BasicBlock* next : llvm::successors(block)) {
          Accesses& at = in_[next];
          changed = changed || (out & ~at) != 0;
          at |= out;
        }
      }
    }
  }
  Accesses At(BasicBlock* block) const { return in_.lookup(block); }

  static Accesses Through(const BasicBlock& block, Accesses since) {
    for (const Instruction& instruction : block)
      since = IsCut(instruction) ? 0 : since | AccessesOf(instruction);
    return since;
  }

 private:
  llvm::Function& function_;
  llvm::DenseMap<const BasicBlock*, Accesses> in_;
};

class Cutter {
 public:
  explicit Cutter(llvm::Function& function)
      : function_(function), dominators_(function), loops_(dominators_), since_(function) {
    for (llvm::Loop* loop : loops_)
      llvm::simplifyLoop(loop, &dominators_, &loops_, nullptr, nullptr, nullptr, false);
  }

  void Run() {
    do since_.Follow();
    while (CutOneBlock());
    for (llvm::Loop* loop : loops_.getLoopsInPreorder()) GatherAt(*loop);
  }

 private:
  // One block at a time: its cuts change the accesses that other blocks must consider.
  bool CutOneBlock() {
    llvm::ReversePostOrderTraversal<llvm::Function*> order(&function_);
    for (BasicBlock* block : order) {
      if (CutBlock(*block)) return true;
    }
    return false;
  }

  bool CutBlock(BasicBlock& block) {
    Accesses since = since_.At(&block);
    bool changed = false;
    for (Instruction& instruction : llvm::make_early_inc_range(block)) {
      const Accesses now = AccessesOf(instruction);
      if (Meet(since, now)) {
        // A loop that only reads values of other threads needs no cut, and must have none: with a
        // cut it would run before the thread that writes.
        if (BasicBlock* before = changed ? nullptr : BeforeLoop(block, now)) {
          InsertBefore(before->getTerminator(), kInStep);
          return true;
        }
        InsertBefore(&instruction, kInStep);
        since = 0;
        changed = true;
      }
      since = IsCut(instruction) ? 0 : since | now;
    }
    return changed;
  }

  // The place of a cut that only accesses before a loop require: before the outermost such
  // loop.
  BasicBlock* BeforeLoop(BasicBlock& block, Accesses now) const {
    BasicBlock* before = nullptr;
    for (llvm::Loop* loop = loops_.getLoopFor(&block); loop != nullptr;
         loop = loop->getParentLoop()) {
      Accesses within = 0;
      for (BasicBlock* inside : loop->blocks()) {
        for (const Instruction& instruction : *inside) within |= AccessesOf(instruction);
      }
      if (Meet(within, now) || loop->getLoopPreheader() == nullptr) break;
      before = loop->getLoopPreheader();
    }
    return before;
  }

  // Threads enter a loop with cuts together, and begin each round together on every path.
  void GatherAt(const llvm::Loop& loop) {
    if (llvm::none_of(loop.blocks(), HasCut)) return;
    if (BasicBlock* before = loop.getLoopPreheader(); before != nullptr && !EndsInCut(*before))
      InsertBefore(before->getTerminator(), kInStep);
    BasicBlock* last = loop.getLoopLatch();
    if (last != nullptr && loop.getNumBlocks() > 1 && !EndsInCut(*last))
      InsertBefore(last->getTerminator(), kInStep);
  }
  static bool EndsInCut(const BasicBlock& block) {
    const Instruction* last = block.getTerminator()->getPrevNode();
    return last != nullptr && CalleeName(*last) == kInStep;
  }

  llvm::Function& function_;
  llvm::DominatorTree dominators_;
  llvm::LoopInfo loops_;
  Since since_;
};

// Whether a cut lies between a branch and the block where its paths meet.
bool IsCutBefore(BasicBlock& branch, BasicBlock* meeting) {
  llvm::SetVector<BasicBlock*> seen;
  for (BasicBlock* next : llvm::successors(&branch)) seen.insert(next);
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] == meeting) continue;
    if (HasCut(seen[i])) return true;
    for (BasicBlock* next : llvm::successors(seen[i])) seen.insert(next);
  }
  return false;
}

// Returns whether there were any.
bool RemoveAnchors(llvm::Function& function) {
  bool found = false;
  for (Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    if (CalleeName(instruction) != kAnchor) continue;
    instruction.eraseFromParent();
    found = true;
  }
  return found;
}

}  // namespace

void AnchorVolatileAccesses(llvm::Module& module) {
  std::vector<Instruction*> found;
  for (llvm::Function& function : module) {
    for (Instruction& instruction : llvm::instructions(function)) {
      if (IsVolatile(instruction) && SpaceOf(PointerOf(instruction)) != kNowhere)
        found.push_back(&instruction);
    }
  }
  for (Instruction* access : found) {
    InsertBefore(access, kAnchor);
    InsertBefore(access->getNextNode(), kAnchor);
  }
}

absl::Status CutInStep(llvm::Function& kernel) {
  const bool anchored = RemoveAnchors(kernel);
  if (!anchored && !CallsVolatile(kernel)) return absl::OkStatus();
  for (const Instruction& instruction : llvm::instructions(kernel)) {
    const auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(&instruction);
    if (copy != nullptr && copy->isVolatile() && SpaceOf(copy->getRawSource()) != kNowhere &&
        SpaceOf(copy->getRawDest()) != kNowhere) {
      return absl::UnimplementedError(
          "the CPU device has no volatile copies of whole structs between threads' memory");
    }
  }
  Cutter(kernel).Run();
  return absl::OkStatus();
}

void MeetInStep(llvm::Function& kernel) {
  if (llvm::none_of(kernel, [](const BasicBlock& block) { return HasCut(&block); })) return;
  llvm::PostDominatorTree post(kernel);
  for (bool changed = true; changed;) {
    changed = false;
    for (BasicBlock& block : kernel) {
      auto* node = llvm::succ_size(&block) < 2 ? nullptr : post.getNode(&block);
      BasicBlock* meeting =
          node == nullptr || node->getIDom() == nullptr ? nullptr : node->getIDom()->getBlock();
      if (meeting == nullptr || CalleeName(*meeting->getFirstNonPHI()) == kInStep ||
          !IsCutBefore(block, meeting))
        continue;
      InsertBefore(&*meeting->getFirstInsertionPt(), kInStep);
      changed = true;
    }
  }
}

absl::Status RefuseInStep(llvm::Function& function) {
  if (!RemoveAnchors(function)) return absl::OkStatus();
  Accesses all = 0;
  for (const Instruction& instruction : llvm::instructions(function)) {
    // Calls are left out: the function may call itself, and its own accesses count already.
    if (!llvm::isa<llvm::CallBase>(instruction) || llvm::isa<llvm::MemIntrinsic>(instruction))
      all |= AccessesOf(instruction);
  }
  // A function that only writes, or only reads, does so between two cuts of its calling kernel.
  auto both = [](unsigned kinds) {
    return (kinds & (kRead | kVolatileRead)) != 0 && (kinds & (kWrite | kVolatileWrite)) != 0;
  };
  if (!Meet(all, all) || !(both(all & kAllKinds) || both(all >> kSpaceBits)))
    return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "the CPU device has no volatile access to memory that threads share, and write, in functions "
      "that call themselves or are called through a pointer: ",
      function.getName().str()));
}

}  // namespace stride::cpucuda::spmd
