// printf, assert and __trap: calls into the runtime.
#pragma once

namespace __stride {

__attribute__((device, noreturn)) static inline void fail(const char* what, const char* file,
                                                          unsigned line) {
  unsigned thread[3] = {__stride_tid_x(), __stride_tid_y(), __stride_tid_z()};
  stride::cpucuda::BlockContext* block = __stride_context();
  block->runtime->fail(block, what, file, line, thread);
  __builtin_unreachable();
}

typedef stride::cpucuda::PrintArgument PrintArgument;
STRIDE_DEVICE PrintArgument print_argument(double value) {
  PrintArgument a;
  a.kind = PrintArgument::kDouble;
  a.size = 8;
  a.real = value;
  return a;
}
STRIDE_DEVICE PrintArgument print_argument(float value) { return print_argument((double)value); }
STRIDE_DEVICE PrintArgument print_argument(__half value) {
  return print_argument((double)(float)value);
}
STRIDE_DEVICE PrintArgument print_argument(__nv_bfloat16 value) {
  return print_argument((double)(float)value);
}
STRIDE_DEVICE PrintArgument print_argument(const char* value) {
  PrintArgument a;
  a.kind = PrintArgument::kString;
  a.size = 8;
  a.string = value;
  return a;
}
STRIDE_DEVICE PrintArgument print_argument(char* value) {
  return print_argument((const char*)value);
}
template <class T>
STRIDE_DEVICE PrintArgument print_argument(T* value) {
  PrintArgument a;
  a.kind = PrintArgument::kPointer;
  a.size = 8;
  a.pointer = (const void*)value;
  return a;
}
template <class T>
STRIDE_DEVICE PrintArgument print_argument(T value) {
  // Otherwise a class with a conversion to an integer would be printed as an integer.
  static_assert(!__is_class(T), "printf takes numbers, pointers and text");
  PrintArgument a;
  a.kind = PrintArgument::kInteger;
  a.size = sizeof(T) < 4 ? 4 : sizeof(T);
  a.integer = (long long)value;
  return a;
}

}  // namespace __stride

template <class... A>
STRIDE_DEVICE int printf(const char* format, A... values) {
  __stride::PrintArgument arguments[] = {__stride::print_argument(values)...,
                                         __stride::print_argument(0)};
  stride::cpucuda::BlockContext* block = __stride_context();
  return block->runtime->print(block, format, arguments, sizeof...(A));
}

#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) \
  ((condition) ? (void)0  \
               : ::__stride::fail("assertion `" #condition "` failed", __FILE_NAME__, __LINE__))
#endif
#define __trap() ::__stride::fail("__trap() was called", __FILE_NAME__, __LINE__)
#define __brkpt() ::__stride::fail("__brkpt() was called", __FILE_NAME__, __LINE__)
