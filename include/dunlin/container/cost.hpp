#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/container/promise.hpp>

/// The cost model predicts the cost of a call on a container from the costs of the fabric's
/// operations. docs/cost-model.md has the expressions, and how well they hold.
///
///     const auto costs = dunlin::load_costs("rack7.json");          // of `dunlin calibrate`
///     dunlin::Containers containers(*fabric, {.costs = costs});
namespace dunlin {

/// The costs that `dunlin calibrate` measures, in nanoseconds: medians of round trips with another
/// member.
struct ComponentCosts {
  double read_ns = 0;          // of 8 bytes
  double write_ns = 0;         // of 8 bytes, until it is placed
  double compare_swap_ns = 0;  // on words that no other member uses
  double fetch_add_ns = 0;
  double message_ns = 0;  // a request and its reply, of a member that polls all the time
  double byte_ns = 0;     // of each further byte of a read or write
  double message_byte_ns = 0;
  double batched_ns = 0;      // of a second operation in a batch
  double shared_word_ns = 0;  // that each further client adds to an atomic on one word

  [[nodiscard]] bool measured() const noexcept { return read_ns > 0 && message_ns > 0; }
};

/// Throws Error if the file cannot be read, or is not of `dunlin calibrate`.
[[nodiscard]] ComponentCosts load_costs(const std::string& file);
/// As JSON, with the fabric and the machine on which it was measured.
[[nodiscard]] std::string text_of(const ComponentCosts& costs, const std::string& measured_on);

enum class Call : std::uint8_t { insert, assign, find, erase, push, pop };
inline constexpr std::size_t kCalls = 6;
[[nodiscard]] std::string_view name_of(Call call) noexcept;

/// The conditions of a call.
struct Situation {
  Promise promise = Promise::both;
  double load = 0.5;   // of a map: keys for each slot; of a part that has grown, of its last table
  double tables = 1;   // of a part: those before the last are full
  double clients = 1;  // that make such calls on this container at the same time
  double bytes = 32;   // of the slot, or of all slots that are pushed or popped
  double count = 1;    // elements of the call
  double wait_ns = 0;  // until the target polls: the mean residual of its poll intervals
};

/// Part of a prediction: so many of a component.
struct CostTerm {
  std::string component;
  double count;
  double each_ns;
};

/// Without allocation.
[[nodiscard]] double predict_ns(const ComponentCosts& costs, Call call, Style style,
                                const Situation& situation) noexcept;
/// The same, as the sum of its terms.
[[nodiscard]] std::vector<CostTerm> explain(const ComponentCosts& costs, Call call, Style style,
                                            const Situation& situation);
/// A message is the cheaper style if its target polls within less than this, on average; 0 or less
/// if it never is. The situation's own wait does not count.
[[nodiscard]] double longest_wait_ns(const ComponentCosts& costs, Call call,
                                     Situation situation) noexcept;
/// Style::one_sided, as long as nothing is measured.
[[nodiscard]] Style cheaper_style(const ComponentCosts& costs, Call call,
                                  const Situation& situation) noexcept;

}  // namespace dunlin
