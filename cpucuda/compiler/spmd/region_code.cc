#include "cpucuda/compiler/spmd/region_code.h"

#include "cpucuda/compiler/spmd/values.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IntrinsicInst.h"

namespace stride::cpucuda::spmd {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::IRBuilder;
using llvm::Value;

void RegionCode::Emit(BasicBlock* begin) {
  begin_ = begin;
  for (int i = 0; i < 4; ++i) values_[shape_.thread[i]] = loops_.thread[i];
  if (region_.start == shape_.exit) {
    IRBuilder<>(begin).CreateBr(loops_.next);
    return;
  }
  // The branch exists from the start, so that loads can be put before it.
  CloneBlocks();
  MapStartPhis();
  for (BasicBlock* from : region_.blocks) {
    BasicBlock* to = blocks_[from];
    FillPhis(from, to);
    for (Instruction& copy : *to) {
      if (!llvm::isa<llvm::PHINode>(copy)) MapOperands(&copy);
    }
  }
  for (BasicBlock* from : region_.blocks) {
    for (Instruction& original : *from) {
      if (auto found = values_.find(&original); found != values_.end()) {
        if (auto* copy = llvm::dyn_cast<Instruction>(found->second)) Keep(&original, copy);
      }
    }
    RedirectExits(from, blocks_[from]);
  }
}

void RegionCode::CloneBlocks() {
  for (BasicBlock* from : region_.blocks) {
    blocks_[from] =
        BasicBlock::Create(from->getContext(), from->getName(), shape_.function, loops_.next);
  }
  IRBuilder<>(begin_).CreateBr(blocks_[region_.start]);
  for (BasicBlock* from : region_.blocks) {
    for (Instruction& original : *from) {
      if (values_.contains(&original)) continue;  // thread indices
      if (from == region_.start && llvm::isa<llvm::PHINode>(original)) continue;
      Instruction* copy = original.clone();
      copy->insertInto(blocks_[from], blocks_[from]->end());
      if (original.hasName()) copy->setName(original.getName());
      values_[&original] = copy;
      if (copy->mayReadOrWriteMemory()) MarkIndependent(copy);
    }
  }
}

void RegionCode::MapStartPhis() {
  for (llvm::PHINode& phi : region_.start->phis()) {
    IRBuilder<> builder(begin_->getTerminator());
    values_[&phi] = Load(builder, &phi);
  }
}

void RegionCode::FillPhis(BasicBlock* from, BasicBlock* to) {
  if (from == region_.start) return;
  auto copy = to->begin();
  for (llvm::PHINode& phi : from->phis()) {
    auto* mine = llvm::cast<llvm::PHINode>(&*copy++);
    while (mine->getNumIncomingValues() > 0) mine->removeIncomingValue(0u, false);
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
      auto found = blocks_.find(phi.getIncomingBlock(i));
      if (found != blocks_.end())
        mine->addIncoming(Resolve(phi.getIncomingValue(i)), found->second);
    }
  }
}

void RegionCode::MapOperands(Instruction* copy) {
  for (llvm::Use& use : copy->operands()) {
    if (auto* block = llvm::dyn_cast<BasicBlock>(use.get())) {
      auto found = blocks_.find(block);
      if (found != blocks_.end() && block != region_.start) use.set(found->second);
    } else {
      use.set(Resolve(use.get()));
    }
  }
}

// Stored right after its definition: a later block of the region may have several exits.
void RegionCode::Keep(Instruction* original, Instruction* copy) {
  auto slot = shape_.slots.find(original);
  if (slot == shape_.slots.end() || IsThreadIndex(original) || original->isTerminator()) return;
  if (llvm::isa<llvm::PHINode>(original) && original->getParent() == region_.start) return;
  Instruction* after = llvm::isa<llvm::PHINode>(copy) ? &*copy->getParent()->getFirstInsertionPt()
                                                      : copy->getNextNode();
  IRBuilder<> builder(after);
  Store(builder, original, copy);
}

void RegionCode::RedirectExits(BasicBlock* from, BasicBlock* to) {
  Instruction* branch = to->getTerminator();
  for (unsigned i = 0; i < branch->getNumSuccessors(); ++i) {
    BasicBlock* target = branch->getSuccessor(i);
    if (shape_.region_of.contains(target)) branch->setSuccessor(i, ExitTo(from, target));
  }
}

BasicBlock* RegionCode::ExitTo(BasicBlock* from, BasicBlock* cut) {
  BasicBlock* exit =
      BasicBlock::Create(cut->getContext(), "to." + cut->getName(), shape_.function, loops_.next);
  IRBuilder<> builder(exit);
  llvm::SmallVector<std::pair<llvm::PHINode*, Value*>, 8> copies;
  for (llvm::PHINode& phi : cut->phis()) {
    Value* incoming = phi.getIncomingValueForBlock(from);
    if (!SameSlot(shape_, &phi, incoming)) copies.emplace_back(&phi, Resolve(incoming));
  }
  for (auto& [phi, value] : copies) Store(builder, phi, value);
  if (next_region_ != nullptr) {
    Value* index = builder.CreateZExt(loops_.thread[3], builder.getInt64Ty());
    Value* address = builder.CreateInBoundsGEP(builder.getInt8Ty(), next_region_, index);
    MarkIndependent(builder.CreateStore(builder.getInt8(shape_.region_of[cut]), address));
  }
  builder.CreateBr(loops_.next);
  return exit;
}

Value* RegionCode::Resolve(Value* value) {
  auto* instruction = llvm::dyn_cast<Instruction>(value);
  if (instruction == nullptr || instruction->getParent() == shape_.prologue) return value;
  auto found = values_.find(value);
  if (found != values_.end()) return found->second;
  Value* made = nullptr;
  if (shape_.slots.contains(value)) {
    IRBuilder<> builder(begin_->getTerminator());
    made = Load(builder, value);
  } else {
    made = Recompute(instruction);
  }
  values_[value] = made;
  return made;
}

Value* RegionCode::Recompute(Instruction* instruction) {
  Instruction* copy = instruction->clone();
  for (llvm::Use& use : copy->operands()) use.set(Resolve(use.get()));
  copy->insertBefore(begin_->getTerminator());
  return copy;
}

Value* RegionCode::Address(IRBuilder<>& builder, const Slot& slot, llvm::Type* type) {
  if (slot.uniform) return slot.base;
  return builder.CreateInBoundsGEP(type, slot.base,
                                   builder.CreateZExt(loops_.thread[3], builder.getInt64Ty()));
}

Value* RegionCode::Load(IRBuilder<>& here, Value* value) {
  const Slot& slot = shape_.slots.find(value)->second;
  // A uniform value is read once for all threads: the first of them may store what the next region
  // finds there.
  IRBuilder<> before(loops_.before->getTerminator());
  IRBuilder<>& builder = slot.uniform ? before : here;
  bool flag = value->getType()->isIntegerTy(1);
  llvm::Type* type = flag ? builder.getInt8Ty() : value->getType();
  llvm::LoadInst* load = builder.CreateLoad(type, Address(builder, slot, type));
  if (!slot.uniform) MarkIndependent(load);
  return flag ? builder.CreateTrunc(load, builder.getInt1Ty()) : load;
}

void RegionCode::Store(IRBuilder<>& builder, Value* value, Value* what) {
  const Slot& slot = shape_.slots.find(value)->second;
  if (what->getType()->isIntegerTy(1)) what = builder.CreateZExt(what, builder.getInt8Ty());
  llvm::StoreInst* store = builder.CreateStore(what, Address(builder, slot, what->getType()));
  if (!slot.uniform) MarkIndependent(store);
}

void RegionCode::MarkIndependent(Instruction* access) {
  bool plain = llvm::isa<llvm::LoadInst, llvm::StoreInst, llvm::MemIntrinsic>(access);
  if (plain && !access->isAtomic() && !access->hasMetadata(kSerial)) {
    access->setMetadata(llvm::LLVMContext::MD_access_group, group_);
  }
}

}  // namespace stride::cpucuda::spmd
