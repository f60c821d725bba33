// Applies a function in place at indexed elements, once per index, in order. Operands: values,
// indices, output (own axes: the indexed ones; the loop's other axes are those along which it has a
// stride). Programs: value's type to the accumulator's, output's to that, the function, and back to
// the output's type. Option 2: 1, the value is scalar 0; 2, there is no value and the function has
// one argument (operand 0 is then not read). Pass 0 checks the indices, on a CPU in chunks of
// pass[0] places. Pass 1 has an item per place of the other axes and handles all pass[2] indices in
// order. A GPU sorts many indices by target (targets.h).

// The function's second argument.
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

#if ST_CUDA
ST_FN void phase0(const Launch& launch, st_i64 item) {
  Target target;
  st_target(launch, launch.ST_LAST, st_place(launch, item), &target);
}
#else
#define ST_ONE(k) +1
constexpr bool kLine = kRank == 1 && (0 ST_MIDDLE(ST_ONE)) == 1;  // one array of indices, one axis

// Whether all indices [begin, end) of a line are valid; a loop for vectors.
template <class Load>
ST_FN bool all_within(st_i64 begin, st_i64 end, st_i64 n, const Load& load) {
  bool within = true;
  for (st_i64 i = begin; i < end; ++i) {
    const T1 value = load(i);
    within &= st_traits<T1>::is_signed ? (st_i64)value < n && (st_i64)value >= -n
                                       : (st_u64)value < (st_u64)n;
  }
  return within;
}
ST_FN void phase0(const Launch& launch, st_i64 item) {
  const st_i64 begin = item * launch.pass[0], limit = begin + launch.pass[0];
  const st_i64 end = limit < launch.count ? limit : launch.count;
  if (kLine && kOption0 != kClip && kOption0 != kWrap) {
    const st_i64 n = launch.ST_LAST.own_extents[0], step = launch.operand1.strides[0];
    const char* const from = launch.operand1.data;
    if (step == (st_i64)sizeof(T1)) {
      if (all_within(begin, end, n, [&](st_i64 i) { return ((const T1*)from)[i]; })) return;
    } else if (all_within(begin, end, n, [&](st_i64 i) { return st_load<T1>(from + i * step); })) {
      return;
    }
  }
  Target target;
  for (st_i64 i = begin; i < end; ++i)
    st_target(launch, launch.ST_LAST, st_place(launch, i), &target);
}
#endif

ST_FN void go_through(const Launch& launch, st_i64 item) {
  for (st_i64 among = 0; among < launch.pass[2]; ++among) {
    const Place place = st_place_of(launch, (st_u64)among, (st_u64)item);
    Target target;
    if (!st_target(launch, launch.ST_LAST, place, &target)) continue;
    char* const out = st_at(launch.ST_LAST, place) + target.offset;
    st_store<TLast>(out, applied(st_load<TLast>(out), value_at<kOption2>(launch, place)));
  }
}
#if !ST_CUDA
// A line of indices and values without gaps. Copies the launch, so that the compiler knows that
// stores of elements do not change it.
ST_FN void go_along(const Launch& launch) {
  const Launch own = launch;
  const st_i64 n = own.ST_LAST.own_extents[0], step = own.ST_LAST.own_strides[0];
  const T1* const indices = (const T1*)own.operand1.data;
  char* const to = own.ST_LAST.data;
  for (st_i64 i = 0; i < own.pass[2]; ++i) {
    const st_i64 index = st_resolve(own, indices[i], n);
    if (index < 0) continue;
    const Place place = {{(Index)i}};
    char* const out = to + index * step;
    st_store<TLast>(out, applied(st_load<TLast>(out), value_at<kOption2>(own, place)));
  }
}
#endif

ST_FN void phase1(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
#if !ST_CUDA
  if (kLine && launch.ST_LAST.strides[0] == 0 && launch.operand1.strides[0] == (st_i64)sizeof(T1))
    return go_along(launch);
#endif
  go_through(launch, item);
}
