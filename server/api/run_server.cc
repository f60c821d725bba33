#include "server/api/run_server.h"

namespace stride::api {
namespace {

// Calls that may arrive before a thread handles the first of them; more wait in gRPC.
constexpr int kAwaited = 64;

}  // namespace

void RunServer::Start() {
  for (int i = 0; i < kAwaited; ++i) RunCall::Await(context_);
  queue_.Start();
}

}  // namespace stride::api
