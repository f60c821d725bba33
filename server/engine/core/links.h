#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "server/wire/worker.pb.h"

namespace stride::engine {

// The link between two devices, by their ids; null: unknown, and bytes go through the host.
inline const wire::Link* FindLink(const std::vector<wire::Link>& links, const std::string& from,
                                  const std::string& to) {
  auto found = std::find_if(links.begin(), links.end(), [&](const wire::Link& link) {
    return link.from() == from && link.to() == to;
  });
  return found == links.end() ? nullptr : &*found;
}

// Estimated seconds of a copy: at the link's measured rate, or through the host at the devices'
// `rate` in bytes per second.
inline double SecondsOver(const wire::Link* link, double bytes, double rate) {
  constexpr double kStartSeconds = 20e-6;
  if (link != nullptr && link->bytes_per_second() > 0) rate = link->bytes_per_second();
  return kStartSeconds + bytes / std::max(1e8, rate);
}

}  // namespace stride::engine
