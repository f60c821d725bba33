#pragma once

#include <sys/socket.h>

#include <vector>

#include "absl/types/span.h"
#include "server/base/unique_fd.h"

namespace stride {

// Descriptors that travel with a message over a Unix socket (SCM_RIGHTS).

// Puts them, at least one, into the header of a message that is to be sent. `control` is aligned as
// cmsghdr, zero, of CMSG_SPACE(descriptors.size() * sizeof(int)) bytes or more, and outlives the
// sending.
void PutDescriptors(absl::Span<const int> descriptors, char* control, msghdr* header);

// Adds those that came with a message.
void TakeDescriptors(msghdr& header, std::vector<UniqueFd>* descriptors);

}  // namespace stride
