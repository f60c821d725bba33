#include "server/worker/cuda/compile/kernel_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stride::cuda {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(GuessKernelNamesTest, FindsKernels) {
  EXPECT_THAT(GuessKernelNames(R"(
#define UNRELATED __global__ void macro() {}
// __global__ void comment() {}
/* __global__ void block() {} */
const char* text = "__global__ void literal() {}";
extern "C" __global__ void first(int* p) { p[0] = '"'; }
extern "C" { __global__ void __launch_bounds__(128, 2) second(float) {} }
namespace a { namespace b { __device__ int f() { return 1; } static __global__ void third() {} } }
__global__
void
fourth(int n);
__global__ void fourth(int n) {}
template <class T> __global__ void generic(T) {}
struct S { int x; };
void __global__ fifth() {}
)"),
              ElementsAre("first", "second", "a::b::third", "fourth", "fifth"));
}

TEST(GuessTemplateNamesTest, FindsOnlyTemplates) {
  EXPECT_THAT(GuessTemplateNames(R"(
__global__ void plain() {}
template <class T> __global__ void first(T) {}
namespace a { template <typename T, int N> __global__ void __launch_bounds__(64) second(T*) {} }
template <class T> __device__ T helper(T x) { return x; }
__global__ void after() {})"),
              ElementsAre("first", "a::second"));
}

TEST(GuessKernelNamesTest, SurvivesInvalidText) {
  EXPECT_THAT(GuessKernelNames(""), IsEmpty());
  EXPECT_THAT(GuessKernelNames("__global__"), IsEmpty());
  EXPECT_THAT(GuessKernelNames("__global__ void f"), IsEmpty());
  EXPECT_THAT(GuessKernelNames("}}}} __global__ ((((( \" /* '"), IsEmpty());
  EXPECT_THAT(GuessKernelNames("#define x \\"), IsEmpty());
}

TEST(NameOfSymbolTest, Demangles) {
  EXPECT_EQ(NameOfSymbol("saxpy"), "saxpy");
  EXPECT_EQ(NameOfSymbol("_Z5plainPKiPKPh6float2"), "plain");
  EXPECT_EQ(NameOfSymbol("_ZN2ns3addIfEEvPKT_PS1_3Big5ColorbxPvc"), "ns::add<float>");
  EXPECT_EQ(NameOfSymbol("_ZN12_GLOBAL__N_11fEi"), "(anonymous namespace)::f");
}

}  // namespace
}  // namespace stride::cuda
