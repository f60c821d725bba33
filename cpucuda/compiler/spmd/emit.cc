#include "cpucuda/compiler/spmd/emit.h"

#include <algorithm>
#include <numeric>

#include "cpucuda/compiler/spmd/region_code.h"
#include "cpucuda/compiler/spmd/thread_loops.h"
#include "llvm/IR/CFG.h"
#include "llvm/Transforms/Utils/Local.h"

namespace stride::cpucuda::spmd {
namespace {

using llvm::BasicBlock;
using llvm::IRBuilder;
using llvm::Value;

class Emitter {
 public:
  explicit Emitter(Shape& shape) : shape_(shape), context_(shape.function->getContext()) {}

  void Run() {
    entry_ = shape_.region_of[shape_.entry];
    MakeStarts();
    if (shape_.divergent) MakeDispatch();
    for (size_t i = 0; i < shape_.regions.size(); ++i) EmitRegion(static_cast<int>(i));
    llvm::Instruction* old = shape_.prologue->getTerminator();
    IRBuilder<> builder(old);
    if (shape_.divergent) builder.CreateStore(Bit(entry_), pending_);
    builder.CreateBr(shape_.divergent ? dispatch_ : starts_[entry_]);
    old->eraseFromParent();
    llvm::removeUnreachableBlocks(*shape_.function);
  }

 private:
  BasicBlock* NewBlock(const llvm::Twine& name) {
    return BasicBlock::Create(context_, name, shape_.function);
  }
  // A word where it suffices, as for most kernels.
  llvm::IntegerType* SetType() {
    const auto words = static_cast<unsigned>((shape_.regions.size() + 63) / 64);
    return llvm::IntegerType::get(context_, 64 * words);
  }
  llvm::Constant* Bit(int region) {
    const unsigned width = SetType()->getBitWidth();
    return llvm::ConstantInt::get(context_, llvm::APInt::getOneBitSet(width, region));
  }
  llvm::MDNode* NewGroup() { return llvm::MDNode::getDistinct(context_, {}); }

  void MakeStarts() {
    for (size_t i = 0; i < shape_.regions.size(); ++i)
      starts_.push_back(NewBlock("region." + llvm::Twine(i)));
  }

  // Tests the pending set in order: from the region that must run first to the kernel's end.
  void MakeDispatch() {
    IRBuilder<> top(shape_.prologue, shape_.prologue->begin());
    pending_ = top.CreateAlloca(SetType(), nullptr, "pending");
    next_region_ = shape_.AllocateArray(1, "next");
    std::vector<int> order(shape_.regions.size());
    std::iota(order.begin(), order.end(), 0);
    auto key = [&](int i) {
      const Region& region = shape_.regions[i];
      return std::make_tuple(i == shape_.exit_region, -static_cast<int>(region.depth),
                             region.order);
    };
    std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
    dispatch_ = NewBlock("dispatch");
    BasicBlock* at = dispatch_;
    IRBuilder<> builder(at);
    Value* pending = builder.CreateLoad(SetType(), pending_);
    for (size_t i = 0; i < order.size(); ++i) {
      BasicBlock* other = NewBlock("dispatch");
      Value* waiting = builder.CreateICmpNE(builder.CreateAnd(pending, Bit(order[i])),
                                            llvm::ConstantInt::get(SetType(), 0));
      builder.CreateCondBr(waiting, starts_[order[i]], other);
      builder.SetInsertPoint(other);
    }
    builder.CreateUnreachable();
  }

  void Clear(IRBuilder<>& builder, const Region& region) {
    for (auto& [base, bytes] : region.clears) {
      Value* size = builder.CreateMul(shape_.rounded_threads, builder.getInt64(bytes));
      builder.CreateMemSet(base, builder.getInt8(0), size, llvm::MaybeAlign(64));
    }
  }

  void EmitRegion(int index) {
    const Region& region = shape_.regions[index];
    IRBuilder<> builder(starts_[index]);
    if (index == shape_.exit_region) {
      builder.CreateRetVoid();
      return;
    }
    Clear(builder, region);
    if (!shape_.divergent) {
      region.scalar ? EmitScalar(index, builder, false) : EmitAll(index, builder);
      return;
    }
    BasicBlock* all = NewBlock("all");
    BasicBlock* some = NewBlock("some");
    Value* pending = builder.CreateLoad(SetType(), pending_);
    builder.CreateCondBr(builder.CreateICmpEQ(pending, Bit(index)), all, some);
    builder.SetInsertPoint(all);
    region.scalar ? EmitScalar(index, builder, false) : EmitAll(index, builder);
    builder.SetInsertPoint(some);
    region.scalar ? EmitScalar(index, builder, true) : EmitSome(index, builder);
  }

  // The block's next region when all its threads go to one.
  void GoTo(IRBuilder<>& builder, int region) {
    if (shape_.divergent) builder.CreateStore(Bit(region), pending_);
    builder.CreateBr(starts_[region]);
  }

  void EmitScalar(int index, IRBuilder<>& builder, bool masked) {
    const Region& region = shape_.regions[index];
    llvm::Instruction* branch = region.start->getTerminator()->clone();
    llvm::DenseMap<Value*, Value*> loaded;
    auto read = [&](Value* value) -> Value* {
      auto found = shape_.slots.find(value);
      if (found == shape_.slots.end()) return value;
      bool flag = value->getType()->isIntegerTy(1);
      Value* load =
          builder.CreateLoad(flag ? builder.getInt8Ty() : value->getType(), found->second.base);
      return flag ? builder.CreateTrunc(load, builder.getInt1Ty()) : load;
    };
    if (branch->getNumSuccessors() > 1) branch->setOperand(0, read(branch->getOperand(0)));
    for (unsigned i = 0; i < branch->getNumSuccessors(); ++i) {
      BasicBlock* target = branch->getSuccessor(i);
      BasicBlock* edge = NewBlock("edge");
      branch->setSuccessor(i, edge);
      IRBuilder<> out(edge);
      std::vector<std::pair<Value*, Value*>> copies;
      for (llvm::PHINode& phi : target->phis()) {
        if (shape_.IsVarying(&phi)) continue;  // kept in one place with its value
        Value* value = phi.getIncomingValueForBlock(region.start);
        auto found = shape_.slots.find(value);
        bool flag = phi.getType()->isIntegerTy(1);
        llvm::Type* type = flag ? out.getInt8Ty() : phi.getType();
        Value* what = found != shape_.slots.end() ? out.CreateLoad(type, found->second.base)
                      : flag                      ? out.CreateZExt(value, type)
                                                  : value;
        copies.emplace_back(shape_.slots.find(&phi)->second.base, what);
      }
      for (auto& [base, what] : copies) out.CreateStore(what, base);
      int next = shape_.region_of[target];
      if (masked) {
        MoveWaiting(out, index, next);
      } else {
        GoTo(out, next);
      }
    }
    builder.Insert(branch);
  }

  // Every thread waiting for region `from` now waits for `to`.
  void MoveWaiting(IRBuilder<>& builder, int from, int to) {
    llvm::MDNode* group = NewGroup();
    ThreadLoops loops = BuildThreadLoops(shape_, "move", group);
    builder.CreateBr(loops.before);
    IRBuilder<> body(loops.body);
    Value* address = NextOf(body, loops);
    llvm::LoadInst* now = body.CreateLoad(body.getInt8Ty(), address);
    Value* mine = body.CreateICmpEQ(now, body.getInt8(from));
    llvm::StoreInst* store =
        body.CreateStore(body.CreateSelect(mine, body.getInt8(to), now), address);
    for (llvm::Instruction* access :
         {static_cast<llvm::Instruction*>(now), static_cast<llvm::Instruction*>(store)}) {
      access->setMetadata(llvm::LLVMContext::MD_access_group, group);
    }
    body.CreateBr(loops.next);
    IRBuilder<> after(loops.after);
    Value* pending = after.CreateLoad(SetType(), pending_);
    pending = after.CreateOr(after.CreateAnd(pending, after.CreateNot(Bit(from))), Bit(to));
    after.CreateStore(pending, pending_);
    after.CreateBr(dispatch_);
  }

  Value* NextOf(IRBuilder<>& builder, const ThreadLoops& loops) {
    Value* index = builder.CreateZExt(loops.thread[3], builder.getInt64Ty());
    return builder.CreateInBoundsGEP(builder.getInt8Ty(), next_region_, index);
  }

  void EmitAll(int index, IRBuilder<>& builder) {
    const Region& region = shape_.regions[index];
    bool several = region.exits.size() > 1;
    llvm::MDNode* group = NewGroup();
    ThreadLoops loops = BuildThreadLoops(shape_, "threads", group);
    builder.CreateBr(loops.before);
    RegionCode(shape_, region, loops, group, several ? next_region_ : nullptr).Emit(loops.body);
    IRBuilder<> after(loops.after);
    if (region.exits.empty()) {
      after.CreateUnreachable();
    } else if (several) {
      Gather(after);
    } else {
      GoTo(after, region.exits[0]);
    }
  }

  void EmitSome(int index, IRBuilder<>& builder) {
    const Region& region = shape_.regions[index];
    llvm::MDNode* group = NewGroup();
    ThreadLoops loops = BuildThreadLoops(shape_, "waiting", group);
    builder.CreateBr(loops.before);
    IRBuilder<> body(loops.body);
    llvm::LoadInst* now = body.CreateLoad(body.getInt8Ty(), NextOf(body, loops));
    now->setMetadata(llvm::LLVMContext::MD_access_group, group);
    BasicBlock* mine = NewBlock("mine");
    body.CreateCondBr(body.CreateICmpEQ(now, body.getInt8(index)), mine, loops.next);
    RegionCode(shape_, region, loops, group, next_region_).Emit(mine);
    IRBuilder<> after(loops.after);
    if (region.exits.empty()) {
      after.CreateUnreachable();
    } else {
      Gather(after);
    }
  }

  // pending = the set of all threads' next regions.
  void Gather(IRBuilder<>& builder) {
    llvm::MDNode* group = NewGroup();
    BasicBlock* loop = NewBlock("gather");
    BasicBlock* done = NewBlock("gathered");
    BasicBlock* before = builder.GetInsertBlock();
    Value* threads =
        builder.CreateMul(builder.CreateMul(shape_.block[0], shape_.block[1]), shape_.block[2]);
    threads = builder.CreateZExt(threads, builder.getInt64Ty());
    builder.CreateBr(loop);
    IRBuilder<> body(loop);
    llvm::PHINode* at = body.CreatePHI(body.getInt64Ty(), 2);
    llvm::PHINode* set = body.CreatePHI(SetType(), 2);
    llvm::LoadInst* next = body.CreateLoad(
        body.getInt8Ty(), body.CreateInBoundsGEP(body.getInt8Ty(), next_region_, at));
    next->setMetadata(llvm::LLVMContext::MD_access_group, group);
    Value* more = body.CreateOr(set, body.CreateShl(llvm::ConstantInt::get(SetType(), 1),
                                                    body.CreateZExt(next, SetType())));
    Value* up = body.CreateAdd(at, body.getInt64(1), "", true, true);
    body.CreateCondBr(body.CreateICmpULT(up, threads), loop, done);
    at->addIncoming(body.getInt64(0), before);
    at->addIncoming(up, loop);
    set->addIncoming(llvm::ConstantInt::get(SetType(), 0), before);
    set->addIncoming(more, loop);
    IRBuilder<> after(done);
    after.CreateStore(more, pending_);
    after.CreateBr(dispatch_);
  }

  Shape& shape_;
  llvm::LLVMContext& context_;
  int entry_ = 0;
  std::vector<BasicBlock*> starts_;
  BasicBlock* dispatch_ = nullptr;
  Value* pending_ = nullptr;
  Value* next_region_ = nullptr;
};

}  // namespace

void EmitBlockFunction(Shape& shape) { Emitter(shape).Run(); }

}  // namespace stride::cpucuda::spmd
