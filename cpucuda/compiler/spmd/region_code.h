// The code of one region inside the loops over threads.
#pragma once

#include "cpucuda/compiler/spmd/kernel_shape.h"
#include "cpucuda/compiler/spmd/thread_loops.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

namespace stride::cpucuda::spmd {

// Copies a region's blocks into `loops`: loads values that other regions stored, and stores values
// that others will load. With `next_region`, an array of bytes over threads, each thread stores its
// next region there.
class RegionCode {
 public:
  RegionCode(Shape& shape, const Region& region, const ThreadLoops& loops, llvm::MDNode* group,
             llvm::Value* next_region)
      : shape_(shape), region_(region), loops_(loops), group_(group), next_region_(next_region) {}
  void Emit(llvm::BasicBlock* begin);

 private:
  void CloneBlocks();
  void MapStartPhis();
  void FillPhis(llvm::BasicBlock* from, llvm::BasicBlock* to);
  void MapOperands(llvm::Instruction* copy);
  void Keep(llvm::Instruction* original, llvm::Instruction* copy);
  void RedirectExits(llvm::BasicBlock* from, llvm::BasicBlock* to);
  llvm::BasicBlock* ExitTo(llvm::BasicBlock* from, llvm::BasicBlock* cut);
  llvm::Value* Resolve(llvm::Value* value);
  llvm::Value* Recompute(llvm::Instruction* instruction);
  llvm::Value* Address(llvm::IRBuilder<>& builder, const Slot& slot, llvm::Type* type);
  llvm::Value* Load(llvm::IRBuilder<>& builder, llvm::Value* value);
  void Store(llvm::IRBuilder<>& builder, llvm::Value* value, llvm::Value* what);
  void MarkIndependent(llvm::Instruction* access);

  Shape& shape_;
  const Region& region_;
  const ThreadLoops& loops_;
  llvm::MDNode* group_;
  llvm::Value* next_region_;
  llvm::BasicBlock* begin_ = nullptr;
  llvm::DenseMap<llvm::Value*, llvm::Value*> values_;
  llvm::DenseMap<llvm::BasicBlock*, llvm::BasicBlock*> blocks_;
};

}  // namespace stride::cpucuda::spmd
