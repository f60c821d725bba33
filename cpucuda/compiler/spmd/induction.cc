#include "cpucuda/compiler/spmd/induction.h"

#include <optional>
#include <vector>

#include "cpucuda/compiler/spmd/values.h"
#include "llvm/IR/IRBuilder.h"

namespace stride::cpucuda::spmd {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

struct Counter {
  llvm::PHINode* phi = nullptr;
  Value* start = nullptr;
  llvm::BinaryOperator* next = nullptr;
  Value* step = nullptr;
};

// Threads leave the loop in different rounds, but the block has one offset, that of the last round.
bool IsUsedOutside(const Instruction* value, const llvm::Loop& loop) {
  for (const llvm::User* user : value->users()) {
    if (!loop.contains(llvm::cast<Instruction>(user)->getParent())) return true;
  }
  return false;
}

std::optional<Counter> AsCounter(llvm::PHINode& phi, const llvm::Loop& loop, const Shape& shape) {
  BasicBlock* before = loop.getLoopPredecessor();
  BasicBlock* latch = loop.getLoopLatch();
  if (before == nullptr || latch == nullptr || !phi.getType()->isIntegerTy() ||
      !shape.IsVarying(&phi)) {
    return std::nullopt;
  }
  Counter counter{.phi = &phi, .start = phi.getIncomingValueForBlock(before)};
  if (!shape.IsVarying(counter.start)) return std::nullopt;
  if (!IsThreadIndex(counter.start) && !IsRecomputed(shape, counter.start, 1)) return std::nullopt;
  counter.next = llvm::dyn_cast<llvm::BinaryOperator>(phi.getIncomingValueForBlock(latch));
  if (counter.next == nullptr || counter.next->getOpcode() != Instruction::Add) return std::nullopt;
  const int other = counter.next->getOperand(0) == &phi ? 1 : 0;
  if (counter.next->getOperand(1 - other) != &phi) return std::nullopt;
  counter.step = counter.next->getOperand(other);
  if (shape.IsVarying(counter.step) || !loop.isLoopInvariant(counter.step)) return std::nullopt;
  if (IsUsedOutside(&phi, loop) || IsUsedOutside(counter.next, loop)) return std::nullopt;
  return counter;
}

void Split(const Counter& counter, const llvm::Loop& loop, Shape& shape) {
  BasicBlock* header = loop.getHeader();
  llvm::IRBuilder<> builder(header, header->begin());
  llvm::Type* type = counter.phi->getType();
  llvm::PHINode* offset = builder.CreatePHI(type, 2, "offset");
  builder.SetInsertPoint(header, header->getFirstInsertionPt());
  Value* sum = builder.CreateAdd(counter.start, offset, counter.phi->getName() + ".sum");
  builder.SetInsertPoint(counter.next);
  Value* next = builder.CreateAdd(offset, counter.step, "offset.next");
  offset->addIncoming(llvm::ConstantInt::get(type, 0), loop.getLoopPredecessor());
  offset->addIncoming(next, loop.getLoopLatch());
  shape.varying.insert(sum);
  shape.varying.erase(counter.phi);
  counter.phi->replaceAllUsesWith(sum);
  counter.phi->eraseFromParent();
}

}  // namespace

void SplitCounters(const llvm::Loop& loop, Shape& shape) {
  // If the only exit is at the loop's end, all threads that stay run each round together. At
  // another exit, some may wait for their own region while others are a round ahead.
  if (loop.getExitingBlock() == nullptr || loop.getExitingBlock() != loop.getLoopLatch()) return;
  std::vector<Counter> counters;
  for (llvm::PHINode& phi : loop.getHeader()->phis()) {
    if (auto counter = AsCounter(phi, loop, shape)) counters.push_back(*counter);
  }
  for (const Counter& counter : counters) Split(counter, loop, shape);
}

}  // namespace stride::cpucuda::spmd
