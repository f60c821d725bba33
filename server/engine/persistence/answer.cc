#include "server/engine/persistence/answer.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/field_mask.pb.h"
#include "google/protobuf/util/field_mask_util.h"

namespace stride::engine {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::FieldMask;
using google::protobuf::Message;
using google::protobuf::util::FieldMaskUtil;

bool Has(const Message& message, const FieldDescriptor* field) {
  const auto* reflection = message.GetReflection();
  return field->is_repeated() ? reflection->FieldSize(message, field) > 0
                              : reflection->HasField(message, field);
}

// The message that contains the path's last field, and that field; null: the field is absent.
struct Place {
  const Message* message = nullptr;
  const FieldDescriptor* field = nullptr;
};
Place Find(const Message& message, const std::string& path) {
  Place place{&message, nullptr};
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    if (place.field != nullptr)
      place.message = &place.message->GetReflection()->GetMessage(*place.message, place.field);
    place.field = place.message->GetDescriptor()->FindFieldByName(std::string(name));
    if (place.field == nullptr || !Has(*place.message, place.field)) return {};
  }
  return place;
}

void NoteOmitted(const std::string& path, Message* message) {
  message->GetReflection()->AddString(message, message->GetDescriptor()->FindFieldByName("omitted"),
                                      path);
}

}  // namespace

void OmittedFields::CopyWithout(const Message& from, Message* to) const {
  Copy(from, "", to);
  for (const std::string& path : paths_) {
    if (Find(from, path).message != nullptr) NoteOmitted(path, to);
  }
}

void OmittedFields::Copy(const Message& from, const std::string& prefix, Message* to) const {
  std::vector<const FieldDescriptor*> fields;
  from.GetReflection()->ListFields(from, &fields);
  FieldMask whole;
  for (const FieldDescriptor* field : fields) {
    const std::string path = absl::StrCat(prefix, field->name());
    auto is_this = [&](const std::string& other) { return other == path; };
    auto is_within = [&](const std::string& other) {
      return absl::StartsWith(other, absl::StrCat(path, "."));
    };
    if (std::any_of(paths_.begin(), paths_.end(), is_this)) continue;
    if (std::any_of(paths_.begin(), paths_.end(), is_within)) {
      Copy(from.GetReflection()->GetMessage(from, field), absl::StrCat(path, "."),
           to->GetReflection()->MutableMessage(to, field));
    } else {
      whole.add_paths(field->name());
    }
  }
  FieldMaskUtil::MergeMessageTo(from, whole, {}, to);
}

void OmittedFields::Fit(Message* message) const {
  for (const std::string& path : paths_) {
    if (message->ByteSizeLong() <= kMaxAnswerBytes) return;
    const Place place = Find(*message, path);
    if (place.message == nullptr) continue;
    // The holder is within `message`, which this function may change.
    auto* const holder = const_cast<Message*>(place.message);
    holder->GetReflection()->ClearField(holder, place.field);
    NoteOmitted(path, message);
  }
}

}  // namespace stride::engine
