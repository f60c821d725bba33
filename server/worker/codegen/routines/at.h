// A function applied in place where indices lead, once for each of them, in order. Operands:
// values, indices, output (own axes: those that are indexed; the loop's other axes are those along
// which it has a stride). Programs: value's type to the accumulator's, output's to that, the
// function, and back to the output's type. Option 2: 1, the value is scalar 0; 2, there is none,
// and the function has one argument; then operand 0 is not read. Pass 0 finds faults, and 1, an
// item for each place elsewhere, goes through all indices, of which there are pass[2]. A GPU sorts
// many indices by target (targets.h).

// The place with these numbers along the axes of indices, and along the others.
ST_FN Place join(const Launch& launch, st_u64 among, st_u64 elsewhere) {
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

// What the function takes beside the element.
template <int kForm>
ST_FN Program0 value_at(const Launch& launch, const Place& place) {
  if constexpr (kForm == 2) {
    return Program0();
#if ST_SCALARS
  } else if constexpr (kForm == 1) {
    return run0(st_load<Argument0>(launch.scalars[0]));
#endif
  } else {
    return run0(st_convert<Argument0>(st_load<T0>(st_at(launch.operand0, place))));
  }
}
template <int kForm, class Element>
ST_FN Program2 result_of(Element element, Program0 value) {
  if constexpr (kForm == 2) {
    return run2(element);
  } else {
    return run2(element, value);
  }
}
ST_FN TLast applied(TLast element, Program0 value) {
  return run3(result_of<kOption2>(run1(element), value));
}

ST_FN void phase0(const Launch& launch, st_i64 item) {
  Target target;
  st_target(launch, launch.ST_LAST, st_place(launch, item), &target);
}

ST_FN void phase1(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  for (st_i64 among = 0; among < launch.pass[2]; ++among) {
    const Place place = join(launch, (st_u64)among, (st_u64)item);
    Target target;
    if (!st_target(launch, launch.ST_LAST, place, &target)) continue;
    char* const out = st_at(launch.ST_LAST, place) + target.offset;
    st_store<TLast>(out, applied(st_load<TLast>(out), value_at<kOption2>(launch, place)));
  }
}
