// Short forms for tests on a real daemon.
#pragma once

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "stride/client.h"

namespace stride::testing {

// The value; the test ends with the error if there is none.
template <typename T>
T Must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  return std::move(result).value();
}
inline void Must(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().ToString());
}

// The error; the test ends if there is none.
template <typename T>
Error MustFail(const Result<T>& result) {
  if (result.ok()) throw std::runtime_error("a call succeeded that must fail");
  return result.error();
}

// `reason` is empty if any will do.
inline ::testing::AssertionResult IsError(const Error& error, Code code,
                                          const std::string& reason) {
  if (error.code == code && (reason.empty() || error.reason == reason))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "wanted " << Name(code) << " " << reason << ", got " << error.ToString();
}

template <typename T>
std::vector<T> Iota(int64_t count, T first = T()) {
  std::vector<T> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

// The result of Fetch; the test ends on an error.
template <typename T>
std::vector<T> Get(Client& client, const Array& array) {
  return Must(client.Fetch<T>(array));
}

}  // namespace stride::testing
