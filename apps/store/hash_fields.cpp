#include "store/hash_fields.hpp"

#include <algorithm>

#include "store/command_table.hpp"

namespace dunlin::app::resp {
namespace {

std::uint32_t length_at(std::string_view text) noexcept {
  std::uint32_t length = 0;
  for (std::size_t i = 4; i-- > 0;) length = length << 8 | static_cast<unsigned char>(text[i]);
  return length;
}

void append_length(std::string& to, std::size_t bytes) {
  for (int shift = 0; shift < 32; shift += 8) to += static_cast<char>(bytes >> shift & 0xff);
}

}  // namespace

HashFields::HashFields(std::string_view value) noexcept
    : rest_(value.substr(std::min(value.size(), kMarkBytes))) {}

std::optional<HashFields::Field> HashFields::next() noexcept {
  if (rest_.size() < kLengthsBytes) return {};
  const std::size_t name = length_at(rest_);
  const std::size_t value = length_at(rest_.substr(4));
  const std::string_view bytes = rest_.substr(kLengthsBytes);
  if (name + value > bytes.size()) return {};
  rest_ = bytes.substr(name + value);
  return Field{bytes.substr(0, name), bytes.substr(name, value)};
}

std::optional<std::string_view> HashFields::find(std::string_view value,
                                                 std::string_view name) noexcept {
  HashFields fields(value);
  while (const std::optional<Field> field = fields.next())
    if (field->name == name) return field->value;
  return {};
}

std::size_t HashFields::count(std::string_view value) noexcept {
  HashFields fields(value);
  std::size_t count = 0;
  while (fields.next()) ++count;
  return count;
}

void HashFields::append(std::string& to, const Field& field) {
  append_length(to, field.name.size());
  append_length(to, field.value.size());
  to += field.name;
  to += field.value;
}

NamedFields::NamedFields(std::span<const std::string_view> words, std::size_t step) {
  fields_.reserve(words.size() / step);
  for (std::size_t i = 0; i < words.size(); i += step)
    fields_.push_back(
        {.name = words[i], .value = step == 2 ? std::optional(words[i + 1]) : std::nullopt});
  std::ranges::stable_sort(fields_, {}, &Field::name);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const bool is_last = i + 1 == fields_.size() || fields_[i + 1].name != fields_[i].name;
    if (is_last) fields_[kept++] = fields_[i];
  }
  fields_.resize(kept);
}

NamedFields::Field* NamedFields::find(std::string_view name) noexcept {
  const auto found = std::ranges::lower_bound(fields_, name, {}, &Field::name);
  return found != fields_.end() && found->name == name ? &*found : nullptr;
}

}  // namespace dunlin::app::resp
