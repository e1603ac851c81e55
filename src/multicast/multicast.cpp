#include <algorithm>
#include <deque>
#include <exception>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <dunlin/error.hpp>
#include <dunlin/group/subgroup_participant.hpp>
#include <dunlin/limits.hpp>
#include <dunlin/multicast.hpp>

#include "assert.hpp"
#include "fabric/bytes.hpp"
#include "fabric/names.hpp"
#include "fault_injection.hpp"
#include "log/posix_disk.hpp"
#include "multicast/durable_log.hpp"
#include "multicast/subgroup_view.hpp"
#include "scoped_flag.hpp"

/// From view to view: a view ends, what it did not deliver of our own comes first in the next.
namespace dunlin {

namespace {

using multicast::Counters;
using multicast::Delivery;
using multicast::SendResult;
using multicast::SubgroupView;

}  // namespace

/// One view's.
struct OpenView {
  Subgroup subgroup;
  std::vector<std::string> names;  // of its members
  std::unique_ptr<SubgroupView> view;
  std::vector<multicast::Known> had = {};  // by member: what the state taken holds already
};

void write(Writer& writer, const multicast::Known& known) {
  writer.u64(known.slots);
  writer.u32(static_cast<std::uint32_t>(known.fragments.size()));
  for (const std::uint64_t fragment : known.fragments) writer.u64(fragment);
}
[[nodiscard]] multicast::Known read_known(Reader& reader) {
  multicast::Known known{.slots = reader.u64()};
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left)
    known.fragments.push_back(reader.u64());
  return known;
}

[[nodiscard]] std::vector<std::string> names_of(const Fabric& fabric,
                                                const std::vector<Rank>& members) {
  std::vector<std::string> names;
  for (const Rank rank : members) {
    const std::string& name = fabric.member_name(rank);
    names.push_back(name.empty() ? std::to_string(rank) : name);
  }
  return names;
}

/// Then a part rests, as whoever has had nothing to do for so many polls.
constexpr std::uint64_t kFruitlessUntilRest = 64;

class Multicast::Participant final : public SubgroupParticipant {
 public:
  Participant(Group& group, const std::string& subgroup, MulticastOptions options)
      : group_(group), who_("subgroup '" + subgroup + "': "), options_(std::move(options)) {
    const bool durable = options_.mode == multicast::Mode::durable;
    if (durable && options_.log_directory.empty())
      throw Error(who_ + "a durable one needs a directory for its log: give log_directory");
    if (!durable && !(options_.log_directory.empty() && options_.log_given_up.empty()))
      throw Error(who_ + "log_directory and log_given_up are for the mode durable only");
    for (const std::string& name : options_.log_given_up) check_member_name(name);
    if (!durable) return;
    if (!options_.log_disk) options_.log_disk = log::posix_disk();
    durable_ = std::make_unique<multicast::DurableLog>(
        std::make_unique<multicast::Journal>(options_.log_disk, options_.log_directory,
                                             group.name() + "/" + subgroup),
        options_.log_given_up);
  }
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;
  ~Participant() override {
    if (durable_) durable_->end();
    open_views_.clear();
  }

  // --- what the group asks for -------------------------------------------------------------------
  void begin(Fabric& fabric, const Subgroup& subgroup) override {
    DUNLIN_ASSERT_ALWAYS(open_views_.empty() || open_views_.back().view->over(),
                         "GRP-V1: a view is finished before the next one begins");
    if (upcall_ || lacks_state_) drop_past();
    fruitless_ = 0;
    multicast::SubgroupViewOptions options{.name = subgroup.name,
                                           .generation = subgroup.view,
                                           .members = subgroup.members,
                                           .senders = subgroup.senders,
                                           .mode = options_.mode,
                                           .ring_bytes = options_.ring_bytes,
                                           .window_messages = options_.window_messages,
                                           .switches = options_.switches,
                                           .journal = durable_ ? &durable_->journal() : nullptr};
    if (is_injected(FaultInjection::generation_is_not_the_views)) options.generation = 1;
    multicast::Upcall upcall;
    if (upcall_) upcall = [this](std::span<const Delivery> batch) { hand_up_all(batch); };
    open_views_.push_back(
        {.subgroup = subgroup,
         .names = names_of(fabric, subgroup.members),
         .view = std::make_unique<SubgroupView>(fabric, std::move(options), upcall)});
    finishing_ = false;
    lacks_state_ = subgroup.lacks_state;
    if (durable_) {
      if (lacks_state_) durable_->skip_replay();
      durable_->begin(fabric, subgroup, open_views_.back().names);
    }
    now().hold(lacks_state_);
    send_again();
  }
  std::size_t poll() override {
    DUNLIN_ASSERT(!open_views_.empty() && !open_views_.back().view->over(),
                  "GRP-V1: a part is polled between begin() and finish()");
    if (!again_.empty()) [[unlikely]]
      send_again();
    // Whoever takes one message at a time must not sleep while there are more, or before it has
    // said that there is room.
    std::size_t done = std::exchange(taken_, false) ? 1 : 0;
    if (now().differs_from_first()) [[unlikely]]
      leave_because_of_options();
    if (durable_) {
      done += durable_->poll(now().counters().records_delivered > 0);
      leave_if(durable_->failure());  // the others can go on without us
      if (!durable_->begun()) return done;
    }
    const std::size_t found = now().poll();
    if (found > 0 || durable_)
      fruitless_ = 0;
    else
      ++fruitless_;
    return done + found;
  }
  bool rests() const noexcept override { return fruitless_ >= kFruitlessUntilRest; }
  void wedge() noexcept override { now().wedge(); }
  std::span<const std::uint64_t> received() const noexcept override {
    return open_views_.back().view->received();
  }
  void finish(std::span<const std::uint64_t> trim) override {
    DUNLIN_ASSERT_ALWAYS(!open_views_.empty(), "GRP-V1: what has not begun is not finished");
    if (durable_) durable_->end();
    SubgroupView::Remains remains = [&] {
      const ScopedFlag finishing(finishing_);
      return now().finish(trim);
    }();
    if (is_injected(FaultInjection::unsent_is_lost)) remains.again.clear();
    // What has not been sent again yet comes behind what has.
    again_.insert(again_.begin(), std::make_move_iterator(remains.again.begin()),
                  std::make_move_iterator(remains.again.end()));
    const OpenView& open_view = open_views_.back();
    for (std::size_t sender_rank = 0; sender_rank < remains.ahead.size(); ++sender_rank)
      if (remains.ahead[sender_rank] > 0)
        ahead_of_[open_view.names[open_view.subgroup.senders[sender_rank]]] +=
            remains.ahead[sender_rank];
    if (options_.mode == multicast::Mode::unordered && !open_view.had.empty())
      count_had(open_view, trim);
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

  // --- members that come in ----------------------------------------------------------------------
  bool wants_state() const noexcept override { return load_ != nullptr; }
  std::optional<std::vector<std::byte>> give_state() override {
    if (open_views_.size() != 1) return std::nullopt;  // next() has messages of an earlier view
    if (!now().handed_up()) return std::nullopt;
    std::vector<std::byte> state;
    Writer writer(state);
    const std::size_t sender_count = open_views_.back().subgroup.senders.size();
    writer.u32(static_cast<std::uint32_t>(sender_count));
    for (std::size_t sender_rank = 0; sender_rank < sender_count; ++sender_rank)
      write(writer, known_of(sender_rank));
    writer.u32(static_cast<std::uint32_t>(ahead_of_.size()));
    for (const auto& [name, ahead] : ahead_of_) {
      writer.text(name);
      writer.u64(ahead);
    }
    writer.u32(save_ ? 1 : 0);
    if (save_) writer.bytes(save_());
    if (state.size() > kMaxStateBytes)
      throw Error(who_ + "its state has " + std::to_string(state.size()) + " bytes; at most " +
                  std::to_string(kMaxStateBytes) +
                  " (kMaxStateBytes) can be given to a new member");
    return state;
  }
  void take_state(std::span<const std::byte> state) override {
    try {
      load(state);
    } catch (...) {
      group_.leave();
      throw;
    }
    lacks_state_ = false;
    now().hold(false);
  }
  bool uses(const Fabric& fabric) const noexcept override {
    return std::ranges::any_of(open_views_, [&](const OpenView& open_view) {
      return &open_view.view->fabric() == &fabric;
    });
  }
  void on_state(Save save, Load load) {
    check_not_begun("on_state");
    save_ = std::move(save);
    load_ = std::move(load);
  }

  // --- what the user asks for --------------------------------------------------------------------
  /// Who lacks its state does not: what it sent could come to it as a part of that only.
  [[nodiscard]] bool may_send() const noexcept {
    return !open_views_.empty() && again_.empty() && !lacks_state_;
  }
  [[nodiscard]] std::span<std::byte> prepare(std::size_t bytes) noexcept {
    if (!may_send()) return {};
    fruitless_ = 0;
    return now().prepare(bytes);
  }
  void commit() noexcept {
    if (!open_views_.empty()) now().commit();
  }
  [[nodiscard]] SendResult send(std::span<const std::byte> message) {
    fruitless_ = 0;
    if (!may_send()) [[unlikely]]
      return why_not_send();
    const SendResult result = now().send(message);
    if (result == SendResult::wedged) [[unlikely]]
      return why_not_send();
    return result;
  }
  [[nodiscard]] std::size_t largest_in_place() const noexcept {
    return multicast::RingShape{.memory = nullptr, .bytes = options_.ring_bytes, .slot_bytes = 0}
        .most_message_bytes();
  }
  void on_delivery(multicast::Upcall upcall) {
    if (!upcall_ || !upcall) check_not_begun("on_delivery");
    if (handing_up_) throw Error(who_ + "on_delivery in the upcall that it would replace");
    upcall_ = std::move(upcall);
  }
  [[nodiscard]] std::optional<Delivery> next() {
    if (upcall_) [[unlikely]]
      throw Error(who_ + "next() is for who has set no on_delivery");
    fruitless_ = 0;
    if (lacks_state_) return std::nullopt;
    while (!open_views_.empty()) {
      OpenView& oldest = open_views_.front();
      while (std::optional<Delivery> found = oldest.view->next()) {
        taken_ = true;
        if (!is_known(oldest, *found)) return found;
      }
      if (open_views_.size() == 1) return std::nullopt;
      drop_oldest();
    }
    return std::nullopt;
  }
  [[nodiscard]] const Subgroup& subgroup() const noexcept {
    return open_views_.empty() ? none_ : open_views_.front().subgroup;
  }
  void on_replay(multicast::ReplayUpcall upcall) {
    check_not_begun("on_replay");
    if (durable_) durable_->on_replay(std::move(upcall));
  }
  [[nodiscard]] std::vector<std::string> log_notices() const {
    return durable_ ? durable_->journal().notices() : std::vector<std::string>();
  }
  [[nodiscard]] Counters counters() const noexcept {
    Counters all = past_;
    for (const OpenView& open_view : open_views_) all += open_view.view->counters();
    if (durable_) all.log_commits = durable_->journal().commits();
    all.messages_sent -= sent_again_;
    all.bytes_sent -= bytes_sent_again_;
    return all;
  }
  void each_table(const std::function<void(const TableCore&)>& look) const {
    for (const OpenView& open_view : open_views_) look(open_view.view->table());
  }

 private:
  [[nodiscard]] SubgroupView& now() noexcept { return *open_views_.back().view; }

  /// While send() can take nothing, although there may be room.
  [[nodiscard]] SendResult why_not_send() const noexcept {
    if (group_.ended()) return SendResult::ended;
    if (open_views_.empty()) return SendResult::wedged;
    if (!open_views_.back().view->sends()) return SendResult::not_a_sender;
    if (lacks_state_) return SendResult::waiting_for_state;
    return again_.empty() ? SendResult::wedged : SendResult::no_room;
  }

  void check_not_begun(const char* what) const {
    if (open_views_.empty()) return;
    throw Error(who_ + what + " comes too late: call it before the group's first poll()");
  }

  /// What another member gave.
  void load(std::span<const std::byte> state) {
    Reader reader(state);
    OpenView& open_view = open_views_.back();
    std::vector<multicast::Known> had(open_view.subgroup.members.size());
    const std::uint32_t sender_count = reader.u32();
    for (std::uint32_t sender_rank = 0;
         sender_rank < sender_count && sender_rank < open_view.subgroup.senders.size();
         ++sender_rank)
      had[open_view.subgroup.senders[sender_rank]] = read_known(reader);
    ahead_of_.clear();
    for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
      const std::string name = reader.text();
      ahead_of_[name] = reader.u64();
    }
    const bool saved = reader.u32() != 0;
    if (!reader.good() || sender_count != open_view.subgroup.senders.size())
      throw Error(who_ + "another member gave a state that is none: do all use the same release?");
    if (!saved)
      throw Error(who_ +
                  "this member waits for a state, and the one that was asked saves none: call "
                  "on_state at all members, or at none");
    load_(reader.rest());
    open_view.had = std::move(had);
  }
  /// With members that differ nothing would ever be delivered.
  void leave_because_of_options() {
    try {
      now().check();
    } catch (const Error& e) {
      leave_if("its MulticastOptions are not those of the subgroup's first member: " +
               std::string(e.what()));
    }
  }
  void leave_if(const std::string& failure) {
    if (failure.empty()) return;
    group_.leave();
    throw Error("this member leaves the group: " + failure);
  }

  void drop_oldest() {
    past_ += open_views_.front().view->counters();
    open_views_.pop_front();
  }
  void drop_past() {
    while (!open_views_.empty()) drop_oldest();
  }

  void send_again() {
    while (!again_.empty() && now().send(again_.front()) == SendResult::sent) {
      ++sent_again_;
      bytes_sent_again_ += again_.front().size();
      again_.pop_front();
    }
  }

  /// What a state of ours holds of a sender: we may not have received yet what came with our own.
  [[nodiscard]] multicast::Known known_of(std::size_t sender_rank) {
    multicast::Known known = now().passed(sender_rank);
    const OpenView& open_view = open_views_.back();
    if (!open_view.had.empty())
      known.extend(open_view.had[open_view.subgroup.senders[sender_rank]]);
    return known;
  }
  /// Beyond the trim, and never received here: it will come again, too.
  void count_had(const OpenView& open_view, std::span<const std::uint64_t> trim) {
    for (std::size_t sender_rank = 0; sender_rank < trim.size(); ++sender_rank) {
      const std::uint32_t sender = open_view.subgroup.senders[sender_rank];
      const std::uint64_t from =
          std::max(open_view.view->passed(sender_rank).slots, trim[sender_rank]);
      if (const std::uint64_t messages = open_view.had[sender].messages_from(from))
        ahead_of_[open_view.names[sender]] += messages;
    }
  }
  /// What is in the state that we took, and what comes again of a sender and was delivered here
  /// already, is passed over.
  [[nodiscard]] bool is_known(const OpenView& open_view, const Delivery& delivery) {
    if (!open_view.had.empty() && delivery.slot < open_view.had[delivery.sender].slots) return true;
    if (ahead_of_.empty()) [[likely]]
      return false;
    const auto ahead = ahead_of_.find(open_view.names[delivery.sender]);
    if (ahead == ahead_of_.end()) return false;
    if (--ahead->second == 0) ahead_of_.erase(ahead);
    return true;
  }
  /// While a view ends, an upcall that throws keeps us from nothing: it is told afterwards.
  void hand_up_all(std::span<const Delivery> batch) {
    if (!finishing_) [[likely]]
      return hand_up(batch);
    try {
      hand_up(batch);
    } catch (...) {
      if (!thrown_) thrown_ = std::current_exception();
    }
  }
  void hand_up(std::span<const Delivery> batch) {
    const ScopedFlag handing_up(handing_up_);
    if (ahead_of_.empty() && open_views_.back().had.empty() && !lacks_state_) [[likely]]
      return upcall_(batch);
    if (lacks_state_) return;  // the view ends, and whom we ask next has it all
    std::vector<Delivery> rest;
    for (const Delivery& delivery : batch)
      if (!is_known(open_views_.back(), delivery)) rest.push_back(delivery);
    if (!rest.empty()) upcall_(rest);
  }

  Group& group_;
  const std::string who_;  // "subgroup 'orders': "
  MulticastOptions options_;
  std::uint64_t fruitless_ = 0;                     // polls in a row, and nothing was asked of us
  std::unique_ptr<multicast::DurableLog> durable_;  // in the durable mode
  bool taken_ = false;                              // by next(), since the last poll()
  multicast::Upcall upcall_;
  bool handing_up_ = false;
  bool finishing_ = false;                    // the view ends,
  std::exception_ptr thrown_;                 // and this came out of an upcall
  std::deque<OpenView> open_views_;           // the last one is the view at hand
  std::deque<std::vector<std::byte>> again_;  // own messages of views before
  /// Unordered: how many messages of a member were delivered beyond its trim.
  std::map<std::string, std::uint64_t> ahead_of_;
  Save save_;
  Load load_;
  bool lacks_state_ = false;
  std::uint64_t sent_again_ = 0;
  std::uint64_t bytes_sent_again_ = 0;
  Counters past_;
  Subgroup none_;
};

Multicast::Multicast(Group& group, const std::string& subgroup, MulticastOptions options)
    : participant_(std::make_unique<Participant>(group, subgroup, std::move(options))) {
  group.attach(subgroup, *participant_);
}
Multicast::Multicast(Group& group, const std::string& subgroup)
    : Multicast(group, subgroup, MulticastOptions()) {}
Multicast::~Multicast() = default;

std::span<std::byte> Multicast::prepare(std::size_t bytes) noexcept {
  return participant_->prepare(bytes);
}
void Multicast::commit() noexcept { participant_->commit(); }
SendResult Multicast::send(std::span<const std::byte> message) {
  return participant_->send(message);
}
std::size_t Multicast::largest_in_place() const noexcept {
  return participant_->largest_in_place();
}
void Multicast::on_delivery(multicast::Upcall upcall) {
  participant_->on_delivery(std::move(upcall));
}
std::optional<Delivery> Multicast::next() { return participant_->next(); }
void Multicast::on_state(Save save, Load load) {
  participant_->on_state(std::move(save), std::move(load));
}
const Subgroup& Multicast::subgroup() const noexcept { return participant_->subgroup(); }
void Multicast::on_replay(multicast::ReplayUpcall upcall) {
  participant_->on_replay(std::move(upcall));
}
std::vector<std::string> Multicast::log_notices() const { return participant_->log_notices(); }
Counters Multicast::counters() const noexcept { return participant_->counters(); }
void Multicast::each_table(const std::function<void(const TableCore&)>& look) const {
  participant_->each_table(look);
}

}  // namespace dunlin
