#include "multicast/resending.hpp"

#include <iterator>

namespace dunlin::multicast {

void Resending::add(std::vector<std::vector<std::byte>> messages) {
  messages_.insert(messages_.begin(), std::make_move_iterator(messages.begin()),
                   std::make_move_iterator(messages.end()));
}

void Resending::send_in(SubgroupView& view) {
  while (!messages_.empty() && view.send(messages_.front()) == SendResult::sent) {
    ++sent_;
    bytes_sent_ += messages_.front().size();
    messages_.pop_front();
  }
}

void Resending::take_from(Counters& counters) const noexcept {
  counters.messages_sent -= sent_;
  counters.bytes_sent -= bytes_sent_;
}

}  // namespace dunlin::multicast
