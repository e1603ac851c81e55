#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Histories collects what concurrent clients did to registers and maps, of one run or of many, and
/// asks an independent checker (Porcupine, tests/linearizability/checker) whether each history is
/// linearizable. One thread uses it; one process of the checker decides all of them.
///
///     Histories histories;
///     histories.begin("seed-7", Histories::Model::map);
///     histories.put(/*client=*/0, "key", "1", /*call=*/10, /*end=*/20);
///     histories.get(/*client=*/1, "key", "1", 15, 30);
///     EXPECT_TRUE(histories.check().linearizable);
///
/// An operation happens at one moment from its call to its end, both included: two operations, of
/// which one ends at the stamp at which the other is called, are concurrent. Stamps are numbers of
/// events in a simulator, or CLOCK_MONOTONIC of one host. Puts should have different values.
namespace dunlin::test {

class Histories {
 public:
  /// A put without an answer may have happened, or may happen at any later time.
  static constexpr std::uint64_t kNever = UINT64_MAX;
  static constexpr std::string_view kAbsent = "-";  // what a map holds for other keys
  enum class Model {
    one_register,  // keys hold "0" at first
    map,           // keys are absent at first
    transactions   // keys are absent at first; an operation reads and writes several at one moment
  };
  struct Verdict {
    bool linearizable = false;
    std::string text;  // what the checker says: the histories that are not linearizable, and totals
  };

  /// Why there is no checker here; empty if there is one.
  [[nodiscard]] static std::string why_not();

  /// What follows belongs to a history of this name, which has no spaces.
  void begin(std::string_view name, Model model);
  void put(std::uint32_t client, std::string_view key, std::string_view value, std::uint64_t call,
           std::uint64_t end);
  void erase(std::uint32_t client, std::string_view key, std::uint64_t call, std::uint64_t end) {
    put(client, key, kAbsent, call, end);
  }
  /// A get without an answer says nothing: leave it out.
  void get(std::uint32_t client, std::string_view key, std::string_view value, std::uint64_t call,
           std::uint64_t end);
  /// KEY=VALUE,KEY=VALUE: what it has read, and what it has written after that. Without an end it
  /// may have happened, now or later, if it has read what was there.
  void transaction(std::uint32_t client, std::string_view reads, std::string_view writes,
                   std::uint64_t call, std::uint64_t end);
  /// Lines in the checker's format, which another process has written.
  void append(std::string_view lines) { text_ += lines; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

  /// Throws Error if the checker cannot be run, or does not understand the histories.
  [[nodiscard]] Verdict check() const;

 private:
  void add(std::uint32_t client, std::string_view what, std::string_view key,
           std::string_view value, std::uint64_t call, std::uint64_t end);
  std::string text_;
};

}  // namespace dunlin::test
