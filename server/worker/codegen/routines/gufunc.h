// A client's function of sub-arrays, called for each item of the loop. Operands: inputs, outputs;
// their own axes are the function's. The client's text follows the definition of the view that it
// gets for each operand. After it the emitter writes phase0, which is the call. Pass: 0.

#if ST_CUDA
#define ST_METHOD __device__ __forceinline__
#elif defined(__CUDA__)
#define ST_METHOD inline __attribute__((device, always_inline))
#else
#define ST_METHOD inline __attribute__((always_inline))
#endif

// 16-bit floats, whose arithmetic is done in float.
#define ST_HALF_TYPE(name, bits_type, to_bits)                                           \
  struct name {                                                                          \
    bits_type value;                                                                     \
    name() = default;                                                                    \
    ST_METHOD name(float x) : value(to_bits(x)) {}                                       \
    ST_METHOD operator float() const { return st_to_float(value); }                      \
    ST_METHOD name& operator+=(float x) { return *this = name(st_to_float(value) + x); } \
    ST_METHOD name& operator-=(float x) { return *this = name(st_to_float(value) - x); } \
    ST_METHOD name& operator*=(float x) { return *this = name(st_to_float(value) * x); } \
    ST_METHOD name& operator/=(float x) { return *this = name(st_to_float(value) / x); } \
  };
ST_HALF_TYPE(stride_float16, st_f16, st_to_f16)
ST_HALF_TYPE(stride_bfloat16, st_bf16, st_to_bf16)

template <class T, int N>
struct stride_view {
  T* data;
  long long sizes[N > 0 ? N : 1], strides[N > 0 ? N : 1];  // strides in elements

  ST_METHOD long long size(int axis) const { return sizes[axis]; }
  ST_METHOD long long stride(int axis) const { return strides[axis]; }
  template <class... I>
  ST_METHOD T& operator()(I... index) const {
    static_assert(sizeof...(I) == N, "one index for each dimension");
    const long long at[N + 1] = {(long long)index..., 0};
    long long offset = 0;
#pragma unroll
    for (int axis = 0; axis < N; ++axis) offset += at[axis] * strides[axis];
    return data[offset];
  }
};

template <class T, class O>
ST_FN stride_view<T, O::kOwn> st_view(const O& operand, const Place& place) {
  stride_view<T, O::kOwn> view;
  view.data = (T*)st_at(operand, place);
  view.sizes[0] = 1;
  view.strides[0] = 0;
#pragma unroll
  for (int axis = 0; axis < O::kOwn; ++axis) {
    view.sizes[axis] = operand.own_extents[axis];
    view.strides[axis] = operand.own_strides[axis] / (st_i64)sizeof(T);
  }
  return view;
}

// A number as a view of one element.
template <class T, int N>
ST_FN stride_view<T, N> st_number(const char* scalar) {
  stride_view<T, N> view;
  view.data = (T*)scalar;
  view.sizes[0] = 1;
  view.strides[0] = 0;
#pragma unroll
  for (int axis = 0; axis < N; ++axis) {
    view.sizes[axis] = 1;
    view.strides[axis] = 1;
  }
  return view;
}
