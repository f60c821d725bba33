#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// The LAPACK routines that we use, which come with OpenBLAS, one overload a type. Matrices are
// column-major. Results are LAPACK's `info`: 0, or above 0 what it found in the data. Any thread;
// SetBlasThreads (blas.h) says how many more a call may use.
namespace stride::cpu::lapack {

template <typename T>
struct RealOf {
  using type = T;
};
template <typename T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <typename T>
using Real = typename RealOf<T>::type;

// Work memory in elements of each kind; 0 where there is none.
struct WorkSize {
  int64_t work = 0;
  int64_t real_work = 0;  // of complex routines
  int64_t int_work = 0;
};
template <typename T>
struct Work {
  T* work = nullptr;
  Real<T>* real_work = nullptr;
  int32_t* int_work = nullptr;
  WorkSize size;
};

// Cholesky factor in the lower ('L') or upper ('U') triangle; the other is left as it was.
template <typename T>
int Potrf(char triangle, int n, T* a);
// LU with row exchanges, pivots from 1.
template <typename T>
int Getrf(int m, int n, T* a, int32_t* pivots);
// Solves with the factors of Getrf, in place.
template <typename T>
int Getrs(int n, int num_right, const T* a, const int32_t* pivots, T* b);

// QR: R above, reflectors below; then Q's first `columns` columns in their place.
template <typename T>
WorkSize QrWork(int m, int n, int columns);
template <typename T>
int Geqrf(int m, int n, T* a, T* tau, const Work<T>& work);
template <typename T>
int Orgqr(int m, int columns, int num_reflectors, T* a, const T* tau, const Work<T>& work);

// Singular values; vectors all ('A'), as many as values ('S') or none ('N'). `a` is lost.
template <typename T>
WorkSize SvdWork(char vectors, int m, int n);
template <typename T>
int Gesdd(char vectors, int m, int n, T* a, Real<T>* s, T* u, int ldu, T* vt, int ldvt,
          const Work<T>& work);

// Eigenvalues of a Hermitian matrix, and with 'V' eigenvectors in its place.
template <typename T>
WorkSize EighWork(char vectors, char triangle, int n);
template <typename T>
int Syevd(char vectors, char triangle, int n, T* a, Real<T>* w, const Work<T>& work);

// Eigenvalues of any square matrix, and with 'V' right eigenvectors. `a` is lost. Of real matrices
// `w` holds all real parts, then all imaginary ones, and of a pair of eigenvectors `vectors` holds
// real part and imaginary part.
template <typename T>
WorkSize EigWork(char vectors, int n);
template <typename T>
int Geev(char vectors, int n, T* a, T* w, T* right, const Work<T>& work);

}  // namespace stride::cpu::lapack
