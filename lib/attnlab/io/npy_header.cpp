#include "attnlab/io/npy_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <vector>

#include "attnlab/core/error.h"

namespace attnlab {
namespace {

struct TypeCode {
  std::string_view code;
  DType dtype;
};
constexpr std::array<TypeCode, 13> kTypes = {{{"b1", DType::boolean},
                                              {"?", DType::boolean},
                                              {"i1", DType::int8},
                                              {"i2", DType::int16},
                                              {"i4", DType::int32},
                                              {"i8", DType::int64},
                                              {"u1", DType::uint8},
                                              {"u2", DType::uint16},
                                              {"u4", DType::uint32},
                                              {"u8", DType::uint64},
                                              {"f2", DType::float16},
                                              {"f4", DType::float32},
                                              {"f8", DType::float64}}};

// What an element type without tensors is called.
std::string_view refused_kind(std::string_view code) {
  switch (code.empty() ? '\0' : code.front()) {
    case 'c':
      return "complex numbers are not read";
    case 'O':
      return "Python objects are not read";
    case 'U':
    case 'S':
    case 'a':
      return "texts are not read";
    case 'M':
    case 'm':
      return "dates and times are not read";
    case 'V':
      return "raw bytes are not read (bfloat16 saved through NumPy loses its type: save it as "
             "float32, or in .safetensors)";
    case 'f':
      return "floats of this size are not read, need 2, 4 or 8 bytes";
    default:
      return "need a type of NumPy such as <f4";
  }
}

// Reads the few literals of Python that a header is made of.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  NpyHeader read() {
    NpyHeader header;
    std::vector<std::string> seen;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
        fail(key, "", "the key stands twice in the header");
      }
      seen.push_back(key);
      expect(':');
      read_value(key, header);
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (!text_.empty()) fail("header", text_, "need nothing after the dictionary");
    for (const std::string_view key : {"descr", "fortran_order", "shape"}) {
      if (std::find(seen.begin(), seen.end(), key) == seen.end()) {
        fail(key, "", "the key is missing in the header");
      }
    }
    return header;
  }

 private:
  void read_value(const std::string& key, NpyHeader& header) {
    if (key == "descr") {
      read_type(header);
    } else if (key == "fortran_order") {
      header.fortran_order = boolean();
    } else if (key == "shape") {
      header.shape = shape();
    } else {
      fail("header", key, "need the keys descr, fortran_order and shape only");
    }
  }

  void read_type(NpyHeader& header) {
    skip_blanks();
    if (!text_.empty() && (text_.front() == '[' || text_.front() == '(')) {
      fail("descr", "", "structured types are not read, save one field at a time");
    }
    const std::string descr = string();
    std::string_view code = descr;
    if (!code.empty() && std::string_view("<>|=").find(code.front()) != std::string_view::npos) {
      code.remove_prefix(1);
    }
    header.big_endian = descr.substr(0, 1) == ">";
    const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const TypeCode& known) { return known.code == code; });
    if (type == kTypes.end()) fail("descr", descr, refused_kind(code));
    header.dtype = type->dtype;
  }

  Shape shape() {
    std::vector<Index> lengths;
    expect('(');
    bool comma = true;
    while (!take(')')) {
      if (!comma) fail_syntax("','");
      lengths.push_back(length());
      comma = take(',');
    }
    // (3) is a number in Python, not a shape.
    if (lengths.size() == 1 && !comma)
      fail("shape", std::to_string(lengths[0]), "need a comma after the only length");
    try {
      return Shape(lengths);
    } catch (const InputError& error) {
      fail("shape", error.value(), error.rule());
    }
  }

  Index length() {
    skip_blanks();
    const std::size_t size = std::min(text_.find_first_not_of("-0123456789"), text_.size());
    const std::string_view digits = text_.substr(0, size);
    if (digits.empty()) fail_syntax("a length");
    Index value = 0;
    const char* end = digits.data() + size;
    const auto [stop, error] = std::from_chars(digits.data(), end, value);
    if (error == std::errc::result_out_of_range) {
      fail("shape", digits, "the number of elements overflows");
    }
    if (error != std::errc() || stop != end) fail("shape", digits, "need a length");
    text_.remove_prefix(size);
    // Python 2 writes long integers as 3L.
    if (!text_.empty() && text_.front() == 'L') text_.remove_prefix(1);
    return value;
  }

  bool boolean() {
    skip_blanks();
    for (const bool value : {true, false}) {
      const std::string_view name = value ? "True" : "False";
      if (text_.substr(0, name.size()) == name) {
        text_.remove_prefix(name.size());
        return value;
      }
    }
    fail_syntax("True or False");
  }

  // A text in either kind of quotes. Escapes are left as they stand: no known key or type has any.
  std::string string() {
    skip_blanks();
    const char quote = text_.empty() ? '\0' : text_.front();
    if (quote != '\'' && quote != '"') fail_syntax("a text in quotes");
    const std::size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) fail_syntax("a closing quote");
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }

  void skip_blanks() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n\f"), text_.size()));
  }
  bool take(char c) {
    skip_blanks();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail_syntax(std::string("'") + c + "'");
  }

  [[noreturn]] void fail_syntax(const std::string& needed) const {
    const std::string found = text_.empty() ? "its end" : std::string(text_.substr(0, 20));
    fail("header", found, "need " + needed);
  }
  [[noreturn]] void fail(std::string_view field, std::string_view value,
                         std::string_view rule) const {
    throw InputError(source_, field, value, rule);
  }

  std::string_view text_;  // what is still to be read
  std::string_view source_;
};

std::string_view type_code(DType dtype) {
  const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                 [&](const TypeCode& known) { return known.dtype == dtype; });
  eigen_assert(type != kTypes.end());
  return type->code;
}

}  // namespace

NpyHeader parse_npy_header(std::string_view text, std::string_view source) {
  return HeaderReader(text, source).read();
}

std::string npy_preamble(DType dtype, const Shape& shape) {
  std::string header = "{'descr': '";
  header += dtype_size(dtype) == 1 ? '|' : '<';
  header += type_code(dtype);
  header += "', 'fortran_order': False, 'shape': (";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) header += ", ";
    header += std::to_string(shape[axis]);
  }
  if (shape.rank() == 1) header += ',';
  header += "), }";

  std::string out("\x93NUMPY\x01\x00", 8);
  constexpr std::size_t kAlignment = 64;
  const std::size_t before = out.size() + 2;
  const std::size_t unpadded = before + header.size() + 1;
  const std::size_t total = (unpadded + kAlignment - 1) / kAlignment * kAlignment;
  header.append(total - unpadded, ' ');
  header += '\n';
  out += static_cast<char>(header.size() & 0xFF);
  out += static_cast<char>(header.size() >> 8);
  return out + header;
}

}  // namespace attnlab
