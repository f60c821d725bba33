#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// The LAPACK routines in use, which come with OpenBLAS; one overload per type. Matrices are
// column-major. Results are LAPACK's `info`: 0, or a positive number for a fault of the data. Any
// thread; SetBlasThreads (blas.h) limits the additional threads of a call.
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

// Work memory in elements of each kind; 0: none.
struct WorkSize {
  int64_t work = 0;
  int64_t real_work = 0;  // complex routines only
  int64_t int_work = 0;
};
template <typename T>
struct Work {
  T* work = nullptr;
  Real<T>* real_work = nullptr;
  int32_t* int_work = nullptr;
  WorkSize size;
};

// Cholesky factor in the lower ('L') or upper ('U') triangle; the other triangle is not written.
template <typename T>
int Potrf(char triangle, int n, T* a);
// LU with row exchanges, pivots from 1.
template <typename T>
int Getrf(int m, int n, T* a, int32_t* pivots);
// Solves with the factors of Getrf, in place.
template <typename T>
int Getrs(int n, int num_right, const T* a, const int32_t* pivots, T* b);

// QR: R in the upper triangle, reflectors below. Orgqr then replaces them by Q's first `columns`
// columns.
template <typename T>
WorkSize QrWork(int m, int n, int columns);
template <typename T>
int Geqrf(int m, int n, T* a, T* tau, const Work<T>& work);
template <typename T>
int Orgqr(int m, int columns, int num_reflectors, T* a, const T* tau, const Work<T>& work);

// Singular values; vectors all ('A'), as many as values ('S') or none ('N'). Overwrites `a`.
template <typename T>
WorkSize SvdWork(char vectors, int m, int n);
template <typename T>
int Gesdd(char vectors, int m, int n, T* a, Real<T>* s, T* u, int ldu, T* vt, int ldvt,
          const Work<T>& work);

// Eigenvalues of a Hermitian matrix; with 'V' eigenvectors overwrite it.
template <typename T>
WorkSize EighWork(char vectors, char triangle, int n);
template <typename T>
int Syevd(char vectors, char triangle, int n, T* a, Real<T>* w, const Work<T>& work);

// Eigenvalues of any square matrix, and with 'V' right eigenvectors. Overwrites `a`. For real
// matrices `w` has all real parts, then all imaginary ones, and a pair of conjugate eigenvectors is
// stored as its real part and its imaginary part.
template <typename T>
WorkSize EigWork(char vectors, int n);
template <typename T>
int Geev(char vectors, int n, T* a, T* w, T* right, const Work<T>& work);

}  // namespace stride::cpu::lapack
