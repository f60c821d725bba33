// Inline PTX: its parser, its constraints, and that none of it reaches the CPU's assembler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpucuda/compiler/asm_constraints.h"
#include "cpucuda/compiler/ptx_text.h"
#include "tests/unit/cpucuda/compiler/build_kernel.h"

namespace stride::cpucuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PtxText, StatementsAreParsed) {
  const auto all = ParsePtx(
      "$(\n\t.reg .u32 a<2>; // two\n\t@!p mad.lo.u32 $0, %tid.x, 4, a0;\n"
      "ld.shared.v2.f32 {f0, f1}, [$1 + 8]; /* pair */ bar.sync 0 $)");
  ASSERT_EQ(all.size(), 4u);
  EXPECT_THAT(all[0].opcode, ElementsAre(".reg", "u32"));
  EXPECT_EQ(all[0].operands[0].parts[0], "a<2>");
  EXPECT_EQ(all[1].guard, "p");
  EXPECT_TRUE(all[1].guard_negated);
  EXPECT_THAT(all[1].opcode, ElementsAre("mad", "lo", "u32"));
  ASSERT_EQ(all[1].operands.size(), 4u);
  EXPECT_EQ(all[1].operands[1].parts[0], "%tid.x");
  EXPECT_TRUE(all[2].operands[0].is_vector);
  EXPECT_THAT(all[2].operands[0].parts, ElementsAre("f0", "f1"));
  EXPECT_TRUE(all[2].operands[1].is_address);
  EXPECT_EQ(all[2].operands[1].parts[0], "$1");
  EXPECT_EQ(all[2].operands[1].offset, "+8");
  EXPECT_THAT(all[3].opcode, ElementsAre("bar", "sync"));
  EXPECT_TRUE(ParsePtx("").empty());
  EXPECT_TRUE(ParsePtx(" ; $( $) \n").empty());
}

TEST(AsmConstraints, OnlyConstraintsAreRewritten) {
  EXPECT_EQ(WithHostConstraints("asm(\"add.f32 %0, %1;\" : \"=f\"(f) : \"f\"(\"fd\"[0]))"),
            "asm(\"add.f32 %0, %1;\" : \"=x\"(f) : \"x\"(\"fd\"[0]))");
  EXPECT_EQ(
      WithHostConstraints("__asm__ __volatile__ (\"\" : \"+d\"(d), \"=h\" (h) :: \"memory\")"),
      "__asm__ __volatile__ (\"\" : \"+x\"(d), \"=r\" (h) :: \"memory\")");
  for (const char* same : {"int asm_f(\"f\"(x));", "plasma(\"f\" : \"f\"(x))", "f(\"f\"(d))",
                           "asm(\"unclosed", "asm"}) {
    EXPECT_EQ(WithHostConstraints(same), same);
  }
}

// Text that is not PTX would be instructions of the CPU.
TEST(InlinePtx, PtxIsNeverAssembledForTheCpu) {
  const char* sources[] = {
      "__global__ void k(int* p) { asm volatile(\"syscall\"); }",
      "__global__ void k(int* p) { asm volatile(\".byte 0x0f, 0x05;\"); }",
      "__device__ void f() { asm volatile(\"int3;\"); }\n__global__ void k(int* p) { f(); }",
      "__global__ void k(int* p) { asm goto(\"jmp %l0\" :::: out); out: p[0] = 1; }",
      "__global__ void k(int* p) { int x; asm(\"mov.u32 %0, 1;\" : \"=m\"(x)); p[0] = x; }",
      "__global__ void k(int* p) { register int x asm(\"rsp\"); asm(\"mov.u32 %0, 1;\" : "
      "\"+r\"(x)); asm(\"ret\"); }",
  };
  for (const char* source : sources) {
    const absl::Status status = Build(source).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << source << "\n" << status;
  }
  // Outside of functions there is no device code: such PTX is omitted.
  Loaded outside = Build("asm(\"k_alias = 1\");\n__global__ void k(int* p) { p[0] = 1; }");
  ASSERT_TRUE(outside.status.ok()) << outside.status;
  EXPECT_EQ(outside.module->Symbol("k_alias"), nullptr);
  CompileRequest loops{.source = "extern \"C\" void f(void**, long, long) { asm(\"syscall\"); }",
                       .kind = SourceKind::kNativeLoops,
                       .entries = {"f"}};
  EXPECT_EQ(Compile(loops).status().code(), absl::StatusCode::kUnimplemented);
}

// PTX ISA, "Integer Arithmetic Instructions: bfind".
TEST(InlinePtx, BfindFindsTheHighestBit) {
  Loaded loaded = Build(R"(__global__ void k(long long* p) {
  int in = (int)p[threadIdx.x];
  long long wide = p[threadIdx.x];
  int out[5];
  asm("bfind.u32 %0, %1;" : "=r"(out[0]) : "r"(in));
  asm("bfind.s32 %0, %1;" : "=r"(out[1]) : "r"(in));
  asm("bfind.shiftamt.u32 %0, %1;" : "=r"(out[2]) : "r"(in));
  asm("bfind.u64 %0, %1;" : "=r"(out[3]) : "l"(wide));
  asm("bfind.shiftamt.s64 %0, %1;" : "=r"(out[4]) : "l"(wide));
  for (int i = 0; i < 5; ++i) p[4 + 5 * threadIdx.x + i] = out[i];
})");
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  int64_t p[4 + 20] = {1, 0, -1, -256};
  int64_t* argument = p;
  ThreadPool pool(1);
  ASSERT_TRUE(Launch(pool, loaded.entry, {{1, 1, 1}, {4, 1, 1}}, &argument, nullptr).ok());
  EXPECT_THAT(std::vector<int64_t>(p + 4, p + 24),
              testing::ElementsAre(0, 0, 31, 0, 63, -1, -1, -1, -1, -1, 31, -1, 0, 63, -1, 31, 7, 0,
                                   63, 56));
}

TEST(InlinePtx, FaultingDivisionsAreDefined) {
  Loaded loaded = Build(R"(__global__ void k(int* p) {
  asm("div.s32 %0, %1, %2;" : "=r"(p[0]) : "r"(p[4]), "r"(p[5]));
  asm("rem.u32 %0, %1, %2;" : "=r"(p[1]) : "r"(p[4]), "r"(p[6]));
  asm("div.s32 %0, %1, %2;" : "=r"(p[2]) : "r"(7), "r"(-2));
  asm("shl.b32 %0, %1, %2;" : "=r"(p[3]) : "r"(1), "r"(40));
})");
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  int p[8] = {0, 0, 0, 9, static_cast<int>(0x80000000u), -1, 0, 0};
  int* argument = p;
  ThreadPool pool(1);
  ASSERT_TRUE(Launch(pool, loaded.entry, {{1, 1, 1}, {1, 1, 1}}, &argument, nullptr).ok());
  EXPECT_EQ(p[0], static_cast<int>(0x80000000u));
  EXPECT_EQ(p[2], -3);
  EXPECT_EQ(p[3], 0);
}

}  // namespace
}  // namespace stride::cpucuda
