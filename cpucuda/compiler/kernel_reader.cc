#include "cpucuda/compiler/kernel_reader.h"

#include "absl/strings/str_cat.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/Attr.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Basic/SourceManager.h"
#include "cpucuda/compiler/name_expressions.h"
#include "cpucuda/compiler/own_names.h"

namespace stride::cpucuda {
namespace {

std::string SpelledName(const clang::NamedDecl& declaration) {
  return OwnNames::AsSpelled(declaration.getQualifiedNameAsString());
}

bool IsKernel(const clang::FunctionDecl* function) {
  for (const auto* mark : function->specific_attrs<clang::AnnotateAttr>()) {
    if (mark->getAnnotation() == "stride.kernel") return true;
  }
  return false;
}

bool IsEntry(const clang::FunctionDecl* function, SourceKind kind) {
  if (!function->isThisDeclarationADefinition() || function->isDependentContext()) return false;
  if (function->getTemplatedKind() == clang::FunctionDecl::TK_FunctionTemplateSpecialization)
    return false;
  if (kind == SourceKind::kNativeLoops) {
    const clang::SourceManager& sources = function->getASTContext().getSourceManager();
    return function->isExternC() && sources.isInMainFile(function->getLocation());
  }
  return IsKernel(function);
}

// Whether launches may set the variable.
bool IsSettable(const clang::VarDecl* variable) {
  const bool on_device =
      variable->hasAttr<clang::CUDADeviceAttr>() || variable->hasAttr<clang::CUDAConstantAttr>();
  return on_device && !variable->hasAttr<clang::CUDASharedAttr>() && variable->hasGlobalStorage() &&
         !variable->isStaticLocal();
}

class Lister : public clang::RecursiveASTVisitor<Lister> {
 public:
  explicit Lister(SourceKind kind) : kind_(kind) {}
  bool VisitFunctionDecl(clang::FunctionDecl* function) {
    if (IsEntry(function, kind_)) names.kernels.push_back(SpelledName(*function));
    return true;
  }
  bool VisitFunctionTemplateDecl(clang::FunctionTemplateDecl* made) {
    if (IsKernel(made->getTemplatedDecl())) names.templates.push_back(SpelledName(*made));
    return true;
  }
  bool VisitVarDecl(clang::VarDecl* variable) {
    // The variable of a template itself is not instantiated: it represents the template.
    const clang::SourceManager& sources = variable->getASTContext().getSourceManager();
    const bool is_instance = llvm::isa<clang::VarTemplateSpecializationDecl>(variable);
    if (IsSettable(variable) && !is_instance && sources.isInMainFile(variable->getLocation()))
      names.variables.push_back(SpelledName(*variable));
    return true;
  }
  KernelNames names;

 private:
  SourceKind kind_;
};

// The function that an entry's text mentions.
class MentionFinder : public clang::RecursiveASTVisitor<MentionFinder> {
 public:
  bool VisitDeclRefExpr(clang::DeclRefExpr* mention) {
    if (found == nullptr) found = llvm::dyn_cast<clang::FunctionDecl>(mention->getDecl());
    return true;
  }
  clang::FunctionDecl* found = nullptr;
};

// The variable that a text mentions.
class VariableFinder : public clang::RecursiveASTVisitor<VariableFinder> {
 public:
  bool VisitDeclRefExpr(clang::DeclRefExpr* mention) {
    if (found == nullptr) found = llvm::dyn_cast<clang::VarDecl>(mention->getDecl());
    return true;
  }
  clang::VarDecl* found = nullptr;
};

class Reader : public clang::RecursiveASTVisitor<Reader> {
 public:
  bool shouldVisitTemplateInstantiations() const { return true; }
  bool VisitVarDecl(clang::VarDecl* variable) {
    if (variable->hasAttr<clang::CUDASharedAttr>() && variable->hasExternalStorage()) {
      table.dynamic_shared.push_back(variable->getNameAsString());
    }
    return true;
  }
  bool VisitFunctionDecl(clang::FunctionDecl* function) {
    if (!function->hasBody() || !function->getDeclName().isIdentifier()) return true;
    if (function->getName().starts_with(kEntryPrefix) ||
        function->getName().starts_with(kGlobalPrefix)) {
      entries.emplace_back(function->getName().str(), function);
    }
    return true;
  }
  KernelTable table;
  std::vector<std::pair<std::string, clang::FunctionDecl*>> entries;
};

clang::PrintingPolicy Policy(clang::ASTContext& context) {
  clang::PrintingPolicy policy(context.getLangOpts());
  policy.SuppressTagKeyword = true;
  policy.Bool = true;
  return policy;
}

// "const int *" in the usual spelling: "const int*".
std::string Spell(clang::QualType type, clang::ASTContext& context) {
  std::string text = OwnNames::AsSpelled(type.getAsString(Policy(context)));
  for (size_t at; (at = text.find(" *")) != std::string::npos;) text.erase(at, 1);
  return text;
}

KernelParameter Describe(clang::QualType type, clang::ASTContext& context) {
  KernelParameter parameter;
  clang::QualType canonical = type.getCanonicalType().getUnqualifiedType();
  parameter.type = Spell(type, context);
  parameter.size = context.getTypeSizeInChars(type).getQuantity();
  parameter.alignment = context.getTypeAlignInChars(type).getQuantity();
  if (canonical->isPointerType()) {
    clang::QualType pointee = canonical->getPointeeType();
    parameter.kind = KernelParameter::Kind::kPointer;
    parameter.pointee_const = pointee.isConstQualified();
    parameter.pointee = Spell(pointee.getUnqualifiedType(), context);
    parameter.is_signed = pointee->isSignedIntegerOrEnumerationType();
  } else if (canonical->isIntegralOrEnumerationType()) {
    parameter.kind = KernelParameter::Kind::kInteger;
    parameter.is_signed = canonical->isSignedIntegerOrEnumerationType();
  } else if (canonical->isFloatingType()) {
    parameter.kind = KernelParameter::Kind::kFloat;
  }
  return parameter;
}

void ReadParameters(clang::FunctionDecl* function, CompiledKernel& kernel) {
  clang::ASTContext& context = function->getASTContext();
  uint32_t offset = 0;
  for (clang::ParmVarDecl* declared : function->parameters()) {
    KernelParameter parameter = Describe(declared->getType(), context);
    offset = (offset + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
    parameter.offset = offset;
    offset += parameter.size;
    kernel.parameters.push_back(std::move(parameter));
  }
}

void ReadLaunchBounds(clang::FunctionDecl* function, CompiledKernel& kernel) {
  const auto* bounds = function->getAttr<clang::CUDALaunchBoundsAttr>();
  if (bounds == nullptr || bounds->getMaxThreads() == nullptr) return;
  clang::Expr::EvalResult value;
  if (!bounds->getMaxThreads()->EvaluateAsInt(value, function->getASTContext())) return;
  uint64_t threads = value.Val.getInt().getZExtValue();
  if (threads > 0 && threads < kernel.max_threads_per_block) kernel.max_threads_per_block = threads;
}

void ReadKernel(clang::FunctionDecl* function, CompiledKernel& kernel, KernelTable& table) {
  if (!IsKernel(function)) {
    table.error = absl::StrCat("`", kernel.name, "` is not a __global__ function");
    return;
  }
  for (clang::ParmVarDecl* parameter : function->parameters()) {
    if (parameter->getType()->isReferenceType()) {
      table.error = absl::StrCat("kernel `", kernel.name, "` takes a reference, `",
                                 OwnNames::AsSpelled(parameter->getType().getAsString()),
                                 "`; a kernel's parameters are values and pointers");
      return;
    }
  }
  ReadParameters(function, kernel);
  ReadLaunchBounds(function, kernel);
}

void ReadGlobal(clang::FunctionDecl* function, CompiledGlobal& global, KernelTable& table) {
  VariableFinder finder;
  finder.TraverseStmt(function->getBody());
  if (finder.found == nullptr || !IsSettable(finder.found)) {
    table.error = absl::StrCat("`", global.name, "` is not a __constant__ or __device__ variable");
    return;
  }
  clang::ASTContext& context = function->getASTContext();
  const clang::QualType type = finder.found->getType().getCanonicalType();
  global.size = context.getTypeSizeInChars(type).getQuantity();
  global.constant = finder.found->hasAttr<clang::CUDAConstantAttr>();
  global.element = Spell(context.getBaseElementType(type).getUnqualifiedType(), context);
}

}  // namespace

KernelNames ListKernels(clang::ASTContext& context, SourceKind kind) {
  Lister lister(kind);
  lister.TraverseDecl(context.getTranslationUnitDecl());
  return std::move(lister.names);
}

KernelTable ReadKernels(clang::ASTContext& context, SourceKind kind,
                        const std::vector<std::string>& names,
                        const std::vector<std::string>& globals) {
  Reader reader;
  reader.TraverseDecl(context.getTranslationUnitDecl());
  for (size_t i = 0; i < names.size(); ++i) {
    CompiledKernel kernel{.name = names[i], .symbol = EntrySymbol(i)};
    if (kind == SourceKind::kNativeLoops) {
      kernel.symbol = names[i];
    } else {
      for (auto& [symbol, entry] : reader.entries) {
        if (symbol != kernel.symbol) continue;
        MentionFinder finder;
        finder.TraverseStmt(entry->getBody());
        if (finder.found != nullptr) ReadKernel(finder.found, kernel, reader.table);
      }
    }
    reader.table.kernels.push_back(std::move(kernel));
  }
  for (size_t i = 0; i < globals.size(); ++i) {
    CompiledGlobal global{.name = globals[i]};
    for (auto& [symbol, mention] : reader.entries) {
      if (symbol == GlobalSymbol(i)) ReadGlobal(mention, global, reader.table);
    }
    reader.table.globals.push_back(std::move(global));
  }
  return std::move(reader.table);
}

}  // namespace stride::cpucuda
