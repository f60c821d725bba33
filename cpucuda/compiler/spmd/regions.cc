#include "cpucuda/compiler/spmd/regions.h"

#include "cpucuda/compiler/spmd/induction.h"
#include "cpucuda/compiler/spmd/interchange.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace stride::cpucuda::spmd {
namespace {

using llvm::BasicBlock;

// A thread's next region is a byte.
constexpr size_t kMaxDivergentRegions = 256;

bool ContainsCut(const llvm::Loop& loop, const Shape& shape) {
  for (BasicBlock* block : loop.blocks()) {
    // A cut at the header alone may be the end of the code before the loop.
    if (block != loop.getHeader() && shape.cuts.contains(block)) return true;
  }
  return shape.cuts.contains(loop.getHeader());
}

bool CutLoop(const llvm::Loop& loop, Shape& shape) {
  bool changed = shape.cuts.insert(loop.getHeader());
  llvm::SmallVector<BasicBlock*, 4> exits;
  loop.getExitBlocks(exits);
  for (BasicBlock* exit : exits) {
    if (!llvm::isa<llvm::UnreachableInst>(exit->getTerminator()))
      changed |= shape.cuts.insert(exit);
  }
  return changed;
}

// A loop with a cut in it is also cut at its header. Otherwise a region could extend into the next
// round and hold a block twice, with values of both rounds. Innermost loops come first: a cut in a
// loop is a cut in the loops around it.
bool CutLoops(Shape& shape) {
  bool changed = false;
  llvm::DominatorTree dominators(*shape.function);
  llvm::LoopInfo loops(dominators);
  llvm::SmallVector<llvm::Loop*, 4> outermost_first = loops.getLoopsInPreorder();
  for (llvm::Loop* loop : llvm::reverse(outermost_first)) {
    const bool interchange =
        !ContainsCut(*loop, shape) && loop->isInnermost() && WantsInterchange(*loop, shape);
    if (interchange) SplitCounters(*loop, shape);
    if (interchange || ContainsCut(*loop, shape)) changed |= CutLoop(*loop, shape);
  }
  return changed;
}

// The block where the paths from `branch` meet again; null when some of them never end.
BasicBlock* MeetingPoint(const llvm::Instruction* branch, const llvm::PostDominatorTree& post) {
  auto* node = post.getNode(branch->getParent());
  return node == nullptr || node->getIDom() == nullptr ? nullptr : node->getIDom()->getBlock();
}

// The cuts that a thread may reach first from `branch` on, up to and including the end of the
// search.
llvm::SetVector<BasicBlock*> FirstCuts(const llvm::Instruction* branch, BasicBlock* end,
                                       const Shape& shape) {
  llvm::SetVector<BasicBlock*> found;
  llvm::SetVector<BasicBlock*> seen;
  for (unsigned i = 0; i < branch->getNumSuccessors(); ++i) seen.insert(branch->getSuccessor(i));
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] == end || shape.cuts.contains(seen[i])) {
      found.insert(seen[i]);
    } else {
      for (BasicBlock* next : llvm::successors(seen[i])) seen.insert(next);
    }
  }
  return found;
}

// After the meeting point another branch chooses.
bool ChoosesRegion(const llvm::Instruction* branch, BasicBlock* meeting, const Shape& shape) {
  return FirstCuts(branch, meeting, shape).size() > 1;
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

bool CutMeetingPoint(BasicBlock* meeting, Shape& shape) {
  shape.divergent = true;
  return meeting != nullptr && shape.cuts.insert(meeting);
}

// One change may move the meeting points of other branches, so branches change one at a time.
// Branches whose paths may never meet (one ends in a failed assertion) come last, in reverse order:
// cuts at the other branches resolve most of them.
bool CutOneBranch(Shape& shape) {
  llvm::PostDominatorTree post(*shape.function);
  for (bool meets : {true, false}) {
    for (BasicBlock* block : llvm::post_order(shape.function)) {
      llvm::Instruction* branch = block->getTerminator();
      if (block == shape.prologue || branch->getNumSuccessors() < 2) continue;
      BasicBlock* meeting = MeetingPoint(branch, post);
      if ((meeting != nullptr) != meets || !ChoosesRegion(branch, meeting, shape)) continue;
      const bool divergent = shape.divergent_branches.contains(branch);
      if (divergent ? CutMeetingPoint(meeting, shape) : CutUniformBranch(branch, shape))
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

bool IsIrreducible(llvm::Function& function) {
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  llvm::ReversePostOrderTraversal<llvm::Function*> order(&function);
  return llvm::containsIrreducibleCFG<BasicBlock*>(order, loops);
}

}  // namespace

absl::Status FindRegions(Shape& shape) {
  const bool irreducible = IsIrreducible(*shape.function);
  if (irreducible && !shape.cuts.empty()) {
    return absl::UnimplementedError(
        "the CPU device has no barriers in loops with several entries (goto)");
  }
  if (!irreducible) CutLoops(shape);
  shape.cuts.insert(shape.entry);
  if (shape.exit != nullptr) shape.cuts.insert(shape.exit);
  while (CutOneBranch(shape) || (!irreducible && CutLoops(shape))) {
  }
  ListRegions(shape);
  if (shape.divergent && shape.regions.size() > kMaxDivergentRegions) {
    return absl::UnimplementedError(
        "the CPU device has no kernels with divergent control around more than 255 barriers");
  }
  return absl::OkStatus();
}

}  // namespace stride::cpucuda::spmd
