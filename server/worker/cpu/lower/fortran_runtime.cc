#include <algorithm>
#include <cstddef>
#include <cstring>

// Fortran's `//`, the only function of gfortran's runtime that LAPACK's routines in OpenBLAS's
// archive call. With it a portable build needs no Fortran library (cmake/dependencies.cmake). A
// shared OpenBLAS has its own runtime.
extern "C" void _gfortran_concat_string(size_t length, char* to, size_t first_length,
                                        const char* first, size_t second_length,
                                        const char* second) {
  const size_t from_first = std::min(length, first_length);
  std::memcpy(to, first, from_first);
  const size_t from_second = std::min(length - from_first, second_length);
  std::memcpy(to + from_first, second, from_second);
  std::memset(to + from_first + from_second, ' ', length - from_first - from_second);
}
