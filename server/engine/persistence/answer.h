#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/message.h"
#include "google/protobuf/repeated_ptr_field.h"

// Bounds of answers about resources that clients made. A resource is as large as its requests, and
// the number of resources is unbounded. gRPC asserts that an answer is below 2 GiB; its clients
// accept 4 MiB by default.
namespace stride::engine {

// Most bytes of a page with more than one entry.
inline constexpr size_t kMaxPageBytes = size_t{1} << 20;
// Most bytes of an answer about one resource: with its envelope it fits a message of 4 MiB.
inline constexpr size_t kMaxAnswerBytes = (size_t{4} << 20) - 256;

// Fields of a message, by their paths (`log`, `ufunc.body`). The message has a field `omitted`.
class OmittedFields {
 public:
  OmittedFields(std::initializer_list<const char*> paths) : paths_(paths.begin(), paths.end()) {}

  // Copies all other fields. `to` is empty; its `omitted` names the fields that `from` has and `to`
  // has not.
  void CopyWithout(const google::protobuf::Message& from, google::protobuf::Message* to) const;
  // Clears these fields in order until the message is at most kMaxAnswerBytes. `omitted` names the
  // cleared ones.
  void Fit(google::protobuf::Message* message) const;

 private:
  void Copy(const google::protobuf::Message& from, const std::string& prefix,
            google::protobuf::Message* to) const;
  std::vector<std::string> paths_;
};

// Fills a page with entries, up to its bounds of number and bytes. `write(entry, message)` fills in
// one. The token of the next page is the last id of this one, so additions and removals between
// pages move nothing. The token is empty after the last page.
template <typename Entry, typename Message, typename Write>
void WritePage(const std::vector<std::pair<std::string, Entry>>& entries, int page_size,
               Write write, google::protobuf::RepeatedPtrField<Message>* page, std::string* next) {
  size_t bytes = 0;
  for (const auto& [id, entry] : entries) {
    Message* const message = page->Add();
    write(entry, message);
    bytes += message->ByteSizeLong();
    const bool full = page->size() > page_size || (page->size() > 1 && bytes > kMaxPageBytes);
    if (full) {
      page->RemoveLast();
      return;
    }
    *next = id;
  }
  next->clear();
}

}  // namespace stride::engine
