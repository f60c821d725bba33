#include "server/worker/cpu/compiler/spmd/regions.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "server/worker/cpu/compiler/spmd/interchange.h"

namespace stride::cpu::spmd {
namespace {

using llvm::BasicBlock;

// The pending regions are bits of a word; the kernel's end is one of them.
constexpr size_t kMaxDivergentRegions = 63;

bool ContainsCut(const llvm::Loop& loop, const Shape& shape) {
  for (BasicBlock* block : loop.blocks()) {
    // A cut at the header alone may be where the code before the loop ends.
    if (block != loop.getHeader() && shape.cuts.contains(block)) return true;
  }
  return shape.cuts.contains(loop.getHeader());
}

void CutLoop(const llvm::Loop& loop, Shape& shape) {
  shape.cuts.insert(loop.getHeader());
  llvm::SmallVector<BasicBlock*, 4> exits;
  loop.getExitBlocks(exits);
  for (BasicBlock* exit : exits) {
    if (!llvm::isa<llvm::UnreachableInst>(exit->getTerminator())) shape.cuts.insert(exit);
  }
}

// Innermost first: cutting a loop puts a cut into the loops around it.
void CutLoops(Shape& shape) {
  llvm::DominatorTree dominators(*shape.function);
  llvm::LoopInfo loops(dominators);
  llvm::SmallVector<llvm::Loop*, 4> outermost_first = loops.getLoopsInPreorder();
  for (llvm::Loop* loop : llvm::reverse(outermost_first)) {
    if (ContainsCut(*loop, shape) || (loop->isInnermost() && WantsInterchange(*loop, shape)))
      CutLoop(*loop, shape);
  }
}

// The cuts that a thread may reach first from `block` on.
llvm::SetVector<BasicBlock*> FirstCuts(BasicBlock* block, const Shape& shape) {
  llvm::SetVector<BasicBlock*> found;
  llvm::SetVector<BasicBlock*> seen;
  seen.insert(block);
  for (size_t i = 0; i < seen.size(); ++i) {
    if (shape.cuts.contains(seen[i])) {
      found.insert(seen[i]);
    } else {
      for (BasicBlock* next : llvm::successors(seen[i])) seen.insert(next);
    }
  }
  return found;
}

bool ChoosesRegion(const llvm::Instruction* branch, const Shape& shape) {
  llvm::SetVector<BasicBlock*> found;
  for (unsigned i = 0; i < branch->getNumSuccessors(); ++i) {
    for (BasicBlock* cut : FirstCuts(branch->getSuccessor(i), shape)) found.insert(cut);
  }
  return found.size() > 1;
}

// The branch alone becomes a region; values for the other side's phis are copied in regions of
// their own.
bool CutUniformBranch(llvm::Instruction* branch, Shape& shape) {
  BasicBlock* block = branch->getParent();
  bool alone = shape.cuts.contains(block) && block->getFirstNonPHI() == branch;
  bool changed = !alone;
  if (!alone) {
    block = block->splitBasicBlock(branch, "uniform");
    shape.cuts.insert(block);
  }
  for (unsigned i = 0; i < branch->getNumSuccessors(); ++i) {
    BasicBlock* next = branch->getSuccessor(i);
    if (shape.cuts.contains(next) && !llvm::isa<llvm::PHINode>(next->front())) continue;
    if (next->getSinglePredecessor() == block) {
      changed |= shape.cuts.insert(next);
      continue;
    }
    BasicBlock* edge = llvm::SplitEdge(block, next);
    shape.cuts.insert(edge);
    changed = true;
  }
  return changed;
}

bool CutMeetingPoint(llvm::Instruction* branch, Shape& shape, llvm::PostDominatorTree& post) {
  shape.divergent = true;
  auto* node = post.getNode(branch->getParent());
  if (node == nullptr || node->getIDom() == nullptr || node->getIDom()->getBlock() == nullptr)
    return false;
  return shape.cuts.insert(node->getIDom()->getBlock());
}

// One change at a time may move where others' paths meet.
bool CutOneBranch(Shape& shape) {
  llvm::PostDominatorTree post(*shape.function);
  for (BasicBlock& block : *shape.function) {
    llvm::Instruction* branch = block.getTerminator();
    if (&block == shape.prologue || branch->getNumSuccessors() < 2 || !ChoosesRegion(branch, shape))
      continue;
    if (shape.divergent_branches.contains(branch)) {
      if (CutMeetingPoint(branch, shape, post)) return true;
    } else if (CutUniformBranch(branch, shape)) {
      return true;
    }
  }
  return false;
}

void CollectBlocks(Region& region, const Shape& shape) {
  llvm::SetVector<BasicBlock*> seen;
  llvm::SetVector<int> exits;
  seen.insert(region.start);
  for (size_t i = 0; i < seen.size(); ++i) {
    for (BasicBlock* next : llvm::successors(seen[i])) {
      auto found = shape.region_of.find(next);
      if (found == shape.region_of.end()) {
        seen.insert(next);
      } else {
        exits.insert(found->second);
      }
    }
  }
  region.blocks.assign(seen.begin(), seen.end());
  region.exits.assign(exits.begin(), exits.end());
}

void ListRegions(Shape& shape) {
  llvm::DominatorTree dominators(*shape.function);
  llvm::LoopInfo loops(dominators);
  llvm::ReversePostOrderTraversal<llvm::Function*> order(shape.function);
  unsigned position = 0;
  for (BasicBlock* block : order) {
    ++position;
    if (!shape.cuts.contains(block)) continue;
    shape.region_of[block] = static_cast<int>(shape.regions.size());
    Region region{.start = block, .depth = loops.getLoopDepth(block), .order = position};
    if (auto found = shape.clears.find(block); found != shape.clears.end())
      region.clears = found->second;
    shape.regions.push_back(std::move(region));
  }
  for (Region& region : shape.regions) CollectBlocks(region, shape);
  if (shape.exit != nullptr) shape.exit_region = shape.region_of[shape.exit];
}

}  // namespace

absl::Status FindRegions(Shape& shape) {
  {
    llvm::DominatorTree dominators(*shape.function);
    llvm::LoopInfo loops(dominators);
    llvm::ReversePostOrderTraversal<llvm::Function*> order(shape.function);
    bool irreducible = llvm::containsIrreducibleCFG<BasicBlock*>(order, loops);
    if (irreducible && !shape.cuts.empty()) {
      return absl::UnimplementedError(
          "the CPU device has no barriers in loops with several entries (goto)");
    }
    if (!irreducible) CutLoops(shape);
  }
  shape.cuts.insert(shape.entry);
  if (shape.exit != nullptr) shape.cuts.insert(shape.exit);
  while (CutOneBranch(shape)) {
  }
  ListRegions(shape);
  if (shape.divergent && shape.regions.size() > kMaxDivergentRegions) {
    return absl::UnimplementedError(
        "the CPU device has no kernels with divergent control around more than 62 barriers");
  }
  return absl::OkStatus();
}

}  // namespace stride::cpu::spmd
