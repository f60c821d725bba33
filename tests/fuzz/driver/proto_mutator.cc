#include "tests/fuzz/driver/proto_mutator.h"

#include <iterator>
#include <limits>
#include <string>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* bytes, size_t size, size_t max_size);

namespace stride::fuzz {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMostElements = 40;
constexpr int kMostDepth = 12;

class Mutator {
 public:
  explicit Mutator(std::mt19937* random) : random_(*random) {}

  void Mutate(Message* message, int depth) {
    const auto* descriptor = message->GetDescriptor();
    if (descriptor->field_count() == 0) return;
    const FieldDescriptor* field = descriptor->field(Below(descriptor->field_count()));
    // Setting a field of a oneof clears the others: usually mutate the one that is set.
    std::vector<const FieldDescriptor*> set;
    message->GetReflection()->ListFields(*message, &set);
    if (!set.empty() && Below(3) != 0) field = set[Below(set.size())];
    if (field->is_repeated()) {
      MutateRepeated(message, field, depth);
    } else if (Below(12) == 0) {
      message->GetReflection()->ClearField(message, field);
    } else if (field->message_type() != nullptr) {
      if (depth < kMostDepth) {
        Mutate(message->GetReflection()->MutableMessage(message, field), depth + 1);
      }
    } else {
      Set(message, field);
    }
  }

 private:
  size_t Below(size_t bound) { return random_() % bound; }

  template <typename T>
  T Number() {
    constexpr T kLimits[] = {0,
                             1,
                             2,
                             3,
                             7,
                             32,
                             33,
                             1000,
                             std::numeric_limits<T>::max(),
                             std::numeric_limits<T>::lowest(),
                             static_cast<T>(-1),
                             std::numeric_limits<T>::max() / 2 + 1,
                             static_cast<T>(1u << 31)};
    if (Below(4) == 0) return static_cast<T>(random_());
    return kLimits[Below(std::size(kLimits))];
  }

  double Real() {
    constexpr double kReals[] = {0, -0.0, 1, -1, 0.5, 1e-300, 5e-324, 1e308, 3.5, 1e18, 9.3e18};
    size_t i = Below(std::size(kReals) + 3);
    if (i < std::size(kReals)) return kReals[i];
    return i % 2 == 0 ? std::numeric_limits<double>::infinity()
                      : std::numeric_limits<double>::quiet_NaN();
  }

  std::string Text(std::string text) {
    constexpr const char* kWords[] = {"add",
                                      "where",
                                      "divmod",
                                      "matmul",
                                      "x",
                                      "y",
                                      "x + y",
                                      "cos(x)**2",
                                      "tenants/t/arrays/a",
                                      "devices/cpu:0",
                                      "-O2",
                                      "--std=c++17",
                                      "../x",
                                      "k",
                                      "scale<float>",
                                      "invert",
                                      "",
                                      "1j",
                                      "("};
    if (Below(3) == 0) return kWords[Below(std::size(kWords))];
    size_t at = Below(text.size() + 1);
    if (Below(2) == 0) return text.insert(at, kWords[Below(std::size(kWords))]);
    return text.erase(at, Below(4));
  }

  void Set(Message* message, const FieldDescriptor* field) {
    const Reflection& reflection = *message->GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection.SetInt32(message, field, Number<int32_t>());
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection.SetInt64(message, field, Number<int64_t>());
      case FieldDescriptor::CPPTYPE_UINT32:
        return reflection.SetUInt32(message, field, Number<uint32_t>());
      case FieldDescriptor::CPPTYPE_UINT64:
        return reflection.SetUInt64(message, field, Number<uint64_t>());
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection.SetDouble(message, field, Real());
      case FieldDescriptor::CPPTYPE_FLOAT:
        return reflection.SetFloat(message, field, static_cast<float>(Real()));
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection.SetBool(message, field, Below(2) == 0);
      case FieldDescriptor::CPPTYPE_ENUM:
        return reflection.SetEnumValue(message, field, Enum(field));
      case FieldDescriptor::CPPTYPE_STRING:
        return reflection.SetString(message, field, Text(reflection.GetString(*message, field)));
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return;
    }
  }

  int Enum(const FieldDescriptor* field) {
    const EnumDescriptor* type = field->enum_type();
    if (Below(10) == 0) return Number<int32_t>();
    return type->value(Below(type->value_count()))->number();
  }

  void Add(Message* message, const FieldDescriptor* field, int depth) {
    const Reflection& reflection = *message->GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection.AddInt32(message, field, Number<int32_t>());
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection.AddInt64(message, field, Number<int64_t>());
      case FieldDescriptor::CPPTYPE_UINT32:
        return reflection.AddUInt32(message, field, Number<uint32_t>());
      case FieldDescriptor::CPPTYPE_UINT64:
        return reflection.AddUInt64(message, field, Number<uint64_t>());
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection.AddDouble(message, field, Real());
      case FieldDescriptor::CPPTYPE_FLOAT:
        return reflection.AddFloat(message, field, static_cast<float>(Real()));
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection.AddBool(message, field, Below(2) == 0);
      case FieldDescriptor::CPPTYPE_ENUM:
        return reflection.AddEnumValue(message, field, Enum(field));
      case FieldDescriptor::CPPTYPE_STRING:
        return reflection.AddString(message, field, Text(""));
      case FieldDescriptor::CPPTYPE_MESSAGE:
        Mutate(reflection.AddMessage(message, field), depth + 1);
    }
  }

  void MutateRepeated(Message* message, const FieldDescriptor* field, int depth) {
    const Reflection& reflection = *message->GetReflection();
    int size = reflection.FieldSize(*message, field);
    size_t choice = Below(6);
    if (size > 0 && choice == 0) {
      reflection.RemoveLast(message, field);
    } else if (size > 1 && choice == 1) {
      reflection.SwapElements(message, field, Below(size), Below(size));
    } else if (size > 0 && choice > 2 && field->message_type() != nullptr && depth < kMostDepth) {
      Mutate(reflection.MutableRepeatedMessage(message, field, Below(size)), depth + 1);
    } else if (size < kMostElements && depth < kMostDepth) {
      Add(message, field, depth);
    }
  }

  std::mt19937& random_;
};

}  // namespace

void MutateMessage(Message* message, std::mt19937* random) { Mutator(random).Mutate(message, 0); }

size_t MutateSerialized(Message* message, uint8_t* bytes, size_t size, size_t max_size,
                        unsigned seed) {
  std::mt19937 random(seed);
  message->Clear();
  bool parsed = message->ParsePartialFromArray(bytes, static_cast<int>(size));
  if (!parsed || random() % 16 == 0) return LLVMFuzzerMutate(bytes, size, max_size);
  MutateMessage(message, &random);
  std::string out = message->SerializePartialAsString();
  if (out.size() > max_size) return LLVMFuzzerMutate(bytes, size, max_size);
  out.copy(reinterpret_cast<char*>(bytes), out.size());
  return out.size();
}

}  // namespace stride::fuzz
