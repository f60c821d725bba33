// Blocking calls as Futures.
#pragma once

#include <memory>
#include <utility>

#include "client/cpp/src/core.h"
#include "stride/future.h"

namespace stride::internal {

// Runs `work(options)` on one of the core's threads. The options' cancellation, created if absent,
// cancels it.
template <typename T, typename Options, typename Work>
Future<T> RunInBackground(Core& core, Options options, Work work) {
  if (!options.cancellation) options.cancellation.emplace();
  auto state = std::make_shared<typename Future<T>::State>();
  Future<T> future(state, *options.cancellation);
  const Cancellation cancellation = *options.cancellation;
  core.InBackground(cancellation, [state, options = std::move(options), work = std::move(work)] {
    auto result = work(options);
    std::lock_guard lock(state->mutex);
    state->result.emplace(std::move(result));
    state->ready.notify_all();
  });
  return future;
}

}  // namespace stride::internal
