#include <charconv>
#include <map>

#include "client/cli/build_operation.h"

namespace stride::cli {
namespace {

using Words = std::span<const std::string>;

Error Bad(std::string message) {
  return {.code = Code::kInvalidArgument, .message = std::move(message)};
}

const OptionSpec kAxis = {"axis", 0, "N", "the axis (default: the last, or the only one)"};

// Resolves exactly `count` arrays or numbers.
Result<std::vector<Operand>> Operands(Words words, size_t count, const char* usage,
                                      OperandSource& source) {
  if (words.size() != count) return Bad(std::string("It takes ") + usage);
  std::vector<Operand> operands;
  for (const std::string& word : words) {
    auto operand = ResolveText(word, source);
    if (!operand) return operand.error();
    operands.push_back(*operand);
  }
  return operands;
}

Result<std::optional<int32_t>> OneAxis(const CommandLine& line) {
  const auto axes = ReadNumbers(line, "axis");
  if (!axes) return axes.error();
  if (axes->size() > 1) return Bad("--axis: one axis");
  if (axes->empty()) return std::optional<int32_t>();
  return std::optional<int32_t>(static_cast<int32_t>((*axes)[0]));
}

Result<double> Number(std::string_view text, const char* option) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size())
    return Bad(std::string("--") + option + ": '" + std::string(text) + "' is not a number");
  return value;
}

// Parses `LOW,HIGH`.
Result<std::pair<double, double>> Pair(const CommandLine& line, const char* option) {
  const std::string text = line.Value(option).value_or("");
  const size_t comma = text.find(',');
  if (comma == std::string::npos)
    return Bad(std::string("--") + option + " takes two numbers, such as 0,1");
  const auto first = Number(std::string_view(text).substr(0, comma), option);
  if (!first) return first.error();
  const auto second = Number(std::string_view(text).substr(comma + 1), option);
  if (!second) return second.error();
  return std::pair(*first, *second);
}

Result<Operation> BuildSort(Words words, const CommandLine& line, OperandSource& source) {
  const auto operands = Operands(words, 1, "one array", source);
  if (!operands) return operands.error();
  const auto axis = OneAxis(line);
  if (!axis) return axis.error();
  return Operation::Sort(
      (*operands)[0],
      {.axis = *axis, .descending = line.Has("descending"), .indices = line.Has("indices")});
}

Result<Operation> BuildAccumulate(Words words, const CommandLine& line, OperandSource& source) {
  if (words.size() != 2) return Bad("It takes a ufunc of two inputs, such as add, and one array");
  const auto operands = Operands(words.subspan(1), 1, "one array", source);
  if (!operands) return operands.error();
  const auto axis = OneAxis(line);
  if (!axis) return axis.error();
  const auto type = ReadDataType(line);
  if (!type) return type.error();
  return Operation::Accumulate(words[0], (*operands)[0],
                               {.axis = *axis,
                                .include_initial = line.Has("initial"),
                                .reverse = line.Has("reverse"),
                                .exclusive = line.Has("exclusive"),
                                .data_type = *type});
}

Result<Operation> BuildTake(Words words, const CommandLine& line, OperandSource& source) {
  const auto operands = Operands(words, 2, "an array and an array of indices", source);
  if (!operands) return operands.error();
  const auto axis = OneAxis(line);
  if (!axis) return axis.error();
  static const std::map<std::string, IndexMode> kModes = {
      {"raise", IndexMode::kRaise}, {"wrap", IndexMode::kWrap}, {"clip", IndexMode::kClip}};
  const auto mode = kModes.find(line.Value("mode").value_or("raise"));
  if (mode == kModes.end()) return Bad("--mode is raise, wrap or clip");
  return Operation::Gather(
      (*operands)[0], {(*operands)[1]},
      {.axis = axis->value_or(0), .mode = mode->second, .along_axis = line.Has("along-axis")});
}

Result<Operation> BuildTopK(Words words, const CommandLine& line, OperandSource& source) {
  if (words.size() != 2) return Bad("It takes how many, and one array");
  int64_t count = 0;
  const auto [stop, error] =
      std::from_chars(words[0].data(), words[0].data() + words[0].size(), count);
  if (error != std::errc() || stop != words[0].data() + words[0].size())
    return Bad("'" + words[0] + "' is not how many");
  const auto operands = Operands(words.subspan(1), 1, "one array", source);
  if (!operands) return operands.error();
  const auto axis = OneAxis(line);
  if (!axis) return axis.error();
  return Operation::TopK((*operands)[0], count, {.axis = *axis, .smallest = line.Has("smallest")});
}

Result<Operation> BuildHistogram(Words words, const CommandLine& line, OperandSource& source) {
  const bool edges = words.size() == 2;
  if (edges == line.Has("range"))
    return Bad("The bins are missing, or given twice: --range LOW,HIGH, or an array of edges");
  auto operands = Operands(words, edges ? 2 : 1, "an array, and maybe one of edges", source);
  if (!operands) return operands.error();
  if (const auto weights = line.Value("weights")) {
    auto operand = ResolveText(*weights, source);
    if (!operand) return operand.error();
    operands->push_back(*operand);
  }
  const std::vector<Operand>& all = *operands;
  if (edges) {
    return all.size() == 3 ? Operation::Histogram(all[0], all[1], all[2])
                           : Operation::Histogram(all[0], all[1]);
  }
  const auto range = Pair(line, "range");
  if (!range) return range.error();
  UniformBins bins{.low = range->first, .high = range->second};
  const auto counts = ReadNumbers(line, "bins");
  if (!counts) return counts.error();
  if (!counts->empty()) bins.count = counts->back();
  return all.size() == 2 ? Operation::Histogram(all[0], bins, all[1])
                         : Operation::Histogram(all[0], bins);
}

Result<Operation> BuildLinalg(Words words, const CommandLine& line, OperandSource& source) {
  if (words.empty()) return Bad("The operation is missing");
  const std::string& function = words[0];
  const auto operands =
      Operands(words.subspan(1), function == "solve" ? 2 : 1,
               function == "solve" ? "a matrix and the right side" : "one matrix", source);
  if (!operands) return operands.error();
  const LinalgOptions options{
      .upper = line.Has("upper"), .full = line.Has("full"), .values_only = line.Has("values-only")};
  const Operand& a = (*operands)[0];
  if (function == "cholesky") return Operation::Cholesky(a, options);
  if (function == "qr") return Operation::Qr(a, options);
  if (function == "svd") return Operation::Svd(a, options);
  if (function == "eigh") return Operation::Eigh(a, options);
  if (function == "eig") return Operation::Eig(a, options);
  if (function == "inv") return Operation::Inverse(a);
  if (function == "solve") return Operation::Solve(a, (*operands)[1]);
  if (function == "lu") return Operation::Lu(a);
  return Bad("No '" + function + "': there are cholesky, qr, svd, eigh, eig, inv, solve and lu");
}

Result<Operation> BuildFft(Words words, const CommandLine& line, OperandSource& source) {
  const auto operands = Operands(words, 1, "one array", source);
  if (!operands) return operands.error();
  FftOptions options;
  const auto axes = ReadNumbers(line, "axis");
  if (!axes) return axes.error();
  options.axes.assign(axes->begin(), axes->end());
  const auto lengths = ReadNumbers(line, "length");
  if (!lengths) return lengths.error();
  options.lengths = *lengths;
  static const std::map<std::string, FftNorm> kNorms = {
      {"backward", FftNorm::kBackward}, {"ortho", FftNorm::kOrtho}, {"forward", FftNorm::kForward}};
  const auto norm = kNorms.find(line.Value("norm").value_or("backward"));
  if (norm == kNorms.end()) return Bad("--norm is backward, ortho or forward");
  options.norm = norm->second;
  const Operand& input = (*operands)[0];
  if (line.Has("real"))
    return line.Has("inverse") ? Operation::InverseRealFft(input, options)
                               : Operation::RealFft(input, options);
  return line.Has("inverse") ? Operation::InverseFft(input, options)
                             : Operation::Fft(input, options);
}

Result<Distribution> ReadDistribution(const CommandLine& line) {
  int told = 0;
  for (const char* name : {"uniform", "normal", "integers", "bits"}) told += line.Has(name) ? 1 : 0;
  if (told > 1) return Bad("One distribution at most: --uniform, --normal, --integers or --bits");
  if (line.Has("bits")) return Distribution(RandomBits{});
  for (const char* name : {"uniform", "normal", "integers"}) {
    if (!line.Has(name)) continue;
    const auto pair = Pair(line, name);
    if (!pair) return pair.error();
    const auto [first, second] = *pair;
    if (std::string_view(name) == "uniform") return Distribution(Uniform{first, second});
    if (std::string_view(name) == "normal") return Distribution(Normal{first, second});
    return Distribution(RandomIntegers{static_cast<int64_t>(first), static_cast<int64_t>(second)});
  }
  return Distribution(Uniform{});
}

Result<Operation> BuildRandom(Words words, const CommandLine& line, OperandSource&) {
  if (words.size() != 1) return Bad("It takes a type and shape, such as float32[3,4]");
  const auto spec = ParseSpec(words[0]);
  if (!spec) return spec.error();
  const auto distribution = ReadDistribution(line);
  if (!distribution) return distribution.error();
  RandomStream stream;
  const auto keys = ReadNumbers(line, "key");
  if (!keys) return keys.error();
  if (!keys->empty()) stream.key = static_cast<uint64_t>(keys->back());
  if (line.Has("threefry")) stream.generator = RandomStream::Generator::kThreefry2x32;
  return Operation::Random(*spec, stream, *distribution);
}

std::vector<ArrayOperation> MakeArrayOperations() {
  const OptionSpec type = UfuncOptionSpecs()[0];
  return {{"sort",
           "sort along an axis",
           "ARRAY [--axis N]",
           "Stably; NaN come last.",
           {kAxis,
            {"descending", 0, "", "from greatest to least"},
            {"indices", 0, "", "where the elements were, instead of them"}},
           BuildSort},
          {"accumulate",
           "running results along an axis: cumulative sums with add",
           "UFUNC ARRAY [--axis N]",
           "UFUNC: of two inputs, such as add, multiply or maximum.",
           {kAxis,
            type,
            {"initial", 0, "", "begin with the function's identity, one longer"},
            {"reverse", 0, "", "from the last element to the first"},
            {"exclusive", 0, "", "without the element itself"}},
           BuildAccumulate},
          {"take",
           "elements by an array of indices",
           "ARRAY INDICES [--axis N]",
           "Negative indices count from the end.",
           {{"axis", 0, "N", "the axis that the indices are of (default: 0)"},
            {"mode", 0, "MODE", "of indices outside: raise (default), wrap or clip"},
            {"along-axis", 0, "", "as NumPy's take_along_axis"}},
           BuildTake},
          {"topk",
           "the greatest elements along an axis, and where they were",
           "K ARRAY [--axis N]",
           "Two results, from greatest to least.",
           {kAxis, {"smallest", 0, "", "the least, from least to greatest"}},
           BuildTopK},
          {"histogram",
           "how many elements lie in each bin",
           "ARRAY --range LOW,HIGH | ARRAY EDGES",
           "The last bin has its upper edge too.",
           {{"bins", 0, "N", "how many of equal width (default: 10)"},
            {"range", 0, "LOW,HIGH", "from the first bin's lower edge to the last one's upper"},
            {"weights", 0, "ARRAY", "add these up instead of counting"}},
           BuildHistogram},
          {"linalg",
           "decompose or solve: cholesky, qr, svd, eigh, eig, inv, solve, lu",
           "FUNCTION MATRIX [RIGHT]",
           "For matrices in the last two axes; earlier axes are a batch.",
           {{"upper", 0, "", "the upper triangle (cholesky, eigh)"},
            {"full", 0, "", "square factors (qr, svd)"},
            {"values-only", 0, "", "R, the singular values or the eigenvalues alone"}},
           BuildLinalg},
          {"fft",
           "discrete Fourier transform",
           "ARRAY [--axis N[,N]]",
           "Of any length.",
           {{"axis", 0, "N[,N]", "axes to transform (default: all); may be repeated"},
            {"length", 0, "N[,N]", "cut, or continued with zeros, to this along each of them"},
            {"real", 0, "", "of real numbers: half of the spectrum"},
            {"inverse", 0, "", "from the spectrum back"},
            {"norm", 0, "WHERE", "the scaled direction: backward (default), ortho or forward"}},
           BuildFft},
          {"random",
           "random numbers, the same on every device",
           "TYPE[SHAPE]",
           "TYPE[SHAPE]: float32[1000,3] and the like. Uniform in [0, 1) by default.",
           {{"key", 0, "N", "which stream of numbers (default: 0)"},
            {"uniform", 0, "LOW,HIGH", "floats from low to high"},
            {"normal", 0, "MEAN,DEVIATION", "of the normal distribution"},
            {"integers", 0, "LOW,HIGH", "integers from low to below high"},
            {"bits", 0, "", "the generator's words, uint32 or uint64"},
            {"threefry", 0, "", "by Threefry-2x32 instead of Philox-4x32"}},
           BuildRandom}};
}

}  // namespace

std::span<const ArrayOperation> ArrayOperations() {
  static const std::vector<ArrayOperation>* const kAll =
      new std::vector<ArrayOperation>(MakeArrayOperations());
  return *kAll;
}

}  // namespace stride::cli
