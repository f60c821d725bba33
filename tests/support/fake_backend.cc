// A daemon without devices links this instead of the broker and the scheduler: see FakeEngine.

#include <unistd.h>

#include <cstdlib>

#include "server/broker/broker.h"
#include "tests/support/fake_engine.h"

namespace stride {
namespace {

class FakeBroker : public broker::Broker {
 public:
  const std::vector<wire::DeviceDescription>& devices() const override { return devices_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  absl::StatusOr<std::shared_ptr<broker::Worker>> StartWorker(int device) override {
    return absl::UnimplementedError("the fake broker has no workers");
  }
  broker::Compiler& compiler() override { std::abort(); }
  // For workers blocked in a driver: this never returns.
  void Shutdown() override {
    while (std::getenv("STRIDE_FAKE_SLOW_WORKERS") != nullptr) pause();
  }

 private:
  std::vector<wire::DeviceDescription> devices_;
  std::vector<std::string> notes_ = {"a fake broker: no devices were looked for"};
};

}  // namespace

absl::StatusOr<std::unique_ptr<broker::Broker>> broker::Broker::Create(BrokerOptions options) {
  return std::make_unique<FakeBroker>();
}

std::unique_ptr<engine::Engine> engine::Engine::Create(EngineOptions options,
                                                       broker::Broker* broker,
                                                       fd_store::FdStore* fd_store,
                                                       std::vector<NamedFd> kept,
                                                       durable::DurableStore*) {
  auto engine = std::make_unique<testing::FakeEngine>();
  // Then work always remains, and a drain never ends by itself.
  if (std::getenv("STRIDE_FAKE_HOLD") != nullptr) engine->operations().Hold();
  if (std::getenv("STRIDE_FAKE_STUCK") != nullptr) engine->Stick();
  return engine;
}

}  // namespace stride
