// Histogram. Operands, each with only its own axes: input, edges, weights, output; the input
// replaces a missing operand. Option 0: the bins have equal width, between scalars 1 and 2. Option
// 1: there are weights, which group.h sums. Programs: weight's type to the accumulator's, addition,
// accumulator's to the output's, then input's and edges' type to the type of comparison. Without
// weights the passes are tally.h's.
constexpr bool kUniform = kOption0 != 0;

ST_FN st_i64 num_elements(const Launch& launch) { return st_own_count(launch.operand0); }

// The lower edge of bin i as in NumPy's linspace, in the input's type if that is a float.
template <class T>
ST_FN double rounded(double x) {
  if constexpr (st_traits<T>::kind == ST_FLOAT || st_traits<T>::kind == ST_HALF) {
    return st_cast<double>(st_cast<T>(x));
  } else {
    return x;
  }
}
struct Bins {
  double low, high, step;
  st_i64 count;
};
ST_FN Bins bins_of(const Launch& launch) {
  Bins bins;
  bins.low = st_load<double>(launch.scalars[1]);
  bins.high = st_load<double>(launch.scalars[2]);
  bins.count = launch.ST_LAST.own_extents[0];
  bins.step = (bins.high - bins.low) / (double)bins.count;
  return bins;
}
ST_FN double edge_of(const Bins& bins, st_i64 i) {
  return rounded<T0>(i == bins.count ? bins.high : (double)i * bins.step + bins.low);
}
// The bin; negative: none.
ST_FN st_i64 uniform_bin(const Launch& launch, double x) {
  const Bins bins = bins_of(launch);
  if (!(x >= edge_of(bins, 0) && x <= edge_of(bins, bins.count))) return -1;
  // The division gives an estimate, and the edges decide. Where they are too close for it, the
  // edges are searched.
  const double guess = (x - bins.low) / bins.step;
  st_i64 low = 0, high = bins.count;
  const st_i64 near = guess < (double)bins.count ? (guess > 0 ? (st_i64)guess : 0) : bins.count - 1;
  if (near > 0 && x >= edge_of(bins, near - 1)) low = near - 1;
  if (near + 2 < bins.count && x < edge_of(bins, near + 2)) high = near + 2;
  while (high - low > 1) {
    const st_i64 middle = low + (high - low) / 2;
    if (x < edge_of(bins, middle)) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return low;
}
ST_FN Program4 given_edge(const Launch& launch, st_i64 i) {
  return run4(st_load<T1>(launch.operand1.data + i * launch.operand1.own_strides[0]));
}
ST_FN st_i64 edged_bin(const Launch& launch, Program3 x) {
  const st_i64 count = launch.ST_LAST.own_extents[0];
  st_i64 low = 0, high = count + 1;  // number of edges that are not above x
  while (low < high) {
    const st_i64 middle = (low + high) / 2;
    if (given_edge(launch, middle) <= x) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low <= count) return low - 1;
  return x <= given_edge(launch, count) ? count - 1 : -1;
}
template <bool kEven>
ST_FN st_i64 bin_by(const Launch& launch, T0 value) {
  if constexpr (kEven) {
    return uniform_bin(launch, st_cast<double>(value));
  } else {
    return edged_bin(launch, run3(value));
  }
}
ST_FN st_i64 bin_of(const Launch& launch, st_i64 i) {
  const char* const at = launch.operand0.data + st_own_offset(launch.operand0, i);
  return bin_by<kUniform>(launch, st_load<T0>(at));
}
ST_FN st_i64 group_of(const Launch& launch, st_i64 i) {
  const st_i64 bin = bin_of(launch, i);
  return bin < 0 ? launch.ST_LAST.own_extents[0] : bin;
}
#if !ST_CUDA
constexpr int kGroupsTogether = 128;
// Most values are in the bin that a multiplication yields; the others are searched one by one.
template <bool kEven>
ST_FN void find_groups(const Launch& launch, st_i64 first, int some, st_i64* groups) {
  if constexpr (kEven) {
    double values[kGroupsTogether];
    const st_i64 step = launch.operand0.own_strides[0];
    if (Operand0::kOwn == 1 && step == (st_i64)sizeof(T0)) {
      const char* const from = launch.operand0.data + first * step;
      for (int j = 0; j < some; ++j)
        values[j] = st_cast<double>(st_load<T0>(from + j * sizeof(T0)));
    } else {
      for (int j = 0; j < some; ++j)
        values[j] = st_cast<double>(
            st_load<T0>(launch.operand0.data + st_own_offset(launch.operand0, first + j)));
    }
    const Bins bins = bins_of(launch);
    const double count = (double)bins.count, last = count - 1, inverse = 1 / bins.step;
    const double end = edge_of(bins, bins.count);
    int missed = 0;
    for (int j = 0; j < some; ++j) {
      const double x = values[j], guess = (x - bins.low) * inverse;
      const double near = guess < count ? (guess > 0 ? __builtin_floor(guess) : 0) : last;
      const double low = rounded<T0>(near * bins.step + bins.low);
      const double high = near < last ? rounded<T0>((near + 1) * bins.step + bins.low) : end;
      const bool hit = x >= low && (near < last ? x < high : x <= high);
      groups[j] = hit ? (st_i64)near : -1;
      missed += !hit;
    }
    for (int j = 0; j < some && missed > 0; ++j) {
      if (groups[j] < 0) groups[j] = group_of(launch, first + j);
    }
  } else {
    Program3 values[kGroupsTogether];
    Index low[kGroupsTogether];
    for (int j = 0; j < some; ++j)
      values[j] =
          run3(st_load<T0>(launch.operand0.data + st_own_offset(launch.operand0, first + j)));
    const st_i64 count = launch.ST_LAST.own_extents[0];
    st_bisect_together<kGroupsTogether>(some, count + 1, low, [&](int j, Index i) {
      return given_edge(launch, (st_i64)i) <= values[j];
    });
    const Program4 end = given_edge(launch, count);
    for (int j = 0; j < some; ++j) {
      const bool last = (st_i64)low[j] > count && values[j] <= end;
      const st_i64 none = count;
      groups[j] = last                                    ? count - 1
                  : low[j] == 0 || (st_i64)low[j] > count ? none
                                                          : (st_i64)low[j] - 1;
    }
  }
}
ST_FN void groups_of(const Launch& launch, st_i64 first, int some, st_i64* groups) {
  find_groups<kUniform>(launch, first, some, groups);
}
#endif
ST_FN Program0 element(const Launch& launch, const Place&, st_i64 i) {
  return run0(st_load<T2>(launch.operand2.data + st_own_offset(launch.operand2, i)));
}
ST_FN void store_count(const Launch& launch, st_i64 bin, st_u64 count) {
  st_store<TLast>(launch.ST_LAST.data + bin * launch.ST_LAST.own_strides[0],
                  st_cast<TLast>((st_i64)count));
}
