#include "cpucuda/compiler/spmd/values.h"

#include "llvm/IR/CFG.h"
#include "llvm/IR/Module.h"

namespace stride::cpucuda::spmd {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

constexpr int kMaxRecomputedDepth = 8;

bool IsCheap(const Instruction* instruction) {
  if (const auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(instruction)) {
    return !binary->isIntDivRem() && binary->getOpcode() != Instruction::FDiv &&
           binary->getOpcode() != Instruction::FRem;
  }
  return llvm::isa<llvm::CastInst, llvm::GetElementPtrInst, llvm::ICmpInst, llvm::SelectInst,
                   llvm::FreezeInst>(instruction);
}

bool IsAlwaysThere(const Shape& shape, const Value* value) {
  const auto* instruction = llvm::dyn_cast<Instruction>(value);
  return instruction == nullptr || instruction->getParent() == shape.prologue ||
         IsThreadIndex(instruction);
}

// Values that each region needs from others.
class Needs {
 public:
  explicit Needs(Shape& shape) : shape_(shape) {}

  void Collect() {
    for (Region& region : shape_.regions) {
      blocks_.clear();
      blocks_.insert(region.blocks.begin(), region.blocks.end());
      for (BasicBlock* block : region.blocks) CollectBlock(region, block);
    }
  }
  llvm::SetVector<Value*> kept;

 private:
  void CollectBlock(const Region& region, BasicBlock* block) {
    for (Instruction& instruction : *block) {
      auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction);
      if (phi != nullptr && block == region.start) {
        kept.insert(phi);
        continue;
      }
      if (phi == nullptr) {
        for (Value* operand : instruction.operands()) Need(operand);
        continue;
      }
      for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
        if (blocks_.contains(phi->getIncomingBlock(i))) Need(phi->getIncomingValue(i));
      }
    }
    for (BasicBlock* next : llvm::successors(block)) {
      if (!shape_.region_of.contains(next)) continue;
      for (llvm::PHINode& phi : next->phis()) Need(phi.getIncomingValueForBlock(block));
    }
  }
  void Need(Value* value) {
    if (IsAlwaysThere(shape_, value)) return;
    auto* instruction = llvm::cast<Instruction>(value);
    if (blocks_.contains(instruction->getParent())) return;
    if (IsRecomputed(shape_, value)) {
      for (Value* operand : instruction->operands()) Need(operand);
      return;
    }
    kept.insert(value);
  }
  Shape& shape_;
  llvm::DenseSet<BasicBlock*> blocks_;
};

// A value that a loop carries and the phi that receives it in the next round are never live
// together, so they share a slot. The phi must not be read outside the region that it starts, which
// defines the value.
Value* CarriedBy(const Shape& shape, llvm::PHINode* phi, const llvm::SetVector<Value*>& kept) {
  auto found = shape.region_of.find(phi->getParent());
  if (found == shape.region_of.end() || !shape.IsVarying(phi)) return nullptr;
  const Region& region = shape.regions[found->second];
  auto inside = [&](const BasicBlock* block) { return llvm::is_contained(region.blocks, block); };
  for (llvm::User* user : phi->users()) {
    auto* instruction = llvm::cast<Instruction>(user);
    if (llvm::isa<llvm::PHINode>(instruction) || !inside(instruction->getParent())) return nullptr;
  }
  for (Value* incoming : phi->incoming_values()) {
    auto* instruction = llvm::dyn_cast<Instruction>(incoming);
    if (instruction == nullptr || !kept.contains(instruction) ||
        llvm::isa<llvm::PHINode>(instruction))
      continue;
    if (shape.IsVarying(instruction) && inside(instruction->getParent())) return instruction;
  }
  return nullptr;
}

Slot MakeSlot(Shape& shape, Value* value) {
  llvm::IRBuilder<> builder(shape.prologue->getTerminator());
  Slot slot;
  slot.uniform = !shape.IsVarying(value);
  llvm::Type* type = value->getType()->isIntegerTy(1) ? builder.getInt8Ty() : value->getType();
  const llvm::DataLayout& layout = shape.function->getParent()->getDataLayout();
  if (slot.uniform) {
    llvm::IRBuilder<> top(shape.prologue, shape.prologue->begin());
    slot.base = top.CreateAlloca(type, nullptr, "uniform");
  } else {
    slot.base = shape.AllocateArray(layout.getTypeAllocSize(type), "kept");
  }
  return slot;
}

bool CopiesNothing(const Shape& shape, const Region& region) {
  for (BasicBlock* next : llvm::successors(region.start)) {
    for (llvm::PHINode& phi : next->phis()) {
      Value* value = phi.getIncomingValueForBlock(region.start);
      if (shape.IsVarying(&phi) && !SameSlot(shape, &phi, value)) return false;
      if (shape.IsVarying(value) && !shape.IsVarying(&phi)) return false;
    }
  }
  return true;
}

bool IsScalar(const Shape& shape, const Region& region) {
  if (region.blocks.size() != 1 || region.start == shape.entry || region.start == shape.exit)
    return false;
  Instruction* branch = region.start->getTerminator();
  if (region.start->getFirstNonPHI() != branch ||
      !llvm::isa<llvm::BranchInst, llvm::SwitchInst>(branch))
    return false;
  if (shape.divergent_branches.contains(branch)) return false;
  if (branch->getNumSuccessors() > 1 && shape.IsVarying(branch->getOperand(0))) return false;
  return CopiesNothing(shape, region);
}

}  // namespace

bool IsRecomputed(const Shape& shape, const Value* value, int depth) {
  if (!shape.IsVarying(value)) return false;
  const auto* instruction = llvm::dyn_cast<Instruction>(value);
  if (instruction == nullptr || depth > kMaxRecomputedDepth || !IsCheap(instruction)) return false;
  for (const Value* operand : instruction->operands()) {
    if (IsAlwaysThere(shape, operand) || !shape.IsVarying(operand)) continue;
    if (!IsRecomputed(shape, operand, depth + 1)) return false;
  }
  return true;
}

bool SameSlot(const Shape& shape, const Value* a, const Value* b) {
  auto first = shape.slots.find(const_cast<Value*>(a));
  auto second = shape.slots.find(const_cast<Value*>(b));
  return first != shape.slots.end() && second != shape.slots.end() &&
         first->second.base == second->second.base;
}

void PlaceValues(Shape& shape) {
  Needs needs(shape);
  needs.Collect();
  for (Value* value : needs.kept) {
    if (shape.slots.contains(value)) continue;
    Slot slot = MakeSlot(shape, value);
    shape.slots[value] = slot;
    auto* phi = llvm::dyn_cast<llvm::PHINode>(value);
    Value* carried = phi == nullptr ? nullptr : CarriedBy(shape, phi, needs.kept);
    if (carried != nullptr && !shape.slots.contains(carried)) shape.slots[carried] = slot;
  }
  for (Region& region : shape.regions) region.scalar = IsScalar(shape, region);
}

}  // namespace stride::cpucuda::spmd
