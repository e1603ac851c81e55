#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include <dunlin/error.hpp>
#include <dunlin/multicast.hpp>

#include "multicast/epoch.hpp"

/// From view to view: an epoch ends, what it did not deliver of our own comes first in the next.
namespace dunlin {
namespace {

using multicast::Counters;
using multicast::Delivery;
using multicast::Epoch;

void add(Counters& sum, const Counters& more) noexcept {
  sum.messages_sent += more.messages_sent;
  sum.bytes_sent += more.bytes_sent;
  sum.messages_delivered += more.messages_delivered;
  sum.bytes_delivered += more.bytes_delivered;
  sum.records_delivered += more.records_delivered;
  sum.nulls += more.nulls;
  sum.turns_received += more.turns_received;
  sum.receive_batches += more.receive_batches;
  sum.records_announced += more.records_announced;
  sum.send_batches += more.send_batches;
  sum.deliver_batches += more.deliver_batches;
  sum.puts += more.puts;
  sum.pushes += more.pushes;
  sum.no_room += more.no_room;
  sum.posting_ns += more.posting_ns;
}

}  // namespace

/// One view's.
struct Term {
  Subgroup subgroup;
  std::unique_ptr<Epoch> epoch;
};

class Multicast::Part final : public SubgroupPart {
 public:
  explicit Part(MulticastOptions options) : options_(options) {}

  // --- what the group asks for -------------------------------------------------------------------
  void begin(Fabric& fabric, const Subgroup& subgroup) override {
    if (upcall_) drop_past();
    multicast::EpochOptions options{.name = subgroup.name,
                                    .epoch = subgroup.view,
                                    .members = subgroup.members,
                                    .senders = subgroup.senders,
                                    .mode = options_.mode,
                                    .ring_bytes = options_.ring_bytes,
                                    .window_messages = options_.window_messages,
                                    .switches = options_.switches,
                                    .slot_bytes = options_.slot_bytes};
    multicast::Upcall upcall;
    if (upcall_) upcall = [this](std::span<const Delivery> batch) { hand_up(batch); };
    terms_.push_back({.subgroup = subgroup,
                      .epoch = std::make_unique<Epoch>(fabric, std::move(options), upcall)});
    send_again();
  }
  std::size_t poll() override {
    if (!again_.empty()) [[unlikely]]
      send_again();
    return now().poll();
  }
  void wedge() noexcept override { now().wedge(); }
  std::span<const std::uint64_t> received() const noexcept override {
    return terms_.back().epoch->received();
  }
  void finish(std::span<const std::uint64_t> trim) override {
    Epoch::Remains remains = now().finish(trim);
    // What has not been sent again yet comes behind what has.
    again_.insert(again_.begin(), std::make_move_iterator(remains.again.begin()),
                  std::make_move_iterator(remains.again.end()));
    const Subgroup& subgroup = terms_.back().subgroup;
    for (std::size_t seat = 0; seat < remains.ahead.size(); ++seat)
      ahead_of_[subgroup.members[subgroup.senders[seat]]] += remains.ahead[seat];
  }

  // --- what the user asks for --------------------------------------------------------------------
  [[nodiscard]] std::span<std::byte> prepare(std::size_t bytes) noexcept {
    if (terms_.empty() || !again_.empty()) return {};
    return now().prepare(bytes);
  }
  void commit() noexcept {
    if (!terms_.empty()) now().commit();
  }
  [[nodiscard]] bool send(std::span<const std::byte> message) {
    return !terms_.empty() && again_.empty() && now().send(message);
  }
  [[nodiscard]] std::size_t largest_in_place() const noexcept {
    return multicast::RingShape{.memory = nullptr, .bytes = options_.ring_bytes, .slot_bytes = 0}
        .most_message_bytes();
  }
  void on_delivery(multicast::Upcall upcall) { upcall_ = std::move(upcall); }

  [[nodiscard]] std::optional<Delivery> next() {
    while (!terms_.empty()) {
      Term& oldest = terms_.front();
      while (std::optional<Delivery> found = oldest.epoch->next())
        if (!is_again(oldest, *found)) return found;
      if (terms_.size() == 1) return std::nullopt;
      drop_oldest();
    }
    return std::nullopt;
  }
  [[nodiscard]] const Subgroup& subgroup() const noexcept {
    return terms_.empty() ? none_ : terms_.front().subgroup;
  }
  [[nodiscard]] Counters counters() const noexcept {
    Counters all = past_;
    for (const Term& term : terms_) add(all, term.epoch->counters());
    all.messages_sent -= sent_again_;
    all.bytes_sent -= bytes_sent_again_;
    return all;
  }

 private:
  [[nodiscard]] Epoch& now() noexcept { return *terms_.back().epoch; }

  void drop_oldest() {
    add(past_, terms_.front().epoch->counters());
    terms_.pop_front();
  }
  void drop_past() {
    while (!terms_.empty()) drop_oldest();
  }

  void send_again() {
    while (!again_.empty() && now().send(again_.front())) {
      ++sent_again_;
      bytes_sent_again_ += again_.front().size();
      again_.pop_front();
    }
  }

  /// What comes again of a sender, and was delivered here already, is passed over.
  [[nodiscard]] bool is_again(const Term& term, const Delivery& delivery) {
    if (ahead_of_.empty()) [[likely]]
      return false;
    const auto ahead = ahead_of_.find(term.subgroup.members[delivery.sender]);
    if (ahead == ahead_of_.end() || ahead->second == 0) return false;
    if (--ahead->second == 0) ahead_of_.erase(ahead);
    return true;
  }
  void hand_up(std::span<const Delivery> batch) {
    if (ahead_of_.empty()) [[likely]]
      return upcall_(batch);
    std::vector<Delivery> rest;
    for (const Delivery& delivery : batch)
      if (!is_again(terms_.back(), delivery)) rest.push_back(delivery);
    if (!rest.empty()) upcall_(rest);
  }

  MulticastOptions options_;
  multicast::Upcall upcall_;
  std::deque<Term> terms_;                    // the last one is the view at hand
  std::deque<std::vector<std::byte>> again_;  // own messages of views before
  std::map<Rank, std::uint64_t> ahead_of_;    // unordered: delivered of a sender beyond its trim
  std::uint64_t sent_again_ = 0;
  std::uint64_t bytes_sent_again_ = 0;
  Counters past_;
  Subgroup none_;
};

Multicast::Multicast(Group& group, const std::string& subgroup, MulticastOptions options)
    : part_(std::make_unique<Part>(options)) {
  group.attach(subgroup, *part_);
}
Multicast::~Multicast() = default;

std::span<std::byte> Multicast::prepare(std::size_t bytes) noexcept {
  return part_->prepare(bytes);
}
void Multicast::commit() noexcept { part_->commit(); }
bool Multicast::send(std::span<const std::byte> message) { return part_->send(message); }
std::size_t Multicast::largest_in_place() const noexcept { return part_->largest_in_place(); }
void Multicast::on_delivery(multicast::Upcall upcall) { part_->on_delivery(std::move(upcall)); }
std::optional<Delivery> Multicast::next() { return part_->next(); }
const Subgroup& Multicast::subgroup() const noexcept { return part_->subgroup(); }
Counters Multicast::counters() const noexcept { return part_->counters(); }

}  // namespace dunlin
