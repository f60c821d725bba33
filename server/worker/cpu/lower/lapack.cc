#include "server/worker/cpu/lower/lapack.h"

#include <algorithm>

// LAPACK's interface is Fortran's: all arguments by address, and the lengths of strings at the end.
namespace stride::cpu::lapack {
namespace {

using Int = int32_t;
using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

extern "C" {
#define STRIDE_LAPACK_ALL(p, T)                                                             \
  void p##potrf_(const char*, const Int*, T*, const Int*, Int*, size_t);                    \
  void p##getrf_(const Int*, const Int*, T*, const Int*, Int*, Int*);                       \
  void p##getrs_(const char*, const Int*, const Int*, const T*, const Int*, const Int*, T*, \
                 const Int*, Int*, size_t);                                                 \
  void p##geqrf_(const Int*, const Int*, T*, const Int*, T*, T*, const Int*, Int*);
STRIDE_LAPACK_ALL(s, float)
STRIDE_LAPACK_ALL(d, double)
STRIDE_LAPACK_ALL(c, Complex64)
STRIDE_LAPACK_ALL(z, Complex128)
#undef STRIDE_LAPACK_ALL

#define STRIDE_LAPACK_QR(name, T) \
  void name(const Int*, const Int*, const Int*, T*, const Int*, const T*, T*, const Int*, Int*);
STRIDE_LAPACK_QR(sorgqr_, float)
STRIDE_LAPACK_QR(dorgqr_, double)
STRIDE_LAPACK_QR(cungqr_, Complex64)
STRIDE_LAPACK_QR(zungqr_, Complex128)
#undef STRIDE_LAPACK_QR

#define STRIDE_LAPACK_REAL(p, T)                                                                  \
  void p##gesdd_(const char*, const Int*, const Int*, T*, const Int*, T*, T*, const Int*, T*,     \
                 const Int*, T*, const Int*, Int*, Int*, size_t);                                 \
  void p##syevd_(const char*, const char*, const Int*, T*, const Int*, T*, T*, const Int*, Int*,  \
                 const Int*, Int*, size_t, size_t);                                               \
  void p##geev_(const char*, const char*, const Int*, T*, const Int*, T*, T*, T*, const Int*, T*, \
                const Int*, T*, const Int*, Int*, size_t, size_t);
STRIDE_LAPACK_REAL(s, float)
STRIDE_LAPACK_REAL(d, double)
#undef STRIDE_LAPACK_REAL

#define STRIDE_LAPACK_COMPLEX(p, T, R)                                                         \
  void p##gesdd_(const char*, const Int*, const Int*, T*, const Int*, R*, T*, const Int*, T*,  \
                 const Int*, T*, const Int*, R*, Int*, Int*, size_t);                          \
  void p##heevd_(const char*, const char*, const Int*, T*, const Int*, R*, T*, const Int*, R*, \
                 const Int*, Int*, const Int*, Int*, size_t, size_t);                          \
  void p##geev_(const char*, const char*, const Int*, T*, const Int*, T*, T*, const Int*, T*,  \
                const Int*, T*, const Int*, R*, Int*, size_t, size_t);
STRIDE_LAPACK_COMPLEX(c, Complex64, float)
STRIDE_LAPACK_COMPLEX(z, Complex128, double)
#undef STRIDE_LAPACK_COMPLEX
}

// The routine for T among those of the four types.
template <typename T, typename S, typename D, typename C, typename Z>
constexpr auto Choose(S s, D d, C c, Z z) {
  if constexpr (std::is_same_v<T, float>) {
    return s;
  } else if constexpr (std::is_same_v<T, double>) {
    return d;
  } else if constexpr (std::is_same_v<T, Complex64>) {
    return c;
  } else {
    return z;
  }
}

template <typename T>
constexpr bool kIsComplex = !std::is_floating_point_v<T>;

Int Leading(Int rows) { return std::max<Int>(rows, 1); }
Int Count(int64_t size) { return static_cast<Int>(size); }

// A query returns a floating-point number, which may have been rounded down.
template <typename T>
int64_t Asked(T answer) {
  const double size = std::real(answer);
  return static_cast<int64_t>(size * (1 + 1e-6)) + 1;
}

}  // namespace

template <typename T>
int Potrf(char triangle, int n, T* a) {
  Int info = 0;
  const Int leading = Leading(n);
  Choose<T>(spotrf_, dpotrf_, cpotrf_, zpotrf_)(&triangle, &n, a, &leading, &info, 1);
  return info;
}

template <typename T>
int Getrf(int m, int n, T* a, int32_t* pivots) {
  Int info = 0;
  const Int leading = Leading(m);
  Choose<T>(sgetrf_, dgetrf_, cgetrf_, zgetrf_)(&m, &n, a, &leading, pivots, &info);
  return info;
}

template <typename T>
int Getrs(int n, int num_right, const T* a, const int32_t* pivots, T* b) {
  Int info = 0;
  const Int leading = Leading(n);
  Choose<T>(sgetrs_, dgetrs_, cgetrs_, zgetrs_)("N", &n, &num_right, a, &leading, pivots, b,
                                                &leading, &info, 1);
  return info;
}

template <typename T>
int Geqrf(int m, int n, T* a, T* tau, const Work<T>& work) {
  Int info = 0;
  const Int leading = Leading(m), size = Count(work.size.work);
  Choose<T>(sgeqrf_, dgeqrf_, cgeqrf_, zgeqrf_)(&m, &n, a, &leading, tau, work.work, &size, &info);
  return info;
}

template <typename T>
int Orgqr(int m, int columns, int num_reflectors, T* a, const T* tau, const Work<T>& work) {
  Int info = 0;
  const Int leading = Leading(m), size = Count(work.size.work);
  Choose<T>(sorgqr_, dorgqr_, cungqr_, zungqr_)(&m, &columns, &num_reflectors, a, &leading, tau,
                                                work.work, &size, &info);
  return info;
}

template <typename T>
WorkSize QrWork(int m, int n, int columns) {
  T first = 0, second = 0;
  Work<T> query;
  query.size.work = -1;
  query.work = &first;
  Geqrf<T>(m, n, nullptr, nullptr, query);
  query.work = &second;
  if (columns > 0) Orgqr<T>(m, columns, std::min({m, n, columns}), nullptr, nullptr, query);
  return {std::max(Asked(first), Asked(second)), 0, 0};
}

template <typename T>
int Gesdd(char vectors, int m, int n, T* a, Real<T>* s, T* u, int ldu, T* vt, int ldvt,
          const Work<T>& work) {
  Int info = 0;
  const Int leading = Leading(m), size = Count(work.size.work);
  if constexpr (kIsComplex<T>) {
    Choose<T>(nullptr, nullptr, cgesdd_, zgesdd_)(&vectors, &m, &n, a, &leading, s, u, &ldu, vt,
                                                  &ldvt, work.work, &size, work.real_work,
                                                  work.int_work, &info, 1);
  } else {
    Choose<T>(sgesdd_, dgesdd_, nullptr, nullptr)(&vectors, &m, &n, a, &leading, s, u, &ldu, vt,
                                                  &ldvt, work.work, &size, work.int_work, &info, 1);
  }
  return info;
}

template <typename T>
WorkSize SvdWork(char vectors, int m, int n) {
  T answer = 0;
  Work<T> query;
  query.size.work = -1;
  query.work = &answer;
  const int leading_vt = Leading(vectors == 'A' ? n : std::min(m, n));
  Gesdd<T>(vectors, m, n, nullptr, nullptr, nullptr, Leading(m), nullptr, leading_vt, query);
  // The manual's bounds where there is no query.
  const int64_t least = std::min(m, n), most = std::max(m, n);
  int64_t real_work = 0;
  if (kIsComplex<T>) {
    real_work = vectors == 'N' ? 7 * least
                               : std::max(5 * least * least + 5 * least,
                                          2 * most * least + 2 * least * least + least);
  }
  return {Asked(answer), real_work, 8 * least};
}

template <typename T>
int Syevd(char vectors, char triangle, int n, T* a, Real<T>* w, const Work<T>& work) {
  Int info = 0;
  const Int leading = Leading(n), size = Count(work.size.work),
            real_size = Count(work.size.real_work), int_size = Count(work.size.int_work);
  if constexpr (kIsComplex<T>) {
    Choose<T>(nullptr, nullptr, cheevd_, zheevd_)(&vectors, &triangle, &n, a, &leading, w,
                                                  work.work, &size, work.real_work, &real_size,
                                                  work.int_work, &int_size, &info, 1, 1);
  } else {
    Choose<T>(ssyevd_, dsyevd_, nullptr, nullptr)(&vectors, &triangle, &n, a, &leading, w,
                                                  work.work, &size, work.int_work, &int_size, &info,
                                                  1, 1);
  }
  return info;
}

template <typename T>
WorkSize EighWork(char vectors, char triangle, int n) {
  T answer = 0;
  Real<T> real_answer = 0;
  Int int_answer = 0;
  Work<T> query{&answer, &real_answer, &int_answer, {-1, -1, -1}};
  Syevd<T>(vectors, triangle, n, nullptr, nullptr, query);
  return {Asked(answer), kIsComplex<T> ? Asked(real_answer) : 0, int_answer};
}

template <typename T>
int Geev(char vectors, int n, T* a, T* w, T* right, const Work<T>& work) {
  Int info = 0;
  const Int leading = Leading(n), one = 1, size = Count(work.size.work);
  if constexpr (kIsComplex<T>) {
    Choose<T>(nullptr, nullptr, cgeev_, zgeev_)("N", &vectors, &n, a, &leading, w, nullptr, &one,
                                                right, &leading, work.work, &size, work.real_work,
                                                &info, 1, 1);
  } else {
    T* const imaginary = w == nullptr ? nullptr : w + n;
    Choose<T>(sgeev_, dgeev_, nullptr, nullptr)("N", &vectors, &n, a, &leading, w, imaginary,
                                                nullptr, &one, right, &leading, work.work, &size,
                                                &info, 1, 1);
  }
  return info;
}

template <typename T>
WorkSize EigWork(char vectors, int n) {
  T answer = 0;
  Real<T> real_answer = 0;  // written by a query too
  Work<T> query{&answer, &real_answer, nullptr, {-1, 0, 0}};
  Geev<T>(vectors, n, nullptr, nullptr, nullptr, query);
  return {Asked(answer), kIsComplex<T> ? 2 * int64_t{n} : 0, 0};
}

#define STRIDE_LAPACK_INSTANTIATE(T)                                                     \
  template int Potrf<T>(char, int, T*);                                                  \
  template int Getrf<T>(int, int, T*, int32_t*);                                         \
  template int Getrs<T>(int, int, const T*, const int32_t*, T*);                         \
  template WorkSize QrWork<T>(int, int, int);                                            \
  template int Geqrf<T>(int, int, T*, T*, const Work<T>&);                               \
  template int Orgqr<T>(int, int, int, T*, const T*, const Work<T>&);                    \
  template WorkSize SvdWork<T>(char, int, int);                                          \
  template int Gesdd<T>(char, int, int, T*, Real<T>*, T*, int, T*, int, const Work<T>&); \
  template WorkSize EighWork<T>(char, char, int);                                        \
  template int Syevd<T>(char, char, int, T*, Real<T>*, const Work<T>&);                  \
  template WorkSize EigWork<T>(char, int);                                               \
  template int Geev<T>(char, int, T*, T*, T*, const Work<T>&);
STRIDE_LAPACK_INSTANTIATE(float)
STRIDE_LAPACK_INSTANTIATE(double)
STRIDE_LAPACK_INSTANTIATE(Complex64)
STRIDE_LAPACK_INSTANTIATE(Complex128)
#undef STRIDE_LAPACK_INSTANTIATE

}  // namespace stride::cpu::lapack
