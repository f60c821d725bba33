#include "server/ops/kernel_aggregate.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/shape.h"

namespace stride::ops {
namespace {

using Aggregate = v1::KernelArgument::Aggregate;
using Member = v1::KernelArgument::Member;

constexpr uint64_t kPointerBytes = 8;

std::string MemberField(std::string_view field, int member) {
  return absl::StrCat(std::string(field), ".aggregate.members[", member, "]");
}

uint64_t BytesOf(const Member& member) {
  return member.value_case() == Member::kRaw ? member.raw().size() : kPointerBytes;
}

}  // namespace

wire::Operand PointerTo(const ArrayInfo& array, uint32_t slot) {
  wire::Operand operand;
  operand.set_arena(slot);
  operand.set_offset(static_cast<uint64_t>(array.offset));
  operand.set_dtype(static_cast<int>(array.dtype));
  operand.mutable_strides()->Assign(array.strides.begin(), array.strides.end());
  return operand;
}

absl::Status CheckAggregate(const Aggregate& aggregate, std::string_view field) {
  if (aggregate.size_bytes() == 0 || aggregate.size_bytes() > kMaxParameterBytes) {
    return InvalidField(v1::ERROR_REASON_SIZE_LIMIT,
                        absl::StrCat(std::string(field), ".aggregate.size_bytes"),
                        absl::StrCat("a struct has from 1 to ", kMaxParameterBytes,
                                     " bytes; given: ", aggregate.size_bytes()));
  }
  struct Place {
    uint64_t begin, end;
    int member;
  };
  std::vector<Place> places;
  for (int m = 0; m < aggregate.members_size(); ++m) {
    const Member& member = aggregate.members(m);
    if (member.value_case() == Member::VALUE_NOT_SET) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, MemberField(field, m),
                          "the member is empty: array, new_array or raw");
    }
    const uint64_t begin = member.offset_bytes(), end = begin + BytesOf(member);
    if (end > aggregate.size_bytes()) {
      return InvalidField(v1::ERROR_REASON_SIZE_MISMATCH,
                          absl::StrCat(MemberField(field, m), ".offset_bytes"),
                          absl::StrCat("the member ends beyond the struct: at byte ", end, " of ",
                                       aggregate.size_bytes()));
    }
    places.push_back({begin, end, m});
  }
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i].begin >= places[i - 1].end) continue;
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD,
                        absl::StrCat(MemberField(field, places[i].member), ".offset_bytes"),
                        absl::StrCat("the member overlaps members[", places[i - 1].member,
                                     "], which ends at byte ", places[i - 1].end));
  }
  return absl::OkStatus();
}

absl::Status BindAggregate(const Aggregate& aggregate, absl::Span<const Input> inputs,
                           std::string_view field, uint32_t* next_array, uint32_t* next_output,
                           wire::KernelArgument::Aggregate* bound) {
  std::string* raw = bound->mutable_raw();
  raw->assign(aggregate.size_bytes(), '\0');
  for (int m = 0; m < aggregate.members_size(); ++m) {
    const Member& member = aggregate.members(m);
    if (member.value_case() == Member::kRaw) {
      raw->replace(member.offset_bytes(), member.raw().size(), member.raw());
      continue;
    }
    auto* pointer = bound->add_pointers();
    pointer->set_offset(member.offset_bytes());
    if (member.value_case() == Member::kArray) {
      if (*next_array >= inputs.size() || !inputs[*next_array]) {
        return InvalidField(v1::ERROR_REASON_INVALID_FIELD, MemberField(field, m) + ".array",
                            "the member's array is missing");
      }
      *pointer->mutable_array() = PointerTo(*inputs[*next_array], *next_array);
      ++*next_array;
      continue;
    }
    auto array = ReadSpec(member.new_array().spec(), MemberField(field, m) + ".new_array.spec");
    if (!array.ok()) return array.status();
    *pointer->mutable_array() = PointerTo(*array, (*next_output)++);
  }
  return absl::OkStatus();
}

}  // namespace stride::ops
