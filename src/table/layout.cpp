#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <dunlin/error.hpp>
#include <dunlin/table/layout.hpp>

#include "fabric/hash.hpp"

namespace dunlin {
namespace {

constexpr std::array<std::string_view, 13> kTypeNames{
    "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "text", "bytes"};
constexpr std::array<std::size_t, 13> kTypeBytes{1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 0, 0};  // 0: any
constexpr std::array<std::string_view, 3> kKindNames{"word", "stamped", "list"};

void append_number(std::string& to, std::string_view before, std::size_t number) {
  to += before;
  to += std::to_string(number);
}

/// Reads "name type kind @offset xcount entry/stride/bytes", as text() writes it.
class LineParser {
 public:
  explicit LineParser(std::string_view line) : line_(line), rest_(line) {}

  std::string_view word() {
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view found = rest_.substr(0, end);
    if (found.empty()) fail("a word is missing");
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return found;
  }
  template <std::size_t N>
  std::size_t one_of(const std::array<std::string_view, N>& names) {
    return place_of(word(), names);
  }
  template <std::size_t N>
  std::size_t place_of(std::string_view found, const std::array<std::string_view, N>& names) {
    for (std::size_t i = 0; i < N; ++i) {
      if (names[i] == found) return i;
    }
    fail("'" + std::string(found) + "' is not known");
  }
  std::size_t number(char before) {
    if (rest_.empty() || rest_.front() != before) fail(std::string("expected '") + before + "'");
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data() + 1, rest_.data() + rest_.size(), value);
    if (error != std::errc{}) fail("expected a number");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    return value;
  }
  void expect_end() const {
    if (!rest_.empty()) fail("there is more than expected");
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw Error("layout: line '" + std::string(line_.substr(0, 80)) + "': " + why +
                "; expected 'name type kind @offset xcount =entry /stride +bytes'");
  }

 private:
  std::string_view line_;
  std::string_view rest_;
};

Column parse_column(std::string_view line) {
  LineParser in(line);
  Column c{};
  c.name = in.word();
  const std::string_view type = in.word();  // "i32", or "bytes(i64,f64)"
  const std::size_t fields = std::min(type.find('('), type.size());
  c.type = static_cast<EntryType>(in.place_of(type.substr(0, fields), kTypeNames));
  if (fields < type.size()) {
    if (c.type != EntryType::bytes || !type.ends_with(')') || type.size() - fields < 3) {
      in.fail("expected 'bytes' with its fields in brackets");
    }
    c.fields = type.substr(fields + 1, type.size() - fields - 2);
  }
  c.kind = static_cast<ColumnKind>(in.one_of(kKindNames));
  c.offset = in.number('@');
  c.count = in.number('x');
  c.entry_bytes = in.number('=');
  c.stride_bytes = in.number('/');
  c.bytes = in.number('+');
  in.expect_end();
  return c;
}

[[noreturn]] void refuse(const std::string& column, const std::string& why) {
  throw Error("layout: column '" + column + "' " + why);
}

/// Tells the line "row 192" from a column of that name, "row i32 word ...".
bool is_row_size(std::string_view line) noexcept {
  constexpr std::string_view kRow = "row ";
  return line.starts_with(kRow) &&
         (line.size() == kRow.size() || (line[kRow.size()] >= '0' && line[kRow.size()] <= '9'));
}

bool is_blank(char c) noexcept { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; }
bool is_word(const std::string& name) { return std::none_of(name.begin(), name.end(), is_blank); }
std::string printable(std::string name) {
  std::replace_if(name.begin(), name.end(), is_blank, '?');
  return name;
}

/// The value of the entries must fit their strides, and the strides the column, without overflow: a
/// layout may come from another process.
void check_column(const Column& c, std::size_t row_bytes) {
  constexpr std::size_t kMax = kMaxRowBytes;
  if (c.name.empty()) refuse(c.name, "has no name");
  if (!is_word(c.fields)) refuse(c.name, "has blanks or control characters in its fields");
  if (!is_word(c.name)) refuse(printable(c.name), "has blanks or control characters in its name");
  if (c.count == 0 || c.entry_bytes == 0) refuse(c.name, "is empty");
  if (c.count > kMax || c.stride_bytes > kMax || c.bytes > kMax || c.offset > kMax) {
    refuse(c.name, "is over kMaxRowBytes (" + std::to_string(kMax) + " bytes)");
  }
  const std::size_t type_bytes = kTypeBytes[static_cast<std::size_t>(c.type)];
  if (type_bytes != 0 && type_bytes != c.entry_bytes) {
    refuse(c.name, "has entries of " + std::to_string(c.entry_bytes) + " bytes, which '" +
                       std::string(describe(c.type)) + "' does not have");
  }
  const std::size_t head = c.kind == ColumnKind::list ? kListSlotsOffset : 0;
  if (c.offset + c.bytes > row_bytes || head + c.count * c.stride_bytes > c.bytes) {
    refuse(c.name, "does not fit in its row of " + std::to_string(row_bytes) + " bytes");
  }
  const bool word = c.kind == ColumnKind::word;
  if (word && (c.entry_bytes > c.stride_bytes || c.stride_bytes > kWordBytes ||
               !std::has_single_bit(c.stride_bytes) || c.offset % c.stride_bytes != 0)) {
    refuse(c.name, "is not made of aligned words");
  }
  if (!word && (c.offset % kCacheLineBytes != 0 || c.stride_bytes % kWordBytes != 0)) {
    refuse(c.name, "is not aligned to a cache line");
  }
  if (c.kind == ColumnKind::stamped) {
    constexpr std::size_t kPayloadBytes = kCacheLineBytes - 2 * sizeof(std::uint32_t);
    const std::size_t lines = c.stride_bytes / (2 * kCacheLineBytes);
    if (c.stride_bytes % (2 * kCacheLineBytes) != 0 || c.entry_bytes > lines * kPayloadBytes) {
      refuse(c.name, "does not consist of two slots of lines that hold its value");
    }
  }
  if (c.kind == ColumnKind::list && c.stride_bytes < c.entry_bytes) {
    refuse(c.name, "has entries longer than their places");
  }
}

}  // namespace

std::string_view describe(EntryType type) noexcept {
  return kTypeNames[static_cast<std::size_t>(type)];
}

std::string Layout::text() const {
  std::string all;
  for (const Column& c : columns) {
    all += c.name;
    all += ' ';
    all += describe(c.type);
    if (!c.fields.empty()) all += "(" + c.fields + ")";
    all += ' ';
    all += kKindNames[static_cast<std::size_t>(c.kind)];
    append_number(all, " @", c.offset);
    append_number(all, " x", c.count);
    append_number(all, " =", c.entry_bytes);
    append_number(all, " /", c.stride_bytes);
    append_number(all, " +", c.bytes);
    all += '\n';
  }
  append_number(all, "row ", row_bytes);
  all += '\n';
  return all;
}

Layout Layout::parse(std::string_view text) {
  Layout layout;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (is_row_size(line)) {
      const auto [rest, error] =
          std::from_chars(line.data() + 4, line.data() + line.size(), layout.row_bytes);
      if (error != std::errc{} || rest != line.data() + line.size()) {
        throw Error("layout: 'row' is not followed by a number of bytes");
      }
    } else {
      layout.columns.push_back(parse_column(line));
    }
  }
  layout.check();
  return layout;
}

std::uint64_t Layout::hash() const {
  return fnv1a(text());  // what two sides compare is what they would read to each other
}

void Layout::check() const {
  if (columns.empty()) throw Error("layout: a row needs at least one column");
  if (columns.size() > kMaxColumns) {
    throw Error("layout: " + std::to_string(columns.size()) + " columns are over kMaxColumns (" +
                std::to_string(kMaxColumns) + ")");
  }
  if (row_bytes > kMaxRowBytes) {
    throw Error("layout: a row of " + std::to_string(row_bytes) + " bytes is over kMaxRowBytes (" +
                std::to_string(kMaxRowBytes) + ")");
  }
  std::size_t end = 0;
  for (const Column& c : columns) {
    check_column(c, row_bytes);
    if (c.offset < end) refuse(c.name, "overlaps the one before it");
    end = c.offset + c.bytes;
  }
  if (text().size() > kMaxLayoutTextBytes / 2) {
    throw Error("layout: the names of the columns are too long to describe the row in " +
                std::to_string(kMaxLayoutTextBytes / 2) + " bytes");
  }
}

}  // namespace dunlin
