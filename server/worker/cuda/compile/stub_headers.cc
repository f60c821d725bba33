#include "server/worker/cuda/compile/stub_headers.h"

#include "server/worker/cuda/compile/groups_header.h"

namespace stride::cuda {
namespace {

// Functions such as printf, malloc and sqrt are built into NVRTC.
constexpr char kEmpty[] = "#pragma once\n";

// Under NVRTC libcu++ defines these itself and conflicts with a second definition.
constexpr char kLimits[] = R"(#pragma once
#if __cplusplus >= 201703L && __has_include(<cuda/std/climits>)
#include <cuda/std/climits>
#else
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MIN (-9223372036854775807L - 1)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
#endif
)";

constexpr char kFloat[] = R"(#pragma once
#define FLT_RADIX 2
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_EPSILON 1.192092896e-07F
#define FLT_MIN 1.175494351e-38F
#define FLT_MAX 3.402823466e+38F
#define DBL_DIG 15
#define DBL_MANT_DIG 53
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_MIN 2.2250738585072014e-308
#define DBL_MAX 1.7976931348623157e+308
)";

constexpr char kMath[] = R"(#pragma once
#ifndef M_PI
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000LL)
#define HUGE_VALF INFINITY
#endif
)";

constexpr char kInteger[] = R"(#pragma once
#if __cplusplus >= 201703L && __has_include(<cuda/std/cstdint>)
#include <cuda/std/cstdint>
#else
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef signed char int_least8_t;
typedef short int_least16_t;
typedef int int_least32_t;
typedef long int_least64_t;
typedef unsigned char uint_least8_t;
typedef unsigned short uint_least16_t;
typedef unsigned int uint_least32_t;
typedef unsigned long uint_least64_t;
typedef signed char int_fast8_t;
typedef long int_fast16_t;
typedef long int_fast32_t;
typedef long int_fast64_t;
typedef unsigned char uint_fast8_t;
typedef unsigned long uint_fast16_t;
typedef unsigned long uint_fast32_t;
typedef unsigned long uint_fast64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef long intmax_t;
typedef unsigned long uintmax_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295U
#define INT64_MIN (-9223372036854775807L - 1)
#define INT64_MAX 9223372036854775807L
#define UINT64_MAX 18446744073709551615UL
#define SIZE_MAX UINT64_MAX
#define INT64_C(c) c##L
#define UINT64_C(c) c##UL
#endif
)";

constexpr char kInteger_std[] = R"(#pragma once
#include <stdint.h>
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t; using ::intmax_t; using ::uintmax_t;
}
)";

constexpr char kDef[] = R"(#pragma once
typedef long ptrdiff_t;
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
)";

constexpr char kDef_std[] = R"(#pragma once
#include <stddef.h>
namespace std {
using ::size_t; using ::ptrdiff_t;
typedef decltype(nullptr) nullptr_t;
}
)";

constexpr char kMath_std[] = R"(#pragma once
#include <math.h>
namespace std {
using ::abs; using ::fabs; using ::sqrt; using ::cbrt; using ::exp; using ::exp2; using ::expm1;
using ::log; using ::log2; using ::log10; using ::log1p; using ::pow; using ::hypot;
using ::sin; using ::cos; using ::tan; using ::asin; using ::acos; using ::atan; using ::atan2;
using ::sinh; using ::cosh; using ::tanh; using ::asinh; using ::acosh; using ::atanh;
using ::floor; using ::ceil; using ::trunc; using ::round; using ::rint; using ::nearbyint;
using ::fmod; using ::remainder; using ::copysign; using ::fmin; using ::fmax; using ::fma;
using ::erf; using ::erfc; using ::tgamma; using ::lgamma; using ::ldexp; using ::frexp; using ::modf;
}
)";

constexpr char kBool[] = R"(#pragma once
#define __bool_true_false_are_defined 1
)";

// NVRTC has no standard library, and the toolkit's has another name. A using-directive gives
// NVRTC's own std::move and similar functions precedence.
#define STRIDE_STD(name)                                       \
  {                                                            \
#name, "#pragma once\n#include <cuda/std/" #name           \
           ">\nnamespace std { using namespace cuda::std; }\n" \
  }
constexpr char kAlgorithm[] = R"(#pragma once
#if __has_include(<cuda/std/algorithm>)
#include <cuda/std/algorithm>
#else
#include <cuda/std/utility>
#include <cuda/std/functional>
#include <cuda/std/array>
#endif
namespace std { using namespace cuda::std; }
)";

// CUB's umbrella header includes its device-wide algorithms, which are host code, too. CUB 3 has
// removed operators that older kernels use.
constexpr char kCub[] = R"(#pragma once
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>
#include <cub/thread/thread_load.cuh>
#include <cub/thread/thread_operators.cuh>
#include <cub/thread/thread_store.cuh>
#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_load.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cub/warp/warp_store.cuh>
#include <cub/version.cuh>
#if CUB_VERSION >= 300000
namespace cub {
struct Sum {
  template <class A, class B> __device__ auto operator()(const A& a, const B& b) const {
    return a + b;
  }
};
struct Max {
  template <class T> __device__ T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
struct Min {
  template <class T> __device__ T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
struct Equality {
  template <class A, class B> __device__ bool operator()(const A& a, const B& b) const {
    return a == b;
  }
};
struct Inequality {
  template <class A, class B> __device__ bool operator()(const A& a, const B& b) const {
    return a != b;
  }
};
}
#endif
)";

// Sources include these for their types and operators; kernels call none of the algorithms.
constexpr char kCubDevice[] = R"(#pragma once
#include <cub/cub.cuh>
)";

constexpr char kGroupsPart[] = R"(#pragma once
#include <cooperative_groups.h>
)";

struct Header {
  const char* name;
  const char* text;
};
constexpr Header kHeaders[] = {
    {"stdio.h", kEmpty},
    {"cstdio", kEmpty},
    {"stdlib.h", kDef},
    {"cstdlib", kDef},
    {"string.h", kDef},
    {"cstring", kDef},
    {"assert.h", kEmpty},
    {"cassert", kEmpty},
    {"time.h", kEmpty},
    {"ctime", kEmpty},
    {"stdbool.h", kBool},
    {"iostream", kEmpty},
    {"math.h", kMath},
    {"cmath", kMath_std},
    {"float.h", kFloat},
    {"cfloat", kFloat},
    {"limits.h", kLimits},
    {"climits", kLimits},
    {"stdint.h", kInteger},
    {"cstdint", kInteger_std},
    {"inttypes.h", kInteger},
    {"cinttypes", kInteger_std},
    {"stddef.h", kDef},
    {"cstddef", kDef_std},
    {"cuda_runtime.h", kEmpty},
    {"cuda_runtime_api.h", kEmpty},
    {"cuda.h", kEmpty},
    {"device_launch_parameters.h", kEmpty},
    {"new", kEmpty},
    {"vector_types.h", kEmpty},
    {"initializer_list", kEmpty},
    {"device_functions.h", kEmpty},
    {"algorithm", kAlgorithm},
    {"cub/cub.cuh", kCub},
    {"cub/device/device_adjacent_difference.cuh", kCubDevice},
    {"cub/device/device_copy.cuh", kCubDevice},
    {"cub/device/device_for.cuh", kCubDevice},
    {"cub/device/device_histogram.cuh", kCubDevice},
    {"cub/device/device_memcpy.cuh", kCubDevice},
    {"cub/device/device_merge.cuh", kCubDevice},
    {"cub/device/device_merge_sort.cuh", kCubDevice},
    {"cub/device/device_partition.cuh", kCubDevice},
    {"cub/device/device_radix_sort.cuh", kCubDevice},
    {"cub/device/device_reduce.cuh", kCubDevice},
    {"cub/device/device_run_length_encode.cuh", kCubDevice},
    {"cub/device/device_scan.cuh", kCubDevice},
    {"cub/device/device_segmented_radix_sort.cuh", kCubDevice},
    {"cub/device/device_segmented_reduce.cuh", kCubDevice},
    {"cub/device/device_segmented_sort.cuh", kCubDevice},
    {"cub/device/device_select.cuh", kCubDevice},
    {"cub/device/device_transform.cuh", kCubDevice},
    STRIDE_STD(array),
    STRIDE_STD(atomic),
    STRIDE_STD(bit),
    STRIDE_STD(complex),
    STRIDE_STD(functional),
    STRIDE_STD(iterator),
    STRIDE_STD(limits),
    STRIDE_STD(numeric),
    STRIDE_STD(tuple),
    STRIDE_STD(type_traits),
    STRIDE_STD(utility),
};

StubHeaders* Make(bool groups) {
  auto* made = new StubHeaders;
  for (const Header& header : kHeaders) {
    made->names.push_back(header.name);
    made->texts.push_back(header.text);
  }
  if (!groups) return made;
  made->names.insert(made->names.end(), {"cooperative_groups.h", "cooperative_groups/reduce.h"});
  made->texts.insert(made->texts.end(), {GroupsHeader(), kGroupsPart});
  return made;
}

}  // namespace

const StubHeaders& StubHeaders::Get() {
  static const StubHeaders* const headers = Make(/*groups=*/true);
  return *headers;
}

const StubHeaders& StubHeaders::WithoutGroups() {
  static const StubHeaders* const headers = Make(/*groups=*/false);
  return *headers;
}

}  // namespace stride::cuda
