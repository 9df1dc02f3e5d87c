#include "attnlab/io/csv.h"

#include <algorithm>
#include <cmath>

#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"
#include "attnlab/io/number_text.h"
#include "attnlab/io/text_encoding.h"

namespace attnlab {
namespace {

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

std::string_view trimmed(std::string_view cell) {
  constexpr std::string_view kBlanks = " \t";
  cell.remove_prefix(std::min(cell.find_first_not_of(kBlanks), cell.size()));
  return cell.substr(0, cell.find_last_not_of(kBlanks) + 1);
}

// Takes what stands before the first `separator` off `text`, and the separator.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

class TableReader {
 public:
  TableReader(std::string_view text, char separator, std::string_view source)
      : rest_(text), separator_(separator), source_(source) {}

  Tensor<double> read() {
    drop_blank_end();
    if (rest_.empty()) throw InputError(source_, "", "", "is empty, need rows of numbers");
    const auto cells = std::count(rest_.begin(), rest_.end(), separator_) + 1 +
                       std::count(rest_.begin(), rest_.end(), '\n');
    require_memory(static_cast<std::uint64_t>(cells) * sizeof(double), source_);
    Tensor<double> values = Tensor<double>::uninitialized({cells});
    double* next = values.data();
    while (!rest_.empty()) {
      ++line_number_;
      read_row(take_until(rest_, '\n'), next);
    }
    return std::move(values).reshaped({line_number_, columns_});
  }

 private:
  // Newlines (and blanks) behind the last row are no rows.
  void drop_blank_end() {
    const std::size_t end = rest_.find_last_not_of(" \t\r\n") + 1;
    const std::size_t newline = rest_.find('\n', end);
    if (end == 0 || newline != std::string_view::npos) {
      rest_ = rest_.substr(0, end == 0 ? 0 : newline);
    }
  }

  void read_row(std::string_view line, double*& next) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (is_blank(line)) fail_line("", "the line is blank, need a row of numbers");
    check_decimal_point(line);
    const Index count = 1 + std::count(line.begin(), line.end(), separator_);
    if (columns_ == 0) columns_ = count;
    if (count != columns_) {
      fail_line(std::to_string(count) + (count == 1 ? " value" : " values"),
                "need " + std::to_string(columns_) + " as in line 1");
    }
    for (column_ = 1; column_ <= count; ++column_) *next++ = value(take_until(line, separator_));
  }

  // "1,5;2,5" would otherwise be three columns, the middle one with a strange number.
  void check_decimal_point(std::string_view line) const {
    const bool comma = line.find(',') != std::string_view::npos;
    if (line.find(';') != std::string_view::npos) {
      fail_line(line, comma ? "decimal commas are not read: need decimal points, and " +
                                  separator_name() + " between the columns"
                            : "semicolons are not read: need " + separator_name() +
                                  " between the columns");
    }
    if (comma && separator_ != ',') {
      fail_line(line, "commas are not read: need decimal points, and " + separator_name() +
                          " between the columns");
    }
  }
  std::string separator_name() const { return separator_ == ',' ? "commas" : "tabs"; }

  double value(std::string_view cell) const {
    cell = trimmed(cell);
    if (cell.empty()) fail_cell("", "the cell is empty, need a number");
    if (const auto non_finite = parse_non_finite(cell)) return *non_finite;
    const auto number = parse_number(cell);
    if (!number) {
      fail_cell(cell, "need a number (or NaN, Infinity, -Infinity; names and quotes are not read)");
    }
    if (std::isinf(*number)) fail_cell(cell, "out of the range of float64");
    return *number;
  }

  [[noreturn]] void fail_line(std::string_view got, std::string_view rule) const {
    throw InputError(source_, "line " + std::to_string(line_number_), got, rule);
  }
  [[noreturn]] void fail_cell(std::string_view got, std::string_view rule) const {
    throw InputError(source_,
                     "line " + std::to_string(line_number_) + ", column " + std::to_string(column_),
                     got, rule);
  }

  std::string_view rest_;
  char separator_;
  std::string_view source_;
  Index line_number_ = 0;
  Index columns_ = 0;  // of every row, 0 before the first
  Index column_ = 0;
};

template <class T>
void append_element(std::string& out, T value) {
  if constexpr (std::is_unsigned_v<T>) {
    append_number(out, std::uint64_t{value});
  } else if constexpr (std::is_integral_v<T>) {
    append_number(out, std::int64_t{value});
  } else {
    append_number(out, convert_element<double>(value));
  }
}

}  // namespace

Tensor<double> parse_csv(std::string_view text, char separator, std::string_view source) {
  return TableReader(utf8_text(text, source), separator, source).read();
}

void check_csv_shape(const Shape& shape, std::string_view path, std::string_view field) {
  if (shape.rank() > 2 || shape.size() == 0) {
    throw InputError("", field, path,
                     "a tensor " + shape.str() + " is no table: need .npy or .json");
  }
}

void append_csv(std::string& out, const AnyTensor& tensor, char separator,
                const std::function<void(std::string&)>& row_done) {
  tensor.visit([&](const auto& t) {
    const Index columns = t.shape().rank() == 0 ? 1 : t.shape()[-1];
    for (Index i = 0; i < t.size(); ++i) {
      append_element(out, t[i]);
      const bool last = (i + 1) % columns == 0;
      out += last ? '\n' : separator;
      if (last) row_done(out);
    }
  });
}

}  // namespace attnlab
