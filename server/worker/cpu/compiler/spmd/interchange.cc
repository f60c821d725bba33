#include "server/worker/cpu/compiler/spmd/interchange.h"

#include <optional>

#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

namespace stride::cpu::spmd {
namespace {

using llvm::Instruction;
using llvm::Value;

constexpr int kMaxDepth = 12;

// How much `value` grows from one thread to its neighbour in x; nothing when that is not a known
// constant.
class XCoefficient {
 public:
  explicit XCoefficient(const Shape& shape) : shape_(shape) {}

  std::optional<int64_t> Of(const Value* value, int depth = 0) {
    if (!shape_.IsVarying(value)) return 0;
    const auto* instruction = llvm::dyn_cast<Instruction>(value);
    if (instruction == nullptr || depth > kMaxDepth) return std::nullopt;
    if (instruction == shape_.thread[0] || instruction == shape_.thread[3]) return 1;
    if (instruction == shape_.thread[1] || instruction == shape_.thread[2]) return 0;
    if (llvm::isa<llvm::CastInst>(instruction)) return Of(instruction->getOperand(0), depth + 1);
    if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(instruction)) return OfPhi(phi, depth);
    if (const auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(instruction))
      return OfBinary(binary, depth);
    if (const auto* address = llvm::dyn_cast<llvm::GEPOperator>(instruction))
      return OfAddress(address, depth);
    return std::nullopt;
  }

 private:
  std::optional<int64_t> OfBinary(const llvm::BinaryOperator* binary, int depth) {
    auto a = Of(binary->getOperand(0), depth + 1);
    auto b = Of(binary->getOperand(1), depth + 1);
    if (!a || !b) return std::nullopt;
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(binary->getOperand(1));
    switch (binary->getOpcode()) {
      case Instruction::Add:
        return *a + *b;
      case Instruction::Sub:
        return *a - *b;
      case Instruction::Or:
        if (const auto* disjoint = llvm::dyn_cast<llvm::PossiblyDisjointInst>(binary);
            disjoint != nullptr && disjoint->isDisjoint()) {
          return *a + *b;
        }
        break;
      case Instruction::Mul:
        if (constant != nullptr) return *a * constant->getSExtValue();
        break;
      case Instruction::Shl:
        if (constant != nullptr && constant->getZExtValue() < 32)
          return *a << constant->getZExtValue();
        break;
      default:
        break;
    }
    if (*a == 0 && *b == 0) return 0;
    return std::nullopt;
  }
  // A counter that starts at its own place in each thread and moves by the same step.
  std::optional<int64_t> OfPhi(const llvm::PHINode* phi, int depth) {
    std::optional<int64_t> result;
    for (const Value* incoming : phi->incoming_values()) {
      const auto* step = llvm::dyn_cast<llvm::Instruction>(incoming);
      bool own_step =
          step != nullptr && step->getNumOperands() >= 2 &&
          (llvm::isa<llvm::BinaryOperator>(step) || llvm::isa<llvm::GEPOperator>(step)) &&
          ((step->getOperand(0) == phi && !shape_.IsVarying(step->getOperand(1))) ||
           (step->getOperand(1) == phi && !shape_.IsVarying(step->getOperand(0))));
      if (own_step) continue;
      auto start = Of(incoming, depth + 1);
      if (!start || (result && *result != *start)) return std::nullopt;
      result = start;
    }
    return result;
  }
  std::optional<int64_t> OfAddress(const llvm::GEPOperator* address, int depth) {
    auto sum = Of(address->getPointerOperand(), depth + 1);
    if (!sum) return std::nullopt;
    const llvm::DataLayout& layout = shape_.function->getParent()->getDataLayout();
    for (auto at = llvm::gep_type_begin(address); at != llvm::gep_type_end(address); ++at) {
      auto part = Of(at.getOperand(), depth + 1);
      if (!part) return std::nullopt;
      if (*part != 0)
        *sum += *part * static_cast<int64_t>(at.getSequentialElementStride(layout).getFixedValue());
    }
    return sum;
  }
  const Shape& shape_;
};

}  // namespace

bool WantsInterchange(const llvm::Loop& loop, const Shape& shape) {
  const llvm::DataLayout& layout = shape.function->getParent()->getDataLayout();
  int contiguous = 0, scattered = 0;
  for (llvm::BasicBlock* block : loop.blocks()) {
    for (Instruction& instruction : *block) {
      if (instruction.isAtomic() || instruction.hasMetadata(kSerial)) return false;
      if (llvm::isa<llvm::CallBase>(instruction) && instruction.mayReadOrWriteMemory())
        return false;
      const Value* pointer = llvm::getLoadStorePointerOperand(&instruction);
      if (pointer == nullptr || instruction.isVolatile()) continue;
      auto step = XCoefficient(shape).Of(pointer);
      auto size = layout.getTypeStoreSize(llvm::getLoadStoreType(&instruction)).getFixedValue();
      if (step && *step == static_cast<int64_t>(size)) {
        ++contiguous;
      } else if (!step || *step != 0) {
        ++scattered;
      }
    }
  }
  return contiguous > scattered;
}

}  // namespace stride::cpu::spmd
