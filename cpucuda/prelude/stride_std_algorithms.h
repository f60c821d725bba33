// Algorithms on ranges of the standard library of kernels.
#pragma once

namespace std {

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

}  // namespace std
