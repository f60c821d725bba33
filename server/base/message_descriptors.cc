#include "server/base/message_descriptors.h"

#include <cstring>

namespace stride {

void PutDescriptors(absl::Span<const int> descriptors, char* control, msghdr* header) {
  header->msg_control = control;
  header->msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
  cmsghdr* c = CMSG_FIRSTHDR(header);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
  std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size() * sizeof(int));
}

void TakeDescriptors(msghdr& header, std::vector<UniqueFd>* descriptors) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      descriptors->emplace_back(fd);
    }
  }
}

}  // namespace stride
