// A function applied in place where indices lead, once for each of them, in order. Operands:
// values, indices, output (own axes: those that are indexed; the loop's other axes are those along
// which it has a stride). Programs: value's type to the accumulator's, output's to that, the
// function, and back to the output's type. Option 2: 1, the value is scalar 0; 2, there is none,
// and the function has one argument; then operand 0 is not read. Pass 0 finds faults. Then either
// 4, an item for each place elsewhere, goes through all indices; or 1 clears a table of pass[0]
// slots, 2 enters each index in the list of its target, 3 sorts each list, and 5 applies it, an
// item for each slot and place elsewhere. With pass[1] the table has a slot for each target, else
// it is a hash table, and pass[0] a power of two. pass[2]: places among the indices.

struct Slot {
  st_u64 key;   // the target's; all ones: free
  st_u64 head;  // 1 + the first of the list's places among the indices; 0: none
};

#if ST_CUDA
ST_FN st_u64 st_exchange(st_u64* at, st_u64 value) { return atomicExch(at, value); }
#else
ST_FN st_u64 st_exchange(st_u64* at, st_u64 value) {
  return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}
#endif

// The place's number along the axes of indices, and along the others; and back.
ST_FN void split(const Launch& launch, const Place& place, st_u64* among, st_u64* elsewhere) {
  *among = *elsewhere = 0;
#pragma unroll
  for (int axis = 0; axis < kRank; ++axis) {
    st_u64& number = launch.ST_LAST.strides[axis] == 0 ? *among : *elsewhere;
    number = number * (st_u64)launch.extents[axis] + (st_u64)place.at[axis];
  }
}
ST_FN Place join(const Launch& launch, st_u64 among, st_u64 elsewhere) {
  Place place;
#pragma unroll
  for (int axis = kRank - 1; axis >= 0; --axis) {
    st_u64& number = launch.ST_LAST.strides[axis] == 0 ? among : elsewhere;
    const st_u64 extent = (st_u64)launch.extents[axis];
    place.at[axis] = (Index)(number % extent);
    number /= extent;
  }
  return place;
}

ST_FN st_u64* next_of(const Launch& launch) {
  return (st_u64*)((Slot*)launch.scratch + launch.pass[0]);
}
ST_FN Slot* slot_of(const Launch& launch, st_u64 key) {
  Slot* const table = (Slot*)launch.scratch;
  if (launch.pass[1]) return table + key;
  const st_u64 mixed = key * 0x9E3779B97F4A7C15ull, mask = (st_u64)launch.pass[0] - 1;
  for (st_u64 i = (mixed ^ mixed >> 32) & mask;; i = (i + 1) & mask) {
    const st_u64 found = st_swap_if(&table[i].key, ~0ull, key);
    if (found == ~0ull || found == key) return table + i;
  }
}

template <int kForm, class Element>
ST_FN Program2 applied(const Launch& launch, const Place& place, Element element) {
  if constexpr (kForm == 2) {
    return run2(element);
#if ST_SCALARS
  } else if constexpr (kForm == 1) {
    return run2(element, run0(st_load<Argument0>(launch.scalars[0])));
#endif
  } else {
    const T0 value = st_load<T0>(st_at(launch.operand0, place));
    return run2(element, run0(st_convert<Argument0>(value)));
  }
}
ST_FN void apply(const Launch& launch, const Place& place) {
  Target target;
  if (!st_target(launch, launch.ST_LAST, place, &target)) return;
  char* const out = st_at(launch.ST_LAST, place) + target.offset;
  const Program1 element = run1(st_load<TLast>(out));
  st_store<TLast>(out, run3(applied<kOption2>(launch, place, element)));
}

ST_FN void phase0(const Launch& launch, st_i64 item) {
  Target target;
  st_target(launch, launch.ST_LAST, st_place(launch, item), &target);
}

ST_FN void phase1(const Launch& launch, st_i64 item) {
  ((Slot*)launch.scratch)[item] = Slot{~0ull, 0};
}

ST_FN void phase2(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  Target target;
  if (!st_target(launch, launch.ST_LAST, join(launch, (st_u64)item, 0), &target)) return;
  next_of(launch)[item] = st_exchange(&slot_of(launch, target.number)->head, (st_u64)item + 1);
}

// A merge sort of the list, by place: runs of 1, 2, 4, ... are merged until there is one.
ST_FN void phase3(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  st_u64* const next = next_of(launch);
  st_u64& head = ((Slot*)launch.scratch)[item].head;
  for (st_u64 width = 1, merges = 2; merges > 1; width *= 2) {
    merges = 0;
    st_u64 left = head, tail = 0;
    head = 0;
    while (left != 0) {
      ++merges;
      st_u64 right = left, num_left = 0, num_right = width;
      while (num_left < width && right != 0) {
        ++num_left;
        right = next[right - 1];
      }
      while (num_left > 0 || (num_right > 0 && right != 0)) {
        const bool from_left = num_left > 0 && (num_right == 0 || right == 0 || left < right);
        const st_u64 taken = from_left ? left : right;
        if (from_left) {
          left = next[left - 1];
          --num_left;
        } else {
          right = next[right - 1];
          --num_right;
        }
        (tail == 0 ? head : next[tail - 1]) = taken;
        tail = taken;
      }
      left = right;
    }
    if (tail != 0) next[tail - 1] = 0;
  }
}

ST_FN void phase4(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  for (st_i64 among = 0; among < launch.pass[2]; ++among)
    apply(launch, join(launch, (st_u64)among, (st_u64)item));
}

ST_FN void phase5(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  const st_u64 slots = (st_u64)launch.pass[0];
  const st_u64* const next = next_of(launch);
  const st_u64 elsewhere = (st_u64)item / slots;
  st_u64 at = ((const Slot*)launch.scratch)[(st_u64)item % slots].head;
  for (; at != 0; at = next[at - 1]) apply(launch, join(launch, at - 1, elsewhere));
}
