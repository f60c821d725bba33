"""CUDA C++ that CuPy's kernels find: arrays and indexers with their shapes, complex numbers, element types by name."""

from typing import Iterable

import numpy as np

from stride import _dtypes, _errors
from stride._translate_prelude import COMPLEX

_NAMES = {
    _dtypes.bool: "bool",
    _dtypes.int8: "signed char",
    _dtypes.int16: "short",
    _dtypes.int32: "int",
    _dtypes.int64: "long long",
    _dtypes.uint8: "unsigned char",
    _dtypes.uint16: "unsigned short",
    _dtypes.uint32: "unsigned int",
    _dtypes.uint64: "unsigned long long",
    _dtypes.float16: "float16",
    _dtypes.float32: "float",
    _dtypes.float64: "double",
    _dtypes.complex64: "complex<float>",
    _dtypes.complex128: "complex<double>",
}

_HALF = """#include <cuda_fp16.h>
typedef __half float16;
"""

COMPLEX_NAMES = COMPLEX + """
template <class T> using complex = st_complex<T>;
namespace thrust {
template <class T> using complex = st_complex<T>;
}
"""

_ARRAYS = r"""
template <class T, int N> struct CArray {
  static const int ndim = N;
  T* data_;
  long long size_, shape_[N ? N : 1], strides_[N ? N : 1];
  template <class... E> __device__ CArray(T* data, E... extents) : data_(data), size_(1) {
    long long given[] = {(long long)extents..., 1};
    for (int i = N - 1; i >= 0; --i) {
      shape_[i] = given[i];
      strides_[i] = size_ * sizeof(T);
      size_ *= given[i];
    }
  }
  __device__ long long size() const { return size_; }
  __device__ const long long* shape() const { return shape_; }
  __device__ const long long* strides() const { return strides_; }
#define ST_INDEX(I) __device__ T& operator[](I i) const { return data_[i]; }
  ST_INDEX(char) ST_INDEX(signed char) ST_INDEX(short) ST_INDEX(int) ST_INDEX(long) ST_INDEX(long long)
  ST_INDEX(unsigned char) ST_INDEX(unsigned short) ST_INDEX(unsigned) ST_INDEX(unsigned long)
  ST_INDEX(unsigned long long)
#undef ST_INDEX
  template <class I> __device__ T& operator[](const I* index) const {
    long long place = 0;
    for (int i = 0; i < N; ++i) place = place * shape_[i] + index[i];
    return data_[place];
  }
  __device__ T* begin() const { return data_; }
  __device__ T* end() const { return data_ + size_; }
};
template <int N> struct CIndexer {
  static const int ndim = N;
  long long size_, shape_[N ? N : 1], index_[N ? N : 1];
  template <class... E> __device__ CIndexer(long long size, E... extents) : size_(size) {
    long long given[] = {(long long)extents..., 1};
    for (int i = 0; i < N; ++i) shape_[i] = given[i], index_[i] = 0;
  }
  __device__ long long size() const { return size_; }
  __device__ const long long* shape() const { return shape_; }
  __device__ const long long* get() const { return index_; }
  __device__ void set(long long i) {
    for (int d = N - 1; d >= 0; --d) index_[d] = i % shape_[d], i /= shape_[d];
  }
};
"""


def type_name(dtype: np.dtype) -> str:
    """How CUDA C++ names an element type."""
    name = _NAMES.get(dtype)
    if name is None:
        raise _errors.DataTypeMismatch(f"kernels have no element type {dtype}")
    return name


def entry_of(name: str) -> str:
    """The name of a kernel in its text, which no function of CUDA's own has, as `norm` would."""
    return f"cupy_{name}"


def parameter_type(dtype: np.dtype) -> str:
    """As type_name, by the names that the service finds a number's type by."""
    return "__half" if dtype == _dtypes.float16 else type_name(dtype)


def prelude(dtypes: Iterable[np.dtype], text: str) -> str:
    """The text before a kernel that uses these element types; `text` is the user's."""
    dtypes = set(dtypes)
    half = _HALF if _dtypes.float16 in dtypes or "float16" in text else ""
    is_complex = "complex" in text or any(one.kind == "c" for one in dtypes)
    return half + (COMPLEX_NAMES if is_complex else "") + _ARRAYS


# With `translate_cucomplex` CuPy's functions of both precisions have the names of double's.
_CU_COMPLEX = "#include <cuComplex.h>\n" + "".join(
    f"static inline __device__ {result} {name}({', '.join(f'cuFloatComplex {one}' for one in names)}) "
    f"{{ return {name}f({', '.join(names)}); }}\n"
    for result, name, names in (
        ("float", "cuCreal", "z"),
        ("float", "cuCimag", "z"),
        ("float", "cuCabs", "z"),
        ("cuFloatComplex", "cuConj", "z"),
        ("cuFloatComplex", "cuCadd", "ab"),
        ("cuFloatComplex", "cuCsub", "ab"),
        ("cuFloatComplex", "cuCmul", "ab"),
        ("cuFloatComplex", "cuCdiv", "ab"),
        ("cuFloatComplex", "cuCfma", "abc"),
    )
)


def own_headers(source: str, translate_cucomplex: bool = False) -> str:
    """A source with the text of CuPy's own headers in their place."""
    if translate_cucomplex and "cuComplex.h" in source:
        source = f"{_CU_COMPLEX}#line 1\n{source}"
    lines, has_complex = [], False
    for line in source.split("\n"):
        name = line.strip().replace(" ", "")
        if name.startswith("#include") and ("cupy/complex" in name or "thrust/complex" in name):
            # On one line, so that errors name the lines that the user sees.
            lines.append("" if has_complex else "#define ST_COMPLEX_HERE 1")
            has_complex = True
        elif name.startswith("#include") and (
            "cupy/carray" in name or "cupy/atomics" in name or "cupy/math_constants" in name
        ):
            lines.append("")
        else:
            lines.append(line)
    source = "\n".join(lines)
    return f"{COMPLEX_NAMES}\n#line 1\n{source}" if has_complex else source
