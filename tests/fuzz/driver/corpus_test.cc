// Runs a fuzz target without libFuzzer: its corpus, then seeded mutations of it for about a second.
// A failure ends the program; the mutations are the same in every run.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size);
// A target may bring its own mutator, which calls LLVMFuzzerMutate for plain bytes.
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size,
                                                                size_t max_size, unsigned seed);

namespace {

constexpr size_t kMaxInput = 64 << 10;
constexpr int kMutations = 20000;
constexpr auto kTime = std::chrono::milliseconds(1200);

std::mt19937& Random() {
  static std::mt19937 random(20240607);
  return random;
}

size_t Below(size_t bound) { return bound == 0 ? 0 : Random()() % bound; }

const std::vector<std::string>& Corpus() {
  static const std::vector<std::string> corpus = [] {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(STRIDE_CORPUS)) {
      paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());  // the same mutations on every machine
    std::vector<std::string> inputs;
    for (const auto& path : paths) {
      std::ifstream file(path, std::ios::binary);
      inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return inputs;
  }();
  return corpus;
}

void RunInput(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// One small change of any kind.
void Mutate(std::string* input) {
  constexpr const char* kTelling[] = {
      "0", "-1", "9223372036854775807", "18446744073709551616", "..", "/", "%", "(", "\xff", "\n"};
  size_t at = Below(input->size() + 1);
  switch (Below(7)) {
    case 0:
      if (at < input->size()) (*input)[at] ^= static_cast<char>(1 << Below(8));
      break;
    case 1:
      input->insert(at, 1, static_cast<char>(Below(256)));
      break;
    case 2:
      input->erase(at, 1 + Below(8));
      break;
    case 3:
      input->insert(at, kTelling[Below(std::size(kTelling))]);
      break;
    case 4:
      input->insert(at, input->substr(Below(input->size() + 1), 1 + Below(32)));
      break;
    case 5:
      input->resize(at);
      break;
    case 6: {
      const std::string& other = Corpus()[Below(Corpus().size())];
      input->replace(at, std::string::npos, other.substr(Below(other.size() + 1)));
    }
  }
  if (input->size() > kMaxInput) input->resize(kMaxInput);
}

std::string Mutated(std::string input) {
  for (size_t i = 1 + Below(4); i-- > 0;) {
    if (LLVMFuzzerCustomMutator != nullptr) {
      std::string room = input;
      room.resize(kMaxInput);
      room.resize(LLVMFuzzerCustomMutator(reinterpret_cast<uint8_t*>(room.data()), input.size(),
                                          kMaxInput, Random()()));
      input = std::move(room);
    } else {
      Mutate(&input);
    }
  }
  return input;
}

}  // namespace

// libFuzzer provides this to custom mutators.
extern "C" size_t LLVMFuzzerMutate(uint8_t* bytes, size_t size, size_t max_size) {
  std::string input(reinterpret_cast<char*>(bytes), size);
  Mutate(&input);
  input.resize(std::min(input.size(), max_size));
  std::memcpy(bytes, input.data(), input.size());
  return input.size();
}

TEST(CorpusTest, EveryCorpusInputPasses) {
  ASSERT_FALSE(Corpus().empty());
  for (const std::string& input : Corpus()) RunInput(input);
}

TEST(CorpusTest, MutationsPass) {
  const auto end = std::chrono::steady_clock::now() + kTime;
  int count = 0;
  for (; count < kMutations && std::chrono::steady_clock::now() < end; ++count) {
    RunInput(Mutated(Corpus()[Below(Corpus().size())]));
  }
  RecordProperty("mutations", count);
  EXPECT_GT(count, 0);
}
