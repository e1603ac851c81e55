#include "bench/multicast/speaker.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace dunlin::bench {

Speaker::Speaker(std::unique_ptr<dunlin::Group> group)
    : group_(std::move(group)), multicast_(*group_, "all") {
  multicast_.on_state([] { return std::vector<std::byte>(8); }, [](std::span<const std::byte>) {});
  multicast_.on_delivery([this](std::span<const multicast::Delivery> batch) {
    for (const multicast::Delivery& delivery : batch) {
      ++delivered_;
      if (multicast_.subgroup().members[delivery.sender] == group_->fabric().rank()) own_ = true;
    }
    if (on_delivery) on_delivery(multicast_.subgroup().view);
  });
}

std::size_t Speaker::poll() {
  if (own_ && multicast_.send(std::array<std::byte, 8>{}) == multicast::SendResult::sent)
    own_ = false;
  return group_->poll();
}

void report(std::vector<Result>& results, const Result& of, std::vector<double> values,
            double most) {
  Result median = of;
  median.params.emplace_back("of", "median");
  median.value = summarize(values);
  results.push_back(std::move(median));
  Result high = of;
  high.params.emplace_back("of", "99 %");
  std::ranges::sort(values);
  const auto place = static_cast<std::size_t>(0.99 * static_cast<double>(values.size() - 1) + 0.5);
  high.value = summarize(std::span(&values[place], 1));
  if (most > 0) high.goal = Goal{.on = Goal::On::value, .bound = most};
  results.push_back(std::move(high));
}

}  // namespace dunlin::bench
