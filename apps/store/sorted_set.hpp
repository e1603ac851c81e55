#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dunlin::app::resp {

/// The members of a sorted set, as they lie in one value of the store
/// (docs/formats/typed-values.md): the mark, then of each member its score, its length, and its
/// bytes, in the order of the scores, and of the bytes where scores are equal. A process that
/// writes values of the store can write any bytes: a member that is not whole ends the set.
class SortedSet {
 public:
  struct Member {
    double score = 0;
    std::string_view name;
    std::string_view bytes;  // all of it, as it lies there
  };

  /// `value` has the mark of a sorted set, or is empty.
  explicit SortedSet(std::string_view value) noexcept;
  /// The next one; nothing behind the last.
  [[nodiscard]] std::optional<Member> next() noexcept;
  [[nodiscard]] static std::optional<Member> find(std::string_view value,
                                                  std::string_view name) noexcept;
  [[nodiscard]] static std::size_t count(std::string_view value) noexcept;

 private:
  std::string_view rest_;
};

/// The members that a command names, each once, and what becomes of them. They are sorted, and not
/// hashed: a client can choose names that all have one hash.
class NamedMembers {
 public:
  struct Named {
    std::string_view name;
    std::string_view found = {};  // where it lies in the set; empty: it is not there
    double score = 0;
    bool is_there = false;  // whether the command leaves the element there
    bool changed = false;
  };

  /// The names are words[0], words[step], and so on.
  NamedMembers(std::span<const std::string_view> words, std::size_t step);
  /// Finds them in the set, in one pass over it.
  void locate(std::string_view value) noexcept;
  /// An element that the command names.
  [[nodiscard]] Named& operator[](std::string_view name) noexcept { return *find(name); }
  /// Removes those that are there.
  std::size_t remove() noexcept;
  /// The set with what has changed; `value` is what locate() has seen.
  void write(std::string_view value, std::string& to) const;

 private:
  [[nodiscard]] Named* find(std::string_view name) noexcept;

  std::vector<Named> all_;
};

}  // namespace dunlin::app::resp
