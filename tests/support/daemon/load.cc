#include "tests/support/daemon/load.h"

#include <cstdio>
#include <numeric>
#include <random>
#include <stdexcept>

#include "gtest/gtest.h"
#include "tests/support/daemon/expect.h"

namespace stride::testing {
namespace {

using std::chrono::milliseconds;

constexpr int kIncrements = 4;

// A permitted error of work that a death interrupted.
bool IsLoss(const Error& error) {
  return error.code == Code::kUnavailable || error.reason == "WORKER_LOST";
}

int64_t ArrayBytes(Client& client) {
  int64_t bytes = -1;
  Must(client.WatchDevices({}, [&](const std::vector<DeviceSample>& samples) {
    bytes = 0;
    for (const DeviceSample& sample : samples) bytes += sample.array_bytes;
    return false;
  }));
  return bytes;
}

}  // namespace

void Load::Start() {
  for (auto run : {&Load::RunArrays, &Load::RunChains, &Load::RunJobs}) {
    threads_.emplace_back([this, run] {
      try {
        (this->*run)();
      } catch (const std::exception& error) {
        ADD_FAILURE() << options_.tenant << ": " << error.what();
      }
    });
  }
}

void Load::Stop() {
  stopping_ = true;
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void Load::Check() {
  Client client = Connect();
  for (const auto& [id, content] : named_) CheckArray(client, id, content);
  for (const auto& [name, id] : jobs_) CheckJob(client, name, id);
  std::printf("  %s: %zu named arrays, %d chains, %zu jobs (%d were changing an array in place)\n",
              options_.tenant.c_str(), named_.size(), num_chains_.load(), jobs_.size(), num_lost_);
  DeleteAll(client);
}

Client Load::Connect() const {
  return Must(Client::Connect({.address = daemon_.address(), .token = options_.token}));
}

std::string Load::Named(const std::string& id) const {
  return "tenants/" + options_.tenant + "/arrays/" + id;
}

void Load::RunArrays() {
  Client client = Connect();
  std::mt19937 random(options_.seed);
  for (int i = 0; !stopping_; ++i) {
    const std::string id = "a" + std::to_string(i);
    std::vector<double> content(1 + random() % 40000);
    for (double& value : content) value = random();
    PutOptions options;
    options.name = Named(id);
    auto put = Persist(
        [&] { return client.Put(content, {static_cast<int64_t>(content.size())}, options); });
    // The response for an accepted one may have been lost with the daemon.
    if (!put && put.error().reason != "ALREADY_EXISTS" && !IsLoss(put.error()))
      throw std::runtime_error(put.error().ToString());
    if (put) named_[id] = std::move(content);
    if (i >= 200) std::this_thread::sleep_for(milliseconds(20));
  }
}

// Unnamed arrays of one session, each computed from the previous one.
void Load::RunChains() {
  Client client = Connect();
  const std::vector<double> start = Iota<double>(1000);
  while (!stopping_) {
    auto put = Persist([&] { return client.Put(start, {1000}); });
    if (!put && IsLoss(put.error())) continue;
    if (!put) throw std::runtime_error(put.error().ToString());
    Array array = *std::move(put);
    int length = 0;
    for (; length < 200 && !stopping_; ++length) {
      Array next = client.Ufunc("add", {array, 1.0});
      // Only acknowledged operations count: one whose response was lost may or may not have run.
      if (auto done = next.Wait(); !done) {
        if (!IsLoss(done.error())) throw std::runtime_error(done.error().ToString());
        break;
      }
      array = std::move(next);
    }
    auto fetched = Persist([&] { return client.Fetch<double>(array); });
    if (!fetched) throw std::runtime_error(fetched.error().ToString());
    for (int i = 0; i < 1000; ++i) {
      if ((*fetched)[i] != i + length) throw std::runtime_error("a chain has a wrong value");
    }
    ++num_chains_;
  }
}

// New arrays, which may be computed twice, and an array changed in place, where a second run would
// show.
void Load::RunJobs() {
  Client client = Connect();
  for (int i = 0; !stopping_; ++i) {
    const std::string id = std::to_string(i);
    JobSpec spec;
    spec.request_id = "request-" + id;
    spec.operations.push_back(Operation::Arange(0, 500, 1, DataType::kFloat64).ToJobHandle(1));
    spec.operations.push_back(
        Operation::Ufunc("multiply", {Operand::JobHandle(1), 3.0}).ToName(Named("out" + id)));
    spec.operations.push_back(
        Operation::Zeros({DataType::kFloat64, {1 << 15}}).ToName(Named("count" + id)));
    Array count = client.Open(Named("count" + id));
    for (int k = 0; k < kIncrements; ++k)
      spec.operations.push_back(Operation::Ufunc("add", {count, 1.0}).ToExisting(count));
    auto job = Persist([&] { return client.CreateJob(spec); });
    if (!job) throw std::runtime_error(job.error().ToString());
    auto again = Persist([&] { return client.CreateJob(spec); });
    if (!again || again->name != job->name)
      throw std::runtime_error("a repeated request made another job");
    jobs_[job->name] = id;
    std::this_thread::sleep_for(milliseconds(jobs_.size() < 200 ? 1 : 20));
  }
}

void Load::CheckArray(Client& client, const std::string& id, const std::vector<double>& content) {
  Array array = client.Open(Named(id));
  auto fetched = Persist([&] { return client.Fetch<double>(array); });
  ASSERT_TRUE(fetched) << id << ": " << fetched.error().ToString();
  EXPECT_TRUE(*fetched == content) << id;
  // Integers below 2^32: their sum is exact in any order.
  auto sum = Persist([&] { return client.Fetch<double>(client.Reduce(Reduction::kSum, array)); });
  ASSERT_TRUE(sum) << id << ": " << sum.error().ToString();
  EXPECT_EQ((*sum)[0], std::accumulate(content.begin(), content.end(), 0.0)) << id;
}

void Load::CheckJob(Client& client, const std::string& name, const std::string& id) {
  Result<Job> job = client.GetJob(name);
  ASSERT_TRUE(Eventually([&] {
    job = Persist([&] { return client.GetJob(name); });
    return !job || job->final();
  })) << name
      << " does not end: " << Name(job->state);
  ASSERT_TRUE(job) << job.error().ToString();
  Array count = client.Open(Named("count" + id));
  auto counted = Persist([&] { return client.Fetch<double>(count); });
  if (job->state == Job::State::kFailed) {
    // The only unknown outcome: how far a change in place came.
    ++num_lost_;
    EXPECT_EQ(job->error->reason, "WORKER_LOST") << job->error->ToString();
    EXPECT_FALSE(counted) << "it failed with " << job->error->ToString() << ", and its array has "
                          << (*counted)[0];
    return;
  }
  ASSERT_EQ(job->state, Job::State::kSucceeded) << name << ": " << stride::Name(job->state);
  Array out = client.Open(Named("out" + id));
  auto fetched = Persist([&] { return client.Fetch<double>(out); });
  ASSERT_TRUE(fetched) << fetched.error().ToString();
  for (int i = 0; i < 500; ++i) ASSERT_EQ((*fetched)[i], 3.0 * i);
  ASSERT_TRUE(counted) << counted.error().ToString();
  for (double value : *counted) ASSERT_EQ(value, kIncrements) << name;
}

void Load::DeleteAll(Client& client) {
  auto arrays = Persist([&] { return client.ListArrays("tenants/" + options_.tenant); });
  ASSERT_TRUE(arrays) << arrays.error().ToString();
  for (const ArrayInfo& info : *arrays)
    ASSERT_TRUE(Persist([&] { return client.DeleteArray(info.name); }));
  auto jobs = Persist([&] { return client.ListJobs(); });
  ASSERT_TRUE(jobs) << jobs.error().ToString();
  for (const Job& job : *jobs) ASSERT_TRUE(Persist([&] { return client.DeleteJob(job.name); }));
}

void ExpectNoArraysLeft(Client& client) {
  EXPECT_TRUE(Eventually([&] { return ArrayBytes(client) == 0; })) << ArrayBytes(client);
}

}  // namespace stride::testing
