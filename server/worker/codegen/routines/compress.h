// Elements where a mask is nonzero. Operands: the mask (own axes), then either input (the mask's
// own axes, and the loop's) and output (one own axis and the loop's), or, with option 0, one output
// per axis of the mask, which gets the indices. On a CPU counts.h finds the elements, on a GPU
// marks.h.
constexpr bool kIndices = kOption0 != 0;

ST_FN bool is_set(const Launch& launch, st_i64 number) {
  return st_cast<bool>(st_load<T0>(launch.operand0.data + st_own_offset(launch.operand0, number)));
}

// Stores an element of the mask as the output's element `to`.
ST_FN void list(const Launch& launch, st_i64* listed, st_i64 number, st_i64 to) {
  if constexpr (!kIndices) {
    listed[to] = number;
  } else {
    [[maybe_unused]] Index rest = (Index)number;
#define ST_COORDINATE(k)                                                           \
  {                                                                                \
    /* The outermost coordinate is what is left. */                                \
    const Index extent = (Index)launch.operand0.own_extents[k - 1];                \
    const Index next = k > 1 ? rest / extent : 0;                                  \
    st_store<T##k>(launch.operand##k.data + to * launch.operand##k.own_strides[0], \
                   st_cast<T##k>((st_i64)(rest - next * extent)));                 \
    rest = next;                                                                   \
  }
    ST_OUTPUTS_BACKWARDS(ST_COORDINATE)
  }
}

// Element `item` of the output.
ST_FN void copy_listed(const Launch& launch, const st_i64* listed, st_i64 item) {
  if constexpr (!kIndices) {
    if (launch.fault[0] != 0) return;
    // Neighbouring items go along the axis of the output with the smaller stride.
    const st_i64 count = launch.ST_LAST.own_extents[0], step = launch.ST_LAST.own_strides[0];
    const bool along = launch.count == 1 || (step > 0 && step < launch.ST_LAST.strides[kRank - 1]);
    const st_i64 to = along ? item % count : item / launch.count;
    const Place place = st_place(launch, along ? item / count : item % launch.count);
    const st_i64 number = listed[to];
    const T1 value =
        st_load<T1>(st_at(launch.operand1, place) + st_own_offset(launch.operand1, number));
    st_store<TLast>(st_at(launch.ST_LAST, place) + to * step, st_convert<TLast>(value));
  }
}
