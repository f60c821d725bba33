// The parts of the standard library that the language needs and NVRTC gives without an include.
#pragma once

namespace std {

template <class T>
class initializer_list {
  const T* begin_ = nullptr;
  size_t size_ = 0;
  constexpr initializer_list(const T* begin, size_t size) : begin_(begin), size_(size) {}

 public:
  typedef T value_type;
  typedef const T& reference;
  typedef const T& const_reference;
  typedef size_t size_type;
  typedef const T* iterator;
  typedef const T* const_iterator;
  constexpr initializer_list() = default;
  constexpr size_t size() const { return size_; }
  constexpr const T* begin() const { return begin_; }
  constexpr const T* end() const { return begin_ + size_; }
};

template <class T>
struct remove_reference {
  typedef T type;
};
template <class T>
struct remove_reference<T&> {
  typedef T type;
};
template <class T>
struct remove_reference<T&&> {
  typedef T type;
};
template <class T>
constexpr typename remove_reference<T>::type&& move(T&& value) noexcept {
  return static_cast<typename remove_reference<T>::type&&>(value);
}
template <class T>
constexpr T&& forward(typename remove_reference<T>::type& value) noexcept {
  return static_cast<T&&>(value);
}
template <class T>
constexpr T&& forward(typename remove_reference<T>::type&& value) noexcept {
  return static_cast<T&&>(value);
}
typedef decltype(nullptr) nullptr_t;

}  // namespace std
