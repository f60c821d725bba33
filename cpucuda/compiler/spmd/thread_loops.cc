#include "cpucuda/compiler/spmd/thread_loops.h"

namespace stride::cpucuda::spmd {
namespace {

llvm::MDNode* LoopProperties(llvm::LLVMContext& context, llvm::MDNode* group) {
  llvm::SmallVector<llvm::Metadata*, 4> operands = {nullptr};
  auto add = [&](llvm::StringRef name, llvm::Metadata* value) {
    llvm::SmallVector<llvm::Metadata*, 2> pair = {llvm::MDString::get(context, name)};
    if (value != nullptr) pair.push_back(value);
    operands.push_back(llvm::MDNode::get(context, pair));
  };
  if (group != nullptr) add("llvm.loop.parallel_accesses", group);
  add("llvm.loop.mustprogress", nullptr);
  llvm::MDNode* properties = llvm::MDNode::getDistinct(context, operands);
  properties->replaceOperandWith(0, properties);
  return properties;
}

}  // namespace

ThreadLoops BuildThreadLoops(const Shape& shape, const llvm::Twine& name, llvm::MDNode* group) {
  llvm::Function* function = shape.function;
  llvm::LLVMContext& context = function->getContext();
  llvm::IRBuilder<> builder(context);
  llvm::Type* word = builder.getInt32Ty();
  ThreadLoops loops;
  loops.before = llvm::BasicBlock::Create(context, name, function);
  llvm::BasicBlock* heads[3];  // headers of the loops over x, y, z
  llvm::BasicBlock* latches[3];
  for (int axis = 2; axis >= 0; --axis)
    heads[axis] = llvm::BasicBlock::Create(context, name + ".loop", function);
  for (int axis = 0; axis < 3; ++axis)
    latches[axis] = llvm::BasicBlock::Create(context, name + ".next", function);
  loops.after = llvm::BasicBlock::Create(context, name + ".after", function);
  builder.SetInsertPoint(loops.before);
  builder.CreateBr(heads[2]);
  llvm::PHINode* index[3];
  for (int axis = 2; axis >= 0; --axis) {
    builder.SetInsertPoint(heads[axis]);
    index[axis] = builder.CreatePHI(word, 2);
    index[axis]->addIncoming(builder.getInt32(0), axis == 2 ? loops.before : heads[axis + 1]);
    if (axis > 0) builder.CreateBr(heads[axis - 1]);
  }
  for (int axis = 0; axis < 3; ++axis) {
    builder.SetInsertPoint(latches[axis]);
    llvm::Value* up = builder.CreateAdd(index[axis], builder.getInt32(1), "", true, true);
    index[axis]->addIncoming(up, latches[axis]);
    llvm::Value* more = builder.CreateICmpULT(up, shape.block[axis]);
    llvm::BranchInst* branch =
        builder.CreateCondBr(more, heads[axis], axis == 2 ? loops.after : latches[axis + 1]);
    branch->setMetadata(llvm::LLVMContext::MD_loop, LoopProperties(context, group));
  }
  // The index at x = 0 is computed once for each row.
  builder.SetInsertPoint(heads[1]->getTerminator());
  llvm::Value* plane = builder.CreateMul(index[2], shape.block[1], "", true, true);
  llvm::Value* row = builder.CreateMul(builder.CreateAdd(plane, index[1], "", true, true),
                                       shape.block[0], "", true, true);
  builder.SetInsertPoint(heads[0]);
  loops.thread[3] = builder.CreateAdd(row, index[0], "linear", true, true);
  for (int axis = 0; axis < 3; ++axis) loops.thread[axis] = index[axis];
  loops.body = heads[0];
  loops.next = latches[0];
  return loops;
}

}  // namespace stride::cpucuda::spmd
