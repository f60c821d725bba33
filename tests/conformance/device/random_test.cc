#include <cmath>
#include <cstring>

#include "tests/conformance/device/harness.h"
#include "tests/conformance/device/random_answers.h"

namespace stride::conformance {
namespace {

using Random = v1::Creation::Random;

v1::Operation RandomOf(const RandomAnswer& answer, int64_t count) {
  v1::Operation operation;
  Random* random = operation.mutable_creation()->mutable_random();
  random->mutable_spec()->set_data_type(static_cast<v1::DataType>(answer.dtype));
  random->mutable_spec()->add_shape(count);
  const std::string generator = answer.generator, distribution = answer.distribution;
  random->set_generator(generator == "PHILOX_4X32" ? Random::GENERATOR_PHILOX_4X32
                                                   : Random::GENERATOR_THREEFRY_2X32);
  random->set_key(answer.key);
  random->set_counter(answer.counter);
  random->set_counter_high(answer.counter_high);
  if (distribution == "bits") random->mutable_bits();
  if (distribution == "uniform") random->mutable_uniform();
  if (distribution == "scaled") {
    random->mutable_uniform()->set_low(-3);
    random->mutable_uniform()->set_high(7.5);
  }
  if (distribution == "normal") {
    random->mutable_normal()->set_mean(2.5);
    random->mutable_normal()->set_deviation(3);
  }
  if (distribution == "integers") {
    random->mutable_integers()->mutable_low()->set_int_value(-5);
    random->mutable_integers()->mutable_high()->set_int_value(1000);
  }
  operation.add_outputs()->set_handle(100);
  return operation;
}

class RandomTest : public DeviceTest {
 protected:
  std::string Bytes(const v1::Operation& operation) {
    auto result = harness().Compute(operation, {});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? harness().Get(*result).buffer : "";
  }
};

// Published results of the generators, and every distribution as computed by Python, bit for bit.
TEST_F(RandomTest, KnownAnswers) {
  for (const RandomAnswer& answer : RandomAnswers()) {
    const int64_t count = static_cast<int64_t>(answer.bits.size()), item = ItemSize(answer.dtype);
    const std::string bytes = Bytes(RandomOf(answer, count));
    ASSERT_EQ(bytes.size(), static_cast<size_t>(count * item));
    for (int64_t i = 0; i < count; ++i) {
      uint64_t got = 0;
      std::memcpy(&got, bytes.data() + i * item, item);
      ASSERT_EQ(got, answer.bits[i])
          << answer.generator << " " << answer.distribution << " " << Name(answer.dtype)
          << " element " << i << std::hex << ", key " << answer.key;
    }
    harness().Reset();
  }
}

// An element depends only on its position: the second half of a long array equals a short one that
// begins later.
TEST_F(RandomTest, StreamContinuesByItsCounter) {
  for (const char* generator : {"PHILOX_4X32", "THREEFRY_2X32"}) {
    for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const int per_block = (generator[0] == 'P' ? 4 : 2) / (dtype == DType::kFloat64 ? 2 : 1);
      RandomAnswer answer{generator, "normal", dtype, 77, 1000, 0, {}};
      const std::string all = Bytes(RandomOf(answer, 100000));
      answer.counter += 50000 / per_block;
      const std::string rest = Bytes(RandomOf(answer, 50000));
      EXPECT_EQ(all.substr(all.size() / 2), rest) << generator << Name(dtype);
    }
  }
}

TEST_F(RandomTest, MomentsAndRangesAreCorrect) {
  const int64_t n = 1000000;
  for (const char* generator : {"PHILOX_4X32", "THREEFRY_2X32"}) {
    for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (bool normal : {false, true}) {
        auto result = harness().Compute(
            RandomOf({generator, normal ? "normal" : "uniform", dtype, 3, 0, 0, {}}, n), {});
        ASSERT_TRUE(result.ok()) << result.status();
        double sum = 0, squares = 0;
        for (const Value& value : harness().Get(*result).Values()) {
          const double x = normal ? (value.real() - 2.5) / 3 : value.real();
          if (!normal) {
            ASSERT_TRUE(x >= 0 && x < 1) << x;
          }
          sum += x;
          squares += x * x;
        }
        const double mean = sum / n, variance = squares / n - mean * mean;
        // Five standard errors.
        EXPECT_NEAR(mean, normal ? 0 : 0.5, 0.005);
        EXPECT_NEAR(variance, normal ? 1 : 1.0 / 12, normal ? 0.0071 : 0.0004);
        harness().Reset();
      }
    }
  }
}

TEST_F(RandomTest, IntegersCoverTheirWholeType) {
  RandomAnswer answer{"PHILOX_4X32", "integers", DType::kUInt64, 5, 0, 0, {}};
  v1::Operation operation = RandomOf(answer, 1000);
  auto* integers = operation.mutable_creation()->mutable_random()->mutable_integers();
  integers->mutable_low()->set_uint_value(~uint64_t{0} - 1);
  integers->mutable_high()->set_uint_value(~uint64_t{0});
  EXPECT_EQ(Bytes(operation), [] {
    std::string expected;
    for (int i = 0; i < 1000; ++i) expected += "\xfe\xff\xff\xff\xff\xff\xff\xff";
    return expected;
  }());
  operation.mutable_creation()->mutable_random()->mutable_spec()->set_data_type(v1::DATA_TYPE_INT8);
  integers->mutable_low()->set_int_value(-128);
  integers->mutable_high()->set_int_value(128);
  std::vector<int> seen(256);
  for (char c : Bytes(operation)) ++seen[static_cast<unsigned char>(c)];
  int kinds = 0;
  for (int count : seen) kinds += count > 0;
  EXPECT_GT(kinds, 220);  // 256 values and 1000 draws: 251 are expected
}

}  // namespace
}  // namespace stride::conformance
