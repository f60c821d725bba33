#include "client/npy/header.h"

#include <algorithm>
#include <array>

#include "client/npy/literal.h"

namespace stride::npy {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxAxes = 32;
constexpr size_t kAlign = 64;

struct Descr {
  std::string_view name;  // without the byte order
  DataType type;
};

constexpr std::array<Descr, 14> kDescrs = {{{"b1", DataType::kBool},
                                            {"i1", DataType::kInt8},
                                            {"i2", DataType::kInt16},
                                            {"i4", DataType::kInt32},
                                            {"i8", DataType::kInt64},
                                            {"u1", DataType::kUint8},
                                            {"u2", DataType::kUint16},
                                            {"u4", DataType::kUint32},
                                            {"u8", DataType::kUint64},
                                            {"f2", DataType::kFloat16},
                                            {"f4", DataType::kFloat32},
                                            {"f8", DataType::kFloat64},
                                            {"c8", DataType::kComplex64},
                                            {"c16", DataType::kComplex128}}};

Error Bad(std::string message) {
  return {.code = Code::kInvalidArgument, .message = "Not a sound .npy file: " + message};
}

Error Unsupported(std::string message) {
  return {.code = Code::kUnimplemented, .message = std::move(message)};
}

uint32_t LittleEndian(std::span<const std::byte> bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<uint32_t>(bytes[i]);
  return value;
}

// Position of the header's text.
struct Extent {
  size_t begin, end;
};

Result<Extent> FindText(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, 4) == "PK\x03\x04") {
    return Unsupported(
        "This is a .npz archive, which is not read yet: take the .npy files out of it (unzip "
        "does)");
  }
  if (text.substr(0, kMagic.size()) != kMagic) return Bad("it does not begin with \\x93NUMPY");
  if (bytes.size() < kMagic.size() + 2) return Bad("it ends within the version");
  const int major = std::to_integer<int>(bytes[6]);
  const int minor = std::to_integer<int>(bytes[7]);
  if (major < 1 || major > 3 || minor != 0) {
    return Bad("version " + std::to_string(major) + "." + std::to_string(minor) + " is not known");
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (bytes.size() < 8 + length_bytes) return Bad("it ends within the header's length");
  const size_t length = LittleEndian(bytes.subspan(8, length_bytes));
  const size_t begin = 8 + length_bytes;
  if (length > kMaxHeaderBytes)
    return Bad("the header claims " + std::to_string(length) + " bytes");
  if (length > bytes.size() - begin) return Bad("it ends within the header");
  return Extent{begin, begin + length};
}

Result<void> ReadDescr(LiteralReader& reader, Header& header) {
  if (reader.Next('[') || reader.Next('('))
    return Unsupported("Records (structured types) have no place in an array of Stride");
  const auto descr = reader.String();
  if (!descr) return Bad("'descr' is not a string");
  if (descr->size() < 3) return Bad("'descr' is '" + *descr + "'");
  const char order = (*descr)[0];
  const std::string_view name = std::string_view(*descr).substr(1);
  if (name[0] == 'O')
    return Unsupported("The file holds pickled Python objects, which are never read");
  const auto row =
      std::find_if(kDescrs.begin(), kDescrs.end(), [&](const Descr& d) { return d.name == name; });
  if (row == kDescrs.end())
    return Unsupported("Element type '" + *descr + "' has no equal in Stride");
  const bool one_byte = ItemSize(row->type) == 1;
  if (!(order == '<' || order == '>' || (order == '|' && one_byte)))
    return Bad("'descr' is '" + *descr + "'");
  header.spec.data_type = row->type;
  header.big_endian = order == '>' && !one_byte;
  return {};
}

Result<void> ReadValue(LiteralReader& reader, const std::string& key, Header& header) {
  if (key == "descr") return ReadDescr(reader, header);
  if (key == "fortran_order") {
    const auto value = reader.Bool();
    if (!value) return Bad("'fortran_order' is neither True nor False");
    header.fortran_order = *value;
    return {};
  }
  auto shape = reader.Shape();
  if (!shape) return Bad("'shape' is not a tuple of sizes");
  if (shape->size() > kMaxAxes)
    return Bad(std::to_string(shape->size()) + " axes; at most 32 are possible");
  header.spec.shape = std::move(*shape);
  return {};
}

Result<void> ReadDictionary(std::string_view text, Header& header) {
  LiteralReader reader(text);
  if (!reader.Take('{')) return Bad("the header is not a dictionary");
  std::vector<std::string> seen;
  while (!reader.Take('}')) {
    const auto key = reader.String();
    if (!key || !reader.Take(':'))
      return Bad("the header is malformed at byte " + std::to_string(reader.position()));
    if (*key != "descr" && *key != "fortran_order" && *key != "shape")
      return Bad("unknown key '" + *key + "'");
    if (std::find(seen.begin(), seen.end(), *key) != seen.end())
      return Bad("'" + *key + "' comes twice");
    seen.push_back(*key);
    if (auto read = ReadValue(reader, *key, header); !read) return read;
    if (!reader.Take(',') && !reader.Next('}')) {
      return Bad("the header is malformed at byte " + std::to_string(reader.position()));
    }
  }
  if (!reader.AtEnd()) return Bad("something follows the header's dictionary");
  if (seen.size() != 3) return Bad("the header needs 'descr', 'fortran_order' and 'shape'");
  return {};
}

}  // namespace

Result<Header> ParseHeader(std::span<const std::byte> bytes) {
  const auto place = FindText(bytes);
  if (!place) return place.error();
  Header header{.data_offset = place->end};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + place->begin,
                              place->end - place->begin);
  if (auto read = ReadDictionary(text, header); !read) return read.error();
  if (!SizeBytes(header.spec)) return Bad("its shape has more elements than memory can hold");
  return header;
}

Result<std::string> FormatHeader(const ArraySpec& spec) {
  const auto row = std::find_if(kDescrs.begin(), kDescrs.end(),
                                [&](const Descr& d) { return d.type == spec.data_type; });
  if (row == kDescrs.end()) {
    return Unsupported(".npy has no " + std::string(Name(spec.data_type)) +
                       ": convert it, or write the raw bytes (--raw)");
  }
  std::string text = "{'descr': '";
  text += ItemSize(spec.data_type) == 1 ? '|' : '<';
  text += row->name;
  text += "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < spec.shape.size(); ++i) {
    text += std::to_string(spec.shape[i]);
    text += i + 1 < spec.shape.size() ? ", " : spec.shape.size() == 1 ? "," : "";
  }
  text += "), }";
  const size_t fixed = kMagic.size() + 4;
  text.append((kAlign - (fixed + text.size() + 1) % kAlign) % kAlign, ' ');
  text += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace stride::npy
