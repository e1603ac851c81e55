#pragma once

#include <array>
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

enum class Call : std::uint8_t { insert, assign, find, erase, push, pop };
inline constexpr std::size_t kCalls = 6;
[[nodiscard]] std::string_view name_of(Call call) noexcept;

/// The costs that `dunlin calibrate` measures, in nanoseconds: medians of round trips with another
/// member.
struct ComponentCosts {
  double read_ns = 0;          // a read of 8 bytes
  double write_ns = 0;         // a write of 8 bytes, until it is placed
  double compare_swap_ns = 0;  // on words that no other member uses
  double fetch_add_ns = 0;
  double message_ns = 0;  // a request and its reply, if the other member polls all the time
  double byte_ns = 0;     // each further byte of a read or write
  double message_byte_ns = 0;
  double batched_ns = 0;      // a second operation in a batch
  double shared_word_ns = 0;  // what each further client adds to an atomic on one word
  // Both are 0 where the other member's memory is not mapped: there they are too small to measure.
  std::array<double, kCalls> computing_ns{};  // of a one-sided call, besides its operations
  std::array<double, kCalls> far_ns{};        // what it takes more on a slot that is in no cache

  [[nodiscard]] bool measured() const noexcept { return read_ns > 0 && message_ns > 0; }
};

/// A cost of ComponentCosts: its name in the file, and in words.
struct Component {
  const char* name;
  const char* words;
  double ComponentCosts::*cost;
};
/// Those that are not of a call.
inline constexpr std::array kComponents{
    Component{"read_ns", "read of 8 bytes", &ComponentCosts::read_ns},
    Component{"write_ns", "write of 8 bytes", &ComponentCosts::write_ns},
    Component{"compare_swap_ns", "compare-and-swap", &ComponentCosts::compare_swap_ns},
    Component{"fetch_add_ns", "fetch-and-add", &ComponentCosts::fetch_add_ns},
    Component{"message_ns", "message and reply", &ComponentCosts::message_ns},
    Component{"byte_ns", "each further byte", &ComponentCosts::byte_ns},
    Component{"message_byte_ns", "... of a message", &ComponentCosts::message_byte_ns},
    Component{"batched_ns", "second write of a batch", &ComponentCosts::batched_ns},
    Component{"shared_word_ns", "one word, each client", &ComponentCosts::shared_word_ns},
};
/// Calls each(name, words, cost) for every cost of `costs`.
template <class Costs, class Each>
void for_each_cost(Costs& costs, const Each& each) {
  for (const Component& one : kComponents)
    each(std::string(one.name), std::string(one.words), costs.*one.cost);
  for (std::size_t i = 0; i < kCalls; ++i) {
    const std::string call(name_of(static_cast<Call>(i)));
    each(call + "_computing_ns", call + ", computing", costs.computing_ns.at(i));
    each(call + "_far_ns", std::string("... of a slot in no cache"), costs.far_ns.at(i));
  }
}

/// Throws Error if the file cannot be read, or was not written by `dunlin calibrate`.
[[nodiscard]] ComponentCosts load_costs(const std::string& file);
/// The costs as JSON, with the fabric and the machine on which they were measured.
[[nodiscard]] std::string text_of(const ComponentCosts& costs, const std::string& measured_on);

/// The conditions under which a call is made.
struct Situation {
  Promise promise = Promise::both;
  double load = 0.5;   // of a map: keys for each slot; if a part has grown, in its last table
  double tables = 1;   // tables of a map's part: those before the last are full
  double clients = 1;  // members that make such calls on this container at once
  double bytes = 32;   // bytes of the slot, or of all slots that are pushed or popped
  double count = 1;    // elements in the call
  double wait_ns = 0;  // mean time until the target polls
  bool used_lately =
      false;  // the member that works on the slot has used it, so that its cache has it
};

/// One term of a prediction: how many times a component cost counts.
struct CostTerm {
  std::string component;
  double count;
  double each_ns;
};

/// Predicts the time of a call in nanoseconds, without allocation.
[[nodiscard]] double predict_ns(const ComponentCosts& costs, Call call, Style style,
                                const Situation& situation) noexcept;
/// The terms whose sum is predict_ns().
[[nodiscard]] std::vector<CostTerm> explain(const ComponentCosts& costs, Call call, Style style,
                                            const Situation& situation);
/// If the target polls within less than this on average, a message is cheaper than one-sided
/// access; 0 or less: a message never is. The situation's own wait does not count.
[[nodiscard]] double longest_wait_ns(const ComponentCosts& costs, Call call,
                                     Situation situation) noexcept;
/// The style with the lower prediction; Style::one_sided as long as nothing is measured.
[[nodiscard]] Style cheaper_style(const ComponentCosts& costs, Call call,
                                  const Situation& situation) noexcept;

}  // namespace dunlin
