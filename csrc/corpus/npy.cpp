// numpy's .npy: "\x93NUMPY", u8 major, u8 minor, the header's length (u16 in version 1, else u32),
// the header (text of a Python dict with the keys descr, fortran_order and shape), the values.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "corpus/formats.hpp"

namespace brimful {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::uint32_t kMaxHeader = 1 << 20;

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

// Reads exactly the dicts that numpy writes, with any spacing and order of keys.
class HeaderParser {
 public:
  HeaderParser(const FileName& name, std::string_view text) : name_(name), text_(text) {}

  Header parse() {
    Header header;
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !has_descr) {
        header.descr = quoted();
        has_descr = true;
      } else if (key == "fortran_order" && !has_order) {
        header.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        header.shape = shape();
        has_shape = true;
      } else {
        fail("unexpected key '" + key + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!text_.empty()) fail("text after the dict");
    if (!has_descr || !has_order || !has_shape) fail("descr, fortran_order or shape is missing");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw FormatError(name_.text + ": the .npy header cannot be read: " + problem +
                      "; expected a plain array of integers written by numpy.save");
  }
  void skip_space() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n'))
      text_.remove_prefix(1);
  }
  bool accept(char c) {
    skip_space();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "'");
  }
  std::string quoted() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = text_.find(quote);
    if (end == std::string_view::npos) fail("a text has no end");
    std::string value(text_.substr(0, end));
    for (const char c : value) {
      if (c < ' ' || c > '~' || c == '\\') fail("a text holds other than plain characters");
    }
    text_.remove_prefix(end + 1);
    return value;
  }
  bool boolean() {
    skip_space();
    for (const std::string_view word : {std::string_view("True"), std::string_view("False")}) {
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return word == "True";
      }
    }
    fail("fortran_order is neither True nor False");
  }
  std::int64_t integer() {
    skip_space();
    std::int64_t value = 0;
    std::size_t digits = 0;
    for (; digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits) {
      if (value > (std::numeric_limits<std::int64_t>::max() - 9) / 10)
        fail("a number is too large");
      value = 10 * value + (text_[digits] - '0');
    }
    if (digits == 0) fail("expected a number");
    if (digits > 1 && text_.front() == '0') fail("a number begins with 0");
    text_.remove_prefix(digits);
    return value;
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      sizes.push_back(integer());
      if (!accept(',')) {
        if (sizes.size() == 1) fail("the shape is not a tuple");
        expect(')');
        break;
      }
    }
    return sizes;
  }

  const FileName& name_;
  std::string_view text_;
};

TokenType token_type(const FileName& name, const std::string& descr) {
  if (descr.size() == 3) {
    const char order = descr[0];
    for (const TokenTypeInfo& info : kTokenTypes) {
      const char kind = info.name.front();
      const char digit = static_cast<char>('0' + info.size);
      if (descr[1] != kind || descr[2] != digit) continue;
      if (order == '<' || (info.size == 1 && (order == '|' || order == '>'))) return info.type;
      if (order == '>') {
        throw FormatError(name.text + ": big-endian values (descr '" + descr +
                          "'); save the array with astype('" + std::string(info.name) + "')");
      }
    }
  }
  throw FormatError(name.text + ": values of descr '" + descr +
                    "' are no tokens; expected uint8, int8, uint16, int16, uint32, int32 or int64");
}

}  // namespace

NpyFile open_npy(const FileName& name, std::optional<TokenType> declared) {
  const auto file = SharedFile::open(name, SharedFile::Kind::kTokens);
  std::array<unsigned char, 12> head{};
  file->read(0, std::min<std::int64_t>(file->size(), head.size()), head.data());
  if (file->size() < 10 || std::memcmp(head.data(), kMagic.data(), kMagic.size()) != 0) {
    throw FormatError(name.text +
                      ": does not begin with \\x93NUMPY; not an .npy file (a headerless "
                      "file is read with format=\"raw\" and a dtype)");
  }
  const auto major = static_cast<int>(head[6]);
  const auto minor = static_cast<int>(head[7]);
  if (major < 1 || major > 3 || minor != 0) {
    throw FormatError(name.text + ": .npy version " + std::to_string(major) + "." +
                      std::to_string(minor) + "; expected 1.0, 2.0 or 3.0");
  }
  const std::int64_t text_begin = major == 1 ? 10 : 12;
  std::uint32_t text_size = 0;
  std::memcpy(&text_size, head.data() + 8, major == 1 ? 2 : 4);
  const std::int64_t begin = text_begin + text_size;
  if (begin > file->size()) {
    throw FormatError(name.text + ": " + std::to_string(file->size()) +
                      " bytes, but the header alone should have " + std::to_string(begin) +
                      "; the file is truncated");
  }
  if (text_size > kMaxHeader) {
    throw FormatError(name.text + ": a header of " + std::to_string(text_size) +
                      " bytes; one of a plain array has a hundred or so");
  }
  std::string text(text_size, '\0');
  file->read(text_begin, text_size, text.data());
  const Header header = HeaderParser(name, text).parse();
  const TokenType type = token_type(name, header.descr);
  check_declared(name, type, declared);
  const std::vector<std::int64_t>& shape = header.shape;
  if (shape.size() != 1 && shape.size() != 2) {
    throw FormatError(name.text + ": an array of " + std::to_string(shape.size()) +
                      " dimensions; expected one (tokens) or two (documents, tokens)");
  }
  const bool matrix = shape.size() == 2;
  const std::int64_t rows = matrix ? shape[0] : 1;
  const std::int64_t columns = shape.back();
  if (header.fortran_order && rows > 1 && columns > 1) {
    throw FormatError(name.text +
                      ": the matrix is stored column by column (fortran_order); save "
                      "numpy.ascontiguousarray of it");
  }
  if (matrix && columns == 0 && rows > 0) {
    throw FormatError(name.text + ": a matrix of " + std::to_string(rows) + " rows and no columns");
  }
  std::int64_t bytes = 0;
  const auto size = static_cast<std::int64_t>(item_size(type));
  if (__builtin_mul_overflow(rows, columns, &bytes) ||
      __builtin_mul_overflow(bytes, size, &bytes) || bytes != file->size() - begin) {
    throw FormatError(name.text + ": " + std::to_string(file->size() - begin) +
                      " bytes of values, but " + std::to_string(rows) + " x " +
                      std::to_string(columns) + " of " + std::string(type_name(type)) +
                      " were promised");
  }
  TokenStore store = store_of(name, file, begin, type);
  store.documents = Extents::uniform(!matrix && columns == 0 ? 0 : rows, columns);
  return {std::move(store), matrix};
}

}  // namespace brimful
