#include "tests/fuzz/kernels/scalar.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace stride::cpucuda::fuzz {
namespace {

template <class T>
Bits Put(T value) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<uint32_t>(value);
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<uint64_t>(value);
  return static_cast<Bits>(static_cast<int64_t>(value));
}
template <class T>
T Get(Bits bits) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(bits);
  return static_cast<T>(bits);
}

// Calls f with a value of the C++ type.
template <class F>
auto With(Type type, F f) {
  switch (type) {
    case Type::kBool:
      return f(bool{});
    case Type::kU8:
      return f(uint8_t{});
    case Type::kI16:
      return f(int16_t{});
    case Type::kI32:
      return f(int32_t{});
    case Type::kU32:
      return f(uint32_t{});
    case Type::kI64:
      return f(int64_t{});
    case Type::kF32:
      return f(float{});
    case Type::kF64:
      return f(double{});
  }
  __builtin_unreachable();
}

template <class T>
Bits RealBinary(Op op, T a, T b) {
  switch (op) {
    case Op::kAdd:
      return Put<T>(a + b);
    case Op::kSub:
      return Put<T>(a - b);
    case Op::kMul:
      return Put<T>(a * b);
    case Op::kDiv:
      return Put<T>(a / b);
    case Op::kMin:
      return Put<T>(a < b ? a : b);
    case Op::kMax:
      return Put<T>(a > b ? a : b);
    default:
      __builtin_trap();
  }
}

template <class T>
Bits IntegerBinary(Op op, T a, T b) {
  using U = std::make_unsigned_t<T>;
  constexpr int kShiftMask = sizeof(T) * 8 - 1;
  const U ua = static_cast<U>(a), ub = static_cast<U>(b);
  T divisor = std::is_signed_v<T> ? static_cast<T>((b & 1023) + 1) : static_cast<T>(b | 1);
  switch (op) {
    case Op::kAdd:
      return Put<T>(static_cast<T>(ua + ub));
    case Op::kSub:
      return Put<T>(static_cast<T>(ua - ub));
    case Op::kMul:
      return Put<T>(static_cast<T>(ua * ub));
    case Op::kAddSmall:
      return Put<T>((a & 1023) + (b & 1023));
    case Op::kMulSmall:
      return Put<T>((a & 1023) * (b & 1023));
    case Op::kDiv:
      return Put<T>(a / divisor);
    case Op::kRem:
      return Put<T>(a % divisor);
    case Op::kAnd:
      return Put<T>(a & b);
    case Op::kOr:
      return Put<T>(a | b);
    case Op::kXor:
      return Put<T>(a ^ b);
    case Op::kShl:
      return Put<T>(static_cast<T>(ua << (b & kShiftMask)));
    case Op::kShr:
      return Put<T>(static_cast<T>(a >> (b & kShiftMask)));
    case Op::kMin:
      return Put<T>(a < b ? a : b);
    case Op::kMax:
      return Put<T>(a > b ? a : b);
    default:
      __builtin_trap();
  }
}

template <class T>
Bits Compare(Op op, T a, T b) {
  if (op == Op::kLess) return a < b;
  return op == Op::kLessEqual ? a <= b : a == b;
}

// Like the helper `fz_int` of the source.
template <class T>
int32_t ToInt(T x) {
  return x > T(-1000000) && x < T(1000000) ? static_cast<int32_t>(x) : 7;
}

}  // namespace

bool IsReal(Type type) { return type == Type::kF32 || type == Type::kF64; }

int SizeOf(Type type) {
  return With(type, [](auto t) { return static_cast<int>(sizeof(t)); });
}

const char* NameOf(Type type) {
  constexpr const char* kNames[] = {"bool",     "unsigned char", "short", "int",
                                    "unsigned", "long long",     "float", "double"};
  return kNames[static_cast<int>(type)];
}

Bits Cast(Type from, Type to, Bits value) {
  return With(from, [&](auto f) {
    using F = decltype(f);
    F x = Get<F>(value);
    return With(to, [&](auto t) -> Bits {
      using T = decltype(t);
      if constexpr (std::is_same_v<T, bool>) return x != F{};
      if constexpr (std::is_floating_point_v<F> && std::is_integral_v<T>)
        return Put<T>(static_cast<T>(ToInt(x)));
      return Put<T>(static_cast<T>(x));
    });
  });
}

Bits Binary(Op op, Type type, Bits a, Bits b) {
  return With(type, [&](auto t) -> Bits {
    using T = decltype(t);
    T x = Get<T>(a), y = Get<T>(b);
    if (op == Op::kLess || op == Op::kLessEqual || op == Op::kEqual) return Compare<T>(op, x, y);
    if constexpr (std::is_floating_point_v<T>) {
      return RealBinary<T>(op, x, y);
    } else if constexpr (std::is_same_v<T, bool>) {
      return op == Op::kAnd ? x && y : op == Op::kOr ? x || y : x != y;
    } else {
      return IntegerBinary<T>(op, x, y);
    }
  });
}

Bits Unary(Op op, Type type, Bits a) {
  return With(type, [&](auto t) -> Bits {
    using T = decltype(t);
    T x = Get<T>(a);
    if constexpr (std::is_floating_point_v<T>) {
      if (op == Op::kNegate) return Put<T>(-x);
      return Put<T>(op == Op::kSquareRoot ? std::sqrt(std::fabs(x)) : std::floor(x));
    } else if constexpr (std::is_same_v<T, bool>) {
      return !x;
    } else {
      using U = std::make_unsigned_t<T>;
      if (op == Op::kNegate) return Put<T>(static_cast<T>(U(0) - static_cast<U>(x)));
      if (op == Op::kNot) return Put<T>(static_cast<T>(~x));
      return static_cast<Bits>(std::popcount(static_cast<U>(x)));
    }
  });
}

Bits FusedMultiplyAdd(Type type, Bits a, Bits b, Bits c) {
  if (type == Type::kF32) return Put(std::fma(Get<float>(a), Get<float>(b), Get<float>(c)));
  return Put(std::fma(Get<double>(a), Get<double>(b), Get<double>(c)));
}

Bits ApplyAtomic(Atomic atomic, Type type, Bits old, Bits value) {
  constexpr Op kOps[] = {Op::kAdd, Op::kMin, Op::kMax, Op::kAnd, Op::kOr, Op::kXor};
  return Binary(kOps[static_cast<int>(atomic)], type, old, value);
}

Bits RealBits(Type type, Bits value) {
  bool nan = type == Type::kF32 ? std::isnan(Get<float>(value)) : std::isnan(Get<double>(value));
  if (nan) return 1;
  uint32_t bits = static_cast<uint32_t>(value);
  if (type == Type::kF64) bits ^= static_cast<uint32_t>(value >> 32);
  return Put<int32_t>(static_cast<int32_t>(bits));
}

Bits ReadArray(Type type, const void* array, int64_t index) {
  return With(type, [&](auto t) {
    std::memcpy(&t, static_cast<const char*>(array) + index * sizeof(t), sizeof(t));
    return Put<decltype(t)>(t);
  });
}

void WriteArray(Type type, void* array, int64_t index, Bits value) {
  With(type, [&](auto t) {
    t = Get<decltype(t)>(value);
    std::memcpy(static_cast<char*>(array) + index * sizeof(t), &t, sizeof(t));
  });
}

}  // namespace stride::cpucuda::fuzz
