#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dunlin::app::resp {

/// The fields of a hash, as they lie in one value of the store: the mark, then of each field the
/// lengths of its name and its value, 32 bits each in little-endian order, and both. A member that
/// writes values of the store can write any bytes: a field that is not whole ends the fields.
class HashFields {
 public:
  struct Field {
    std::string_view name;
    std::string_view value;
  };
  static constexpr std::size_t kLengthsBytes = 8;  // of a field, beside its name and its value

  /// `value` has the mark of a hash, or is empty.
  explicit HashFields(std::string_view value) noexcept;
  /// The next one; nothing behind the last.
  [[nodiscard]] std::optional<Field> next() noexcept;
  [[nodiscard]] static std::optional<std::string_view> find(std::string_view value,
                                                            std::string_view name) noexcept;
  [[nodiscard]] static std::size_t count(std::string_view value) noexcept;
  static void append(std::string& to, const Field& field);

 private:
  std::string_view rest_;
};

/// The fields that a command names, each once. They are sorted, and not hashed: a client can choose
/// names that all have one hash.
class NamedFields {
 public:
  struct Field {
    std::string_view name;
    std::optional<std::string_view> value;  // the last one that the command gives it; or the hash's
    bool is_in_hash = false;
  };

  /// `words` are names, or, with a step of 2, names and values in turn.
  NamedFields(std::span<const std::string_view> words, std::size_t step);
  /// Null if the command does not name it.
  [[nodiscard]] Field* find(std::string_view name) noexcept;

 private:
  std::vector<Field> fields_;
};

}  // namespace dunlin::app::resp
