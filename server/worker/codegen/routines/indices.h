// Elements by index arrays: operands from 1 to the last but one have indices into the own axes of
// one operand. Option 0: v1::IndexMode.
enum { kWrap = 2, kClip = 3 };

// The index's position on its axis of n elements; -1, and a fault, when it is out of range.
template <class T>
ST_FN st_i64 st_resolve(const Launch& launch, T value, st_i64 n) {
  const bool beyond = !st_traits<T>::is_signed && (st_u64)value > 0x7FFFFFFFFFFFFFFFull;
  const st_i64 index = beyond ? 0x7FFFFFFFFFFFFFFFll : (st_i64)value;
  if (n > 0) {
    if (kOption0 == kClip) return index < 0 ? 0 : index < n ? index : n - 1;
    if (kOption0 == kWrap) {
      if (beyond) return (st_i64)((st_u64)value % (st_u64)n);
      const st_i64 rest = index % n;
      return rest < 0 ? rest + n : rest;
    }
    if (index >= 0 && index < n) return index;
    if (index < 0 && index >= -n) return index + n;
  }
  st_note_fault(launch, kIndexOutOfRange, index, n);
  return -1;
}

// The element at this place's indices among the own axes: byte offset, and index in C order. False
// when one is out of range.
struct Target {
  st_i64 offset;
  st_u64 number;
};
template <class O>
ST_FN bool st_target(const Launch& launch, const O& indexed, const Place& place, Target* target) {
  target->offset = 0;
  target->number = 0;
#define ST_INDEX(k)                                                                             \
  {                                                                                             \
    const st_i64 n = indexed.own_extents[k - 1];                                                \
    const st_i64 index = st_resolve(launch, st_load<T##k>(st_at(launch.operand##k, place)), n); \
    if (index < 0) return false;                                                                \
    target->offset += index * indexed.own_strides[k - 1];                                       \
    target->number = target->number * (st_u64)n + (st_u64)index;                                \
  }
  ST_MIDDLE(ST_INDEX)
  return true;
}

// The place with these linear indices: along the axes of indices, where the last operand has no
// stride, and along the others.
ST_FN Place st_place_of(const Launch& launch, st_u64 among, st_u64 elsewhere) {
  Place place;
#pragma unroll
  for (int axis = kRank - 1; axis >= 0; --axis) {
    const bool of_indices = launch.ST_LAST.strides[axis] == 0;
    const st_u64 extent = (st_u64)launch.extents[axis], number = of_indices ? among : elsewhere;
    if (axis == 0) {
      place.at[axis] = (Index)number;
      break;
    }
    place.at[axis] = (Index)(number % extent);
    if (of_indices) {
      among = number / extent;
    } else {
      elsewhere = number / extent;
    }
  }
  return place;
}

// The place's linear index along the axes of indices, and along the others.
ST_FN void st_split(const Launch& launch, const Place& place, st_u64* among_indices,
                    st_u64* elsewhere) {
  *among_indices = *elsewhere = 0;
#pragma unroll
  for (int axis = 0; axis < kRank; ++axis) {
    const bool of_indices = launch.ST_LAST.strides[axis] == 0;
    st_u64& number = of_indices ? *among_indices : *elsewhere;
    number = number * (st_u64)launch.extents[axis] + (st_u64)place.at[axis];
  }
}
