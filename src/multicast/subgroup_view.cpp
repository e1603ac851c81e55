#include "multicast/subgroup_view.hpp"

#include <utility>

namespace dunlin::multicast {
namespace {

[[nodiscard]] std::optional<LogStage> log_stage_of(ViewMemory& memory, Receipts& receipts) {
  return memory.durable() ? std::make_optional<LogStage>(memory, receipts) : std::nullopt;
}

}  // namespace

SubgroupView::SubgroupView(Fabric& fabric, SubgroupViewOptions options, Upcall upcall)
    : memory_(fabric, std::move(options)),
      statistics_(memory_),
      receipts_(memory_, statistics_.counters),
      log_(log_stage_of(memory_, receipts_)),
      publisher_(memory_, receipts_, log_ ? &*log_ : nullptr, statistics_.counters),
      sender_(memory_, receipts_, publisher_, statistics_, lifecycle_),
      deliverer_(memory_, receipts_, log_ ? &*log_ : nullptr, publisher_, statistics_, lifecycle_,
                 std::move(upcall)) {}

std::size_t SubgroupView::poll() {
  std::size_t done = memory_.table().poll();
  if (!lifecycle_.open() || deliverer_.in_upcall() || memory_.senders() == 0) return done;
  memory_.spend(memory_.senders() + memory_.members(), 0);
  if (log_) log_->note_others();
  publisher_.note_asked();
  const Receipts::News news = receipts_.poll();
  if (news.ordered_slots) sender_.take_nulls();
  const std::size_t received = news.done + (log_ ? log_->note_own() : 0);
  // Most polls find nothing, and delay other work by the time that they take.
  const bool rested = rested_;
  if (received == 0 && rested && !has_to_send()) return done;
  rested_ = false;  // also if an upcall throws
  const bool announces = sender_.poll();
  const bool published = publisher_.publish(announces);
  const std::size_t sent = (published ? 1 : 0) + (sender_.refused() ? 1 : 0);
  const std::size_t logged = log_ ? log_->append_stable() : 0;
  const std::size_t delivered = deliverer_.poll();
  const bool rests = received + sent + logged + delivered == 0;
  if ((rests && !rested) || statistics_.count_poll()) [[unlikely]]
    statistics_.publish();
  rested_ = rests;
  return done + received + sent + logged + delivered;
}

bool SubgroupView::has_to_send() const noexcept {
  return publisher_.has_to_publish() || sender_.has_to_announce() || sender_.has_to_feed();
}

bool SubgroupView::covers_what_all_have(std::span<const std::uint64_t> trim) const noexcept {
  const std::span<const std::uint64_t> received = this->received();
  if (trim.size() != received.size()) return false;
  for (std::size_t sender_rank = 0; sender_rank < trim.size(); ++sender_rank)
    if (trim[sender_rank] > received[sender_rank]) return false;
  return true;
}

SubgroupView::Remains SubgroupView::finish(std::span<const std::uint64_t> trim, Rest rest) {
  if (over() || !covers_what_all_have(trim)) {
    refuse(options(),
           "finish() is called once, with as many slots of each sender as all survivors have "
           "received");
  }
  wedge();
  deliverer_.stop();
  Remains remains;
  if (!memory_.ordered()) remains.ahead = deliverer_.ahead_of(trim);
  if (log_) log_->cut(trim, deliverer_.cursors());
  lifecycle_.end();
  if (const SenderRank own = memory_.own_sender_rank())
    remains.again = sender_.uncovered(trim[*own]);
  switch (rest) {
    case Rest::deliver:
      deliverer_.deliver_rest(trim);
      break;
    case Rest::withhold:
      deliverer_.deliver_no_more();
      break;
  }
  return remains;
}

}  // namespace dunlin::multicast
