// The standard library of kernels beyond mathematics, under std and cuda::std: traits,
// limits, pairs and tuples, arrays, function objects, algorithms on ranges, bits.
#pragma once

#include "stride_language.h"

namespace std {

// Traits.
template <class T, T v>
struct integral_constant {
  static constexpr T value = v;
  typedef T value_type;
  typedef integral_constant type;
  constexpr operator T() const noexcept { return v; }
  constexpr T operator()() const noexcept { return v; }
};
template <bool b>
using bool_constant = integral_constant<bool, b>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;

template <bool condition, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  typedef T type;
};
template <bool condition, class T = void>
using enable_if_t = typename enable_if<condition, T>::type;
template <bool condition, class T, class F>
struct conditional {
  typedef T type;
};
template <class T, class F>
struct conditional<false, T, F> {
  typedef F type;
};
template <bool condition, class T, class F>
using conditional_t = typename conditional<condition, T, F>::type;
template <class... T>
struct make_void {
  typedef void type;
};
template <class... T>
using void_t = typename make_void<T...>::type;
template <class T>
struct type_identity {
  typedef T type;
};

#define STRIDE_TRAIT(name, condition)          \
  template <class T>                           \
  struct name : bool_constant<(condition)> {}; \
  template <class T>                           \
  inline constexpr bool name##_v = (condition);
STRIDE_TRAIT(is_void, __is_void(T))
STRIDE_TRAIT(is_integral, __is_integral(T))
STRIDE_TRAIT(is_floating_point, __is_floating_point(T))
STRIDE_TRAIT(is_arithmetic, __is_arithmetic(T))
STRIDE_TRAIT(is_fundamental, __is_fundamental(T))
STRIDE_TRAIT(is_scalar, __is_scalar(T))
STRIDE_TRAIT(is_signed, __is_signed(T))
STRIDE_TRAIT(is_unsigned, __is_unsigned(T))
STRIDE_TRAIT(is_enum, __is_enum(T))
STRIDE_TRAIT(is_union, __is_union(T))
STRIDE_TRAIT(is_class, __is_class(T))
STRIDE_TRAIT(is_array, __is_array(T))
STRIDE_TRAIT(is_pointer, __is_pointer(T))
STRIDE_TRAIT(is_reference, __is_reference(T))
STRIDE_TRAIT(is_lvalue_reference, __is_lvalue_reference(T))
STRIDE_TRAIT(is_rvalue_reference, __is_rvalue_reference(T))
STRIDE_TRAIT(is_function, __is_function(T))
STRIDE_TRAIT(is_const, __is_const(T))
STRIDE_TRAIT(is_volatile, __is_volatile(T))
STRIDE_TRAIT(is_empty, __is_empty(T))
STRIDE_TRAIT(is_trivial, __is_trivial(T))
STRIDE_TRAIT(is_trivially_copyable, __is_trivially_copyable(T))
STRIDE_TRAIT(is_standard_layout, __is_standard_layout(T))
STRIDE_TRAIT(is_default_constructible, __is_constructible(T))
STRIDE_TRAIT(is_copy_constructible, __is_constructible(T, const T&))
STRIDE_TRAIT(is_move_constructible, __is_constructible(T, T))
STRIDE_TRAIT(is_trivially_default_constructible, __is_trivially_constructible(T))
#define STRIDE_TRAIT2(name, condition)         \
  template <class A, class B>                  \
  struct name : bool_constant<(condition)> {}; \
  template <class A, class B>                  \
  inline constexpr bool name##_v = (condition);
STRIDE_TRAIT2(is_same, __is_same(A, B))
STRIDE_TRAIT2(is_base_of, __is_base_of(A, B))
STRIDE_TRAIT2(is_convertible, __is_convertible(A, B))
STRIDE_TRAIT2(is_assignable, __is_assignable(A, B))
template <class T, class... A>
struct is_constructible : bool_constant<__is_constructible(T, A...)> {};
template <class T, class... A>
inline constexpr bool is_constructible_v = __is_constructible(T, A...);
template <class...>
struct conjunction : true_type {};
template <class A, class... B>
struct conjunction<A, B...> : conditional_t<bool(A::value), conjunction<B...>, A> {};
template <class... A>
inline constexpr bool conjunction_v = conjunction<A...>::value;
template <class...>
struct disjunction : false_type {};
template <class A, class... B>
struct disjunction<A, B...> : conditional_t<bool(A::value), A, disjunction<B...>> {};
template <class... A>
inline constexpr bool disjunction_v = disjunction<A...>::value;
template <class A>
struct negation : bool_constant<!bool(A::value)> {};

#define STRIDE_TYPE_FUNCTION(name, builtin) \
  template <class T>                        \
  struct name {                             \
    typedef builtin(T) type;                \
  };                                        \
  template <class T>                        \
  using name##_t = typename name<T>::type;
STRIDE_TYPE_FUNCTION(remove_const, __remove_const)
STRIDE_TYPE_FUNCTION(remove_volatile, __remove_volatile)
STRIDE_TYPE_FUNCTION(remove_cv, __remove_cv)
STRIDE_TYPE_FUNCTION(remove_cvref, __remove_cvref)
STRIDE_TYPE_FUNCTION(remove_pointer, __remove_pointer)
STRIDE_TYPE_FUNCTION(remove_extent, __remove_extent)
STRIDE_TYPE_FUNCTION(add_pointer, __add_pointer)
STRIDE_TYPE_FUNCTION(decay, __decay)
STRIDE_TYPE_FUNCTION(make_signed, __make_signed)
STRIDE_TYPE_FUNCTION(make_unsigned, __make_unsigned)
STRIDE_TYPE_FUNCTION(underlying_type, __underlying_type)
STRIDE_TYPE_FUNCTION(add_lvalue_reference, __add_lvalue_reference)
STRIDE_TYPE_FUNCTION(add_rvalue_reference, __add_rvalue_reference)
template <class T>
using remove_reference_t = typename remove_reference<T>::type;
template <class T>
struct add_const {
  typedef const T type;
};
template <class T>
using add_const_t = const T;
template <class T>
struct alignment_of : integral_constant<size_t, alignof(T)> {};
template <size_t bytes, size_t alignment = 16>
struct aligned_storage {
  struct type {
    alignas(alignment) unsigned char data[bytes];
  };
};
template <size_t bytes, size_t alignment = 16>
using aligned_storage_t = typename aligned_storage<bytes, alignment>::type;
template <class T>
typename add_rvalue_reference<T>::type declval() noexcept;
template <class... T>
struct common_type {};
template <class T>
struct common_type<T> {
  typedef decay_t<T> type;
};
template <class A, class B>
struct common_type<A, B> {
  typedef decay_t<decltype(true ? declval<A>() : declval<B>())> type;
};
template <class A, class B, class... C>
struct common_type<A, B, C...> : common_type<typename common_type<A, B>::type, C...> {};
template <class... T>
using common_type_t = typename common_type<T...>::type;
template <class F, class... A>
struct invoke_result {
  typedef decltype(declval<F>()(declval<A>()...)) type;
};
template <class F, class... A>
using invoke_result_t = typename invoke_result<F, A...>::type;
STRIDE_EITHER constexpr bool is_constant_evaluated() noexcept {
  return __builtin_is_constant_evaluated();
}

// Limits.
template <class T>
class numeric_limits {
  static constexpr bool kInteger = __is_integral(T);
  static constexpr bool kSingle = __is_same(T, float);
  static constexpr int kBits = 8 * sizeof(T);
  static constexpr T greatest() {
    if constexpr (__is_same(T, bool)) {
      return true;
    } else {
      return (T)(is_signed ? ((1ull << (kBits - 2)) - 1) * 2 + 1 : ~0ull >> (64 - kBits));
    }
  }

 public:
  static constexpr bool is_specialized = __is_arithmetic(T);
  static constexpr bool is_integer = kInteger;
  static constexpr bool is_signed = __is_signed(T);
  static constexpr bool is_exact = kInteger;
  static constexpr bool is_bounded = true;
  static constexpr bool is_iec559 = !kInteger;
  static constexpr bool has_infinity = !kInteger;
  static constexpr bool has_quiet_NaN = !kInteger;
  static constexpr int radix = 2;
  static constexpr int digits = __is_same(T, bool) ? 1
                                : kInteger         ? kBits - is_signed
                                : kSingle          ? 24
                                                   : 53;
  static constexpr int digits10 = kInteger ? digits * 643 / 2136 : kSingle ? 6 : 15;
  static constexpr int max_digits10 = kInteger ? 0 : kSingle ? 9 : 17;
  static constexpr int max_exponent = kInteger ? 0 : kSingle ? 128 : 1024;
  static constexpr int min_exponent = kInteger ? 0 : kSingle ? -125 : -1021;
  static constexpr T max() noexcept {
    if constexpr (kInteger) {
      return greatest();
    } else {
      return kSingle ? (T)FLT_MAX : (T)DBL_MAX;
    }
  }
  static constexpr T lowest() noexcept {
    if constexpr (kInteger) {
      return is_signed ? (T)(-greatest() - 1) : (T)0;
    } else {
      return -max();
    }
  }
  static constexpr T min() noexcept {
    if constexpr (kInteger) {
      return lowest();
    } else {
      return kSingle ? (T)FLT_MIN : (T)DBL_MIN;
    }
  }
  static constexpr T epsilon() noexcept {
    if constexpr (kInteger) {
      return 0;
    } else {
      return kSingle ? (T)FLT_EPSILON : (T)DBL_EPSILON;
    }
  }
  static constexpr T infinity() noexcept { return kInteger ? (T)0 : (T)__builtin_inf(); }
  static constexpr T quiet_NaN() noexcept { return kInteger ? (T)0 : (T)__builtin_nan(""); }
  static constexpr T signaling_NaN() noexcept { return quiet_NaN(); }
  static constexpr T denorm_min() noexcept {
    return kInteger ? (T)0 : kSingle ? (T)0x1p-149f : (T)0x1p-1074;
  }
  static constexpr T round_error() noexcept { return kInteger ? (T)0 : (T)0.5; }
};
template <class T>
class numeric_limits<const T> : public numeric_limits<T> {};

// Pairs, tuples, arrays.
template <class T>
STRIDE_EITHER constexpr void swap(T& a, T& b) {
  T old = std::move(a);
  a = std::move(b);
  b = std::move(old);
}
template <class T, class U = T>
STRIDE_EITHER constexpr T exchange(T& place, U&& value) {
  T old = std::move(place);
  place = std::forward<U>(value);
  return old;
}
template <class T>
constexpr const T& as_const(T& value) noexcept {
  return value;
}
template <class A, class B>
struct pair {
  typedef A first_type;
  typedef B second_type;
  A first;
  B second;
  constexpr pair() : first(), second() {}
  constexpr pair(const A& a, const B& b) : first(a), second(b) {}
  template <class C, class D>
  constexpr pair(const pair<C, D>& other) : first(other.first), second(other.second) {}
};
#if __cplusplus >= 201703L
template <class A, class B>
pair(A, B) -> pair<A, B>;
#endif
template <class A, class B>
constexpr pair<decay_t<A>, decay_t<B>> make_pair(A&& a, B&& b) {
  return pair<decay_t<A>, decay_t<B>>(std::forward<A>(a), std::forward<B>(b));
}
template <class A, class B>
constexpr bool operator==(const pair<A, B>& a, const pair<A, B>& b) {
  return a.first == b.first && a.second == b.second;
}
template <class A, class B>
constexpr bool operator!=(const pair<A, B>& a, const pair<A, B>& b) {
  return !(a == b);
}
template <class A, class B>
constexpr bool operator<(const pair<A, B>& a, const pair<A, B>& b) {
  return a.first < b.first || (!(b.first < a.first) && a.second < b.second);
}

template <class T, T... I>
struct integer_sequence {
  typedef T value_type;
  static constexpr size_t size() noexcept { return sizeof...(I); }
};
template <size_t... I>
using index_sequence = integer_sequence<size_t, I...>;
template <class T, T n>
using make_integer_sequence = __make_integer_seq<integer_sequence, T, n>;
template <size_t n>
using make_index_sequence = make_integer_sequence<size_t, n>;
template <class... T>
using index_sequence_for = make_index_sequence<sizeof...(T)>;

template <size_t i, class T>
struct __tuple_leaf {
  T value;
};
template <class I, class... T>
struct __tuple_base;
template <size_t... I, class... T>
struct __tuple_base<index_sequence<I...>, T...> : __tuple_leaf<I, T>... {
  constexpr __tuple_base() : __tuple_leaf<I, T>{}... {}
  template <class... U>
  constexpr __tuple_base(int, U&&... values)
      : __tuple_leaf<I, T>{static_cast<T>(std::forward<U>(values))}... {}
};
template <class... T>
struct tuple : __tuple_base<index_sequence_for<T...>, T...> {
  typedef __tuple_base<index_sequence_for<T...>, T...> base;
  constexpr tuple() = default;
  template <class... U, class = enable_if_t<sizeof...(U) == sizeof...(T) && sizeof...(T) != 0>>
  constexpr tuple(U&&... values) : base(0, std::forward<U>(values)...) {}
  constexpr tuple(const tuple&) = default;
  constexpr tuple(tuple&) = default;
  constexpr tuple(tuple&&) = default;
  constexpr tuple& operator=(const tuple&) = default;
};
#if __cplusplus >= 201703L
template <class... T>
tuple(T...) -> tuple<T...>;
#endif
template <size_t i, class T>
constexpr T& get(__tuple_leaf<i, T>& leaf) {
  return leaf.value;
}
template <size_t i, class T>
constexpr const T& get(const __tuple_leaf<i, T>& leaf) {
  return leaf.value;
}
template <size_t i, class T>
constexpr T&& get(__tuple_leaf<i, T>&& leaf) {
  return static_cast<T&&>(leaf.value);
}
template <class... T>
constexpr tuple<decay_t<T>...> make_tuple(T&&... values) {
  return tuple<decay_t<T>...>(std::forward<T>(values)...);
}
template <class T>
struct tuple_size;
template <class... T>
struct tuple_size<tuple<T...>> : integral_constant<size_t, sizeof...(T)> {};
template <class A, class B>
struct tuple_size<pair<A, B>> : integral_constant<size_t, 2> {};
template <class T>
inline constexpr size_t tuple_size_v = tuple_size<T>::value;
template <size_t i, class T>
struct tuple_element;
template <size_t i, class... T>
struct tuple_element<i, tuple<T...>> {
  typedef __type_pack_element<i, T...> type;
};
template <size_t i, class A, class B>
struct tuple_element<i, pair<A, B>> {
  typedef conditional_t<i == 0, A, B> type;
};
template <size_t i, class T>
using tuple_element_t = typename tuple_element<i, T>::type;
template <size_t i, class A, class B>
constexpr tuple_element_t<i, pair<A, B>>& get(pair<A, B>& both) {
  if constexpr (i == 0) {
    return both.first;
  } else {
    return both.second;
  }
}
template <size_t i, class A, class B>
constexpr const tuple_element_t<i, pair<A, B>>& get(const pair<A, B>& both) {
  if constexpr (i == 0) {
    return both.first;
  } else {
    return both.second;
  }
}

template <size_t i, class A, class B>
constexpr tuple_element_t<i, pair<A, B>>&& get(pair<A, B>&& both) {
  return static_cast<tuple_element_t<i, pair<A, B>>&&>(get<i>(both));
}

template <class T, size_t n>
struct array {
  typedef T value_type;
  typedef T* iterator;
  typedef const T* const_iterator;
  T elements[n == 0 ? 1 : n];
  constexpr T& operator[](size_t i) { return elements[i]; }
  constexpr const T& operator[](size_t i) const { return elements[i]; }
  constexpr T* data() { return elements; }
  constexpr const T* data() const { return elements; }
  constexpr T* begin() { return elements; }
  constexpr const T* begin() const { return elements; }
  constexpr T* end() { return elements + n; }
  constexpr const T* end() const { return elements + n; }
  constexpr T& front() { return elements[0]; }
  constexpr const T& front() const { return elements[0]; }
  constexpr T& back() { return elements[n - 1]; }
  constexpr const T& back() const { return elements[n - 1]; }
  static constexpr size_t size() { return n; }
  static constexpr bool empty() { return n == 0; }
  constexpr void fill(const T& value) {
    for (size_t i = 0; i < n; ++i) elements[i] = value;
  }
};
#if __cplusplus >= 201703L
template <class T, class... U>
array(T, U...) -> array<T, 1 + sizeof...(U)>;
#endif
template <class T, size_t n>
struct tuple_size<array<T, n>> : integral_constant<size_t, n> {};
template <size_t i, class T, size_t n>
struct tuple_element<i, array<T, n>> {
  typedef T type;
};
template <size_t i, class T, size_t n>
constexpr T& get(array<T, n>& all) {
  return all.elements[i];
}
template <size_t i, class T, size_t n>
constexpr const T& get(const array<T, n>& all) {
  return all.elements[i];
}
template <class T, size_t n>
constexpr size_t size(const T (&)[n]) noexcept {
  return n;
}
template <class T, size_t n>
constexpr T* begin(T (&all)[n]) noexcept {
  return all;
}
template <class T, size_t n>
constexpr T* end(T (&all)[n]) noexcept {
  return all + n;
}
template <class T>
constexpr T* addressof(T& object) noexcept {
  return __builtin_addressof(object);
}

// Function objects.
#define STRIDE_FUNCTION_OBJECT(name, expression)                                   \
  template <class T = void>                                                        \
  struct name {                                                                    \
    constexpr auto operator()(const T& a, const T& b) const { return expression; } \
  };                                                                               \
  template <>                                                                      \
  struct name<void> {                                                              \
    template <class A, class B>                                                    \
    constexpr auto operator()(const A& a, const B& b) const {                      \
      return expression;                                                           \
    }                                                                              \
  };
STRIDE_FUNCTION_OBJECT(plus, a + b)
STRIDE_FUNCTION_OBJECT(minus, a - b)
STRIDE_FUNCTION_OBJECT(multiplies, a* b)
STRIDE_FUNCTION_OBJECT(divides, a / b)
STRIDE_FUNCTION_OBJECT(modulus, a % b)
STRIDE_FUNCTION_OBJECT(bit_and, a& b)
STRIDE_FUNCTION_OBJECT(bit_or, a | b)
STRIDE_FUNCTION_OBJECT(bit_xor, a ^ b)
STRIDE_FUNCTION_OBJECT(logical_and, a&& b)
STRIDE_FUNCTION_OBJECT(logical_or, a || b)
STRIDE_FUNCTION_OBJECT(equal_to, a == b)
STRIDE_FUNCTION_OBJECT(not_equal_to, a != b)
STRIDE_FUNCTION_OBJECT(less, a < b)
STRIDE_FUNCTION_OBJECT(greater, a > b)
STRIDE_FUNCTION_OBJECT(less_equal, a <= b)
STRIDE_FUNCTION_OBJECT(greater_equal, a >= b)
template <class T = void>
struct negate {
  constexpr T operator()(const T& a) const { return -a; }
};
struct identity {
  template <class T>
  constexpr T&& operator()(T&& value) const noexcept {
    return std::forward<T>(value);
  }
};

// Algorithms on ranges.
template <class T, class F>
constexpr const T& min(const T& a, const T& b, F less) {
  return less(b, a) ? b : a;
}
template <class T, class F>
constexpr const T& max(const T& a, const T& b, F less) {
  return less(a, b) ? b : a;
}
template <class T>
constexpr T min(initializer_list<T> all) {
  T least = *all.begin();
  for (const T& value : all) least = value < least ? value : least;
  return least;
}
template <class T>
constexpr T max(initializer_list<T> all) {
  T most = *all.begin();
  for (const T& value : all) most = most < value ? value : most;
  return most;
}
template <class T>
constexpr const T& clamp(const T& value, const T& low, const T& high) {
  return value < low ? low : high < value ? high : value;
}
template <class I, class T>
constexpr void fill(I begin, I end, const T& value) {
  for (; begin != end; ++begin) *begin = value;
}
template <class I, class N, class T>
constexpr I fill_n(I begin, N count, const T& value) {
  for (; count > 0; --count, ++begin) *begin = value;
  return begin;
}
template <class I, class O>
constexpr O copy(I begin, I end, O out) {
  for (; begin != end; ++begin, ++out) *out = *begin;
  return out;
}
template <class I, class N, class O>
constexpr O copy_n(I begin, N count, O out) {
  for (; count > 0; --count, ++begin, ++out) *out = *begin;
  return out;
}
template <class I, class O, class F>
constexpr O transform(I begin, I end, O out, F f) {
  for (; begin != end; ++begin, ++out) *out = f(*begin);
  return out;
}
template <class I, class F>
constexpr F for_each(I begin, I end, F f) {
  for (; begin != end; ++begin) f(*begin);
  return f;
}
template <class I, class T>
constexpr T accumulate(I begin, I end, T sum) {
  for (; begin != end; ++begin) sum = sum + *begin;
  return sum;
}
template <class I, class T, class F>
constexpr T accumulate(I begin, I end, T sum, F f) {
  for (; begin != end; ++begin) sum = f(sum, *begin);
  return sum;
}
template <class I, class J, class T>
constexpr T inner_product(I begin, I end, J other, T sum) {
  for (; begin != end; ++begin, ++other) sum = sum + *begin * *other;
  return sum;
}
template <class I, class T>
constexpr void iota(I begin, I end, T value) {
  for (; begin != end; ++begin, ++value) *begin = value;
}
template <class I, class T>
constexpr I find(I begin, I end, const T& value) {
  while (begin != end && !(*begin == value)) ++begin;
  return begin;
}
template <class I, class T>
constexpr I lower_bound(I begin, I end, const T& value) {
  for (auto count = end - begin; count > 0;) {
    auto half = count / 2;
    if (begin[half] < value) {
      begin += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return begin;
}
template <class I, class T>
constexpr I upper_bound(I begin, I end, const T& value) {
  for (auto count = end - begin; count > 0;) {
    auto half = count / 2;
    if (!(value < begin[half])) {
      begin += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return begin;
}
template <class I, class F>
constexpr void sort(I begin, I end, F less) {  // by heap: no recursion, no extra memory
  auto count = end - begin;
  auto sift = [&](decltype(count) root, decltype(count) size) {
    for (decltype(count) child; (child = 2 * root + 1) < size; root = child) {
      if (child + 1 < size && less(begin[child], begin[child + 1])) ++child;
      if (!less(begin[root], begin[child])) return;
      std::swap(begin[root], begin[child]);
    }
  };
  for (auto i = count / 2; i > 0; --i) sift(i - 1, count);
  for (auto size = count; size > 1; --size) {
    std::swap(begin[0], begin[size - 1]);
    sift(0, size - 1);
  }
}
template <class I>
constexpr void sort(I begin, I end) {
  std::sort(begin, end, less<>());
}
template <class I>
constexpr void reverse(I begin, I end) {
  while (begin != end && begin != --end) std::swap(*begin++, *end);
}
template <class I>
constexpr auto distance(I begin, I end) {
  return end - begin;
}

// Bits.
template <class To, class From>
constexpr To bit_cast(const From& value) noexcept {
  return __builtin_bit_cast(To, value);
}
template <class T>
STRIDE_EITHER constexpr int popcount(T x) noexcept {
  return __builtin_popcountll((unsigned long long)x);
}
template <class T>
STRIDE_EITHER constexpr int countl_zero(T x) noexcept {
  return x == 0 ? 8 * (int)sizeof(T)
                : __builtin_clzll((unsigned long long)x) - (64 - 8 * (int)sizeof(T));
}
template <class T>
STRIDE_EITHER constexpr int countr_zero(T x) noexcept {
  return x == 0 ? 8 * (int)sizeof(T) : __builtin_ctzll((unsigned long long)x);
}
template <class T>
STRIDE_EITHER constexpr bool has_single_bit(T x) noexcept {
  return x != 0 && (x & (x - 1)) == 0;
}
template <class T>
STRIDE_EITHER constexpr T bit_ceil(T x) noexcept {
  T result = 1;
  while (result < x) result <<= 1;
  return result;
}
template <class T>
STRIDE_EITHER constexpr T rotl(T x, int n) noexcept {
  constexpr int kBits = 8 * sizeof(T);
  n &= kBits - 1;
  return n == 0 ? x : (T)(x << n | x >> (kBits - n));
}
template <class T>
STRIDE_EITHER constexpr T rotr(T x, int n) noexcept {
  return std::rotl(x, -n);
}
enum class byte : unsigned char {};

}  // namespace std

namespace cuda {
namespace std = ::std;

template <class T, class U>
STRIDE_EITHER constexpr T ceil_div(T value, U unit) {
  return (T)((value + (T)unit - 1) / (T)unit);
}
template <class T = void>
struct maximum {
  constexpr T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
template <>
struct maximum<void> {
  template <class T>
  constexpr T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
template <class T = void>
struct minimum {
  constexpr T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
template <>
struct minimum<void> {
  template <class T>
  constexpr T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};
}  // namespace cuda
