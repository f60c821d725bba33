#pragma once

#include <sys/socket.h>

#include <vector>

#include "absl/types/span.h"
#include "server/base/unique_fd.h"

namespace stride {

// Descriptors that travel with a message over a Unix socket (SCM_RIGHTS).

// Puts at least one descriptor into the header of a message before it is sent. `control` is aligned
// as cmsghdr, zero, has CMSG_SPACE(descriptors.size() * sizeof(int)) bytes or more, and must
// outlive the send.
void PutDescriptors(absl::Span<const int> descriptors, char* control, msghdr* header);

// Adds the descriptors received with a message.
void TakeDescriptors(msghdr& header, std::vector<UniqueFd>* descriptors);

}  // namespace stride
