#include "store/routes.hpp"

#include <algorithm>
#include <bit>

namespace dunlin::store {

void Routes::take_over(const SlotMap& map, const std::vector<std::uint32_t>& changed) {
  if (!map.created() || changed.empty()) return;
  if (words_.size() != map.slots()) {
    words_.assign(map.slots(), 0);
    bits_ = static_cast<unsigned>(std::countr_zero(map.slots()));
  }
  for (const std::uint32_t number : changed) words_[number] = route::of(map.slot(number));
  closed_ = lost_ = 0;
  for (const std::uint64_t word : words_) {
    closed_ += route::is_open(word) || route::is_lost(word) ? 0 : 1;
    lost_ += route::is_lost(word) ? 1 : 0;
  }
  ++changes_;
}

void Routes::close() {
  if (closed_ == words_.size()) return;
  for (std::uint64_t& word : words_) word &= ~(route::kOpen | route::kLost);
  closed_ = words_.size();
  ++changes_;
}

}  // namespace dunlin::store
