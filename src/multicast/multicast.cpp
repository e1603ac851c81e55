#include <algorithm>
#include <deque>
#include <exception>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <dunlin/error.hpp>
#include <dunlin/group/subgroup_part.hpp>
#include <dunlin/limits.hpp>
#include <dunlin/multicast.hpp>

#include "assert.hpp"
#include "fabric/bytes.hpp"
#include "fabric/names.hpp"
#include "flaw.hpp"
#include "log/posix_disk.hpp"
#include "multicast/durable_log.hpp"
#include "multicast/epoch.hpp"
#include "scoped_flag.hpp"

/// From view to view: an epoch ends, what it did not deliver of our own comes first in the next.
namespace dunlin {

namespace {

using multicast::Counters;
using multicast::Delivery;
using multicast::Epoch;
using multicast::SendResult;

}  // namespace

/// One view's.
struct Term {
  Subgroup subgroup;
  std::vector<std::string> names;  // of its members
  std::unique_ptr<Epoch> epoch;
  std::vector<multicast::Known> had = {};  // by member: what the state taken holds already
};

void write(Writer& writer, const multicast::Known& known) {
  writer.u64(known.turns);
  writer.u32(static_cast<std::uint32_t>(known.parts.size()));
  for (const std::uint64_t part : known.parts) writer.u64(part);
}
[[nodiscard]] multicast::Known read_known(Reader& reader) {
  multicast::Known known{.turns = reader.u64()};
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left)
    known.parts.push_back(reader.u64());
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

class Multicast::Part final : public SubgroupPart {
 public:
  Part(Group& group, const std::string& subgroup, MulticastOptions options)
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
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() override {
    if (durable_) durable_->end();
    terms_.clear();
  }

  // --- what the group asks for -------------------------------------------------------------------
  void begin(Fabric& fabric, const Subgroup& subgroup) override {
    DUNLIN_ASSERT_ALWAYS(terms_.empty() || terms_.back().epoch->over(),
                         "GRP-V1: a view is finished before the next one begins");
    if (upcall_ || lacks_state_) drop_past();
    fruitless_ = 0;
    multicast::EpochOptions options{.name = subgroup.name,
                                    .epoch = subgroup.view,
                                    .members = subgroup.members,
                                    .senders = subgroup.senders,
                                    .mode = options_.mode,
                                    .ring_bytes = options_.ring_bytes,
                                    .window_messages = options_.window_messages,
                                    .switches = options_.switches,
                                    .journal = durable_ ? &durable_->journal() : nullptr};
    if (flawed(Flaw::epoch_is_not_the_views)) options.epoch = 1;
    multicast::Upcall upcall;
    if (upcall_) upcall = [this](std::span<const Delivery> batch) { hand_up_all(batch); };
    terms_.push_back({.subgroup = subgroup,
                      .names = names_of(fabric, subgroup.members),
                      .epoch = std::make_unique<Epoch>(fabric, std::move(options), upcall)});
    finishing_ = false;
    lacks_state_ = subgroup.lacks_state;
    if (durable_) {
      if (lacks_state_) durable_->skip_replay();
      durable_->begin(fabric, subgroup, terms_.back().names);
    }
    now().hold(lacks_state_);
    send_again();
  }
  std::size_t poll() override {
    DUNLIN_ASSERT(!terms_.empty() && !terms_.back().epoch->over(),
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
    return terms_.back().epoch->received();
  }
  void finish(std::span<const std::uint64_t> trim) override {
    DUNLIN_ASSERT_ALWAYS(!terms_.empty(), "GRP-V1: what has not begun is not finished");
    if (durable_) durable_->end();
    Epoch::Remains remains = [&] {
      const ScopedFlag finishing(finishing_);
      return now().finish(trim);
    }();
    if (flawed(Flaw::unsent_is_lost)) remains.again.clear();
    // What has not been sent again yet comes behind what has.
    again_.insert(again_.begin(), std::make_move_iterator(remains.again.begin()),
                  std::make_move_iterator(remains.again.end()));
    const Term& term = terms_.back();
    for (std::size_t seat = 0; seat < remains.ahead.size(); ++seat)
      if (remains.ahead[seat] > 0)
        ahead_of_[term.names[term.subgroup.senders[seat]]] += remains.ahead[seat];
    if (options_.mode == multicast::Mode::unordered && !term.had.empty()) count_had(term, trim);
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

  // --- members that come in ----------------------------------------------------------------------
  bool wants_state() const noexcept override { return load_ != nullptr; }
  std::optional<std::vector<std::byte>> give_state() override {
    if (terms_.size() != 1) return std::nullopt;  // next() has messages of an earlier view
    if (!now().handed_up()) return std::nullopt;
    std::vector<std::byte> state;
    Writer writer(state);
    const std::size_t seats = terms_.back().subgroup.senders.size();
    writer.u32(static_cast<std::uint32_t>(seats));
    for (std::size_t seat = 0; seat < seats; ++seat) write(writer, known_of(seat));
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
    return std::ranges::any_of(terms_,
                               [&](const Term& term) { return &term.epoch->fabric() == &fabric; });
  }
  void on_state(Save save, Load load) {
    check_not_begun("on_state");
    save_ = std::move(save);
    load_ = std::move(load);
  }

  // --- what the user asks for --------------------------------------------------------------------
  /// Who lacks its state does not: what it sent could come to it as a part of that only.
  [[nodiscard]] bool may_send() const noexcept {
    return !terms_.empty() && again_.empty() && !lacks_state_;
  }
  [[nodiscard]] std::span<std::byte> prepare(std::size_t bytes) noexcept {
    if (!may_send()) return {};
    fruitless_ = 0;
    return now().prepare(bytes);
  }
  void commit() noexcept {
    if (!terms_.empty()) now().commit();
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
    while (!terms_.empty()) {
      Term& oldest = terms_.front();
      while (std::optional<Delivery> found = oldest.epoch->next()) {
        taken_ = true;
        if (!is_known(oldest, *found)) return found;
      }
      if (terms_.size() == 1) return std::nullopt;
      drop_oldest();
    }
    return std::nullopt;
  }
  [[nodiscard]] const Subgroup& subgroup() const noexcept {
    return terms_.empty() ? none_ : terms_.front().subgroup;
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
    for (const Term& term : terms_) all += term.epoch->counters();
    if (durable_) all.log_commits = durable_->journal().commits();
    all.messages_sent -= sent_again_;
    all.bytes_sent -= bytes_sent_again_;
    return all;
  }
  void each_table(const std::function<void(const TableCore&)>& look) const {
    for (const Term& term : terms_) look(term.epoch->table());
  }

 private:
  [[nodiscard]] Epoch& now() noexcept { return *terms_.back().epoch; }

  /// While send() can take nothing, although there may be room.
  [[nodiscard]] SendResult why_not_send() const noexcept {
    if (group_.ended()) return SendResult::ended;
    if (terms_.empty()) return SendResult::wedged;
    if (!terms_.back().epoch->sends()) return SendResult::not_a_sender;
    if (lacks_state_) return SendResult::waiting_for_state;
    return again_.empty() ? SendResult::wedged : SendResult::no_room;
  }

  void check_not_begun(const char* what) const {
    if (terms_.empty()) return;
    throw Error(who_ + what + " comes too late: call it before the group's first poll()");
  }

  /// What another member gave.
  void load(std::span<const std::byte> state) {
    Reader reader(state);
    Term& term = terms_.back();
    std::vector<multicast::Known> had(term.subgroup.members.size());
    const std::uint32_t seats = reader.u32();
    for (std::uint32_t seat = 0; seat < seats && seat < term.subgroup.senders.size(); ++seat)
      had[term.subgroup.senders[seat]] = read_known(reader);
    ahead_of_.clear();
    for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
      const std::string name = reader.text();
      ahead_of_[name] = reader.u64();
    }
    const bool saved = reader.u32() != 0;
    if (!reader.good() || seats != term.subgroup.senders.size())
      throw Error(who_ + "another member gave a state that is none: do all use the same release?");
    if (!saved)
      throw Error(who_ +
                  "this member waits for a state, and the one that was asked saves none: call "
                  "on_state at all members, or at none");
    load_(reader.rest());
    term.had = std::move(had);
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
    past_ += terms_.front().epoch->counters();
    terms_.pop_front();
  }
  void drop_past() {
    while (!terms_.empty()) drop_oldest();
  }

  void send_again() {
    while (!again_.empty() && now().send(again_.front()) == SendResult::sent) {
      ++sent_again_;
      bytes_sent_again_ += again_.front().size();
      again_.pop_front();
    }
  }

  /// What a state of ours holds of a sender: we may not have received yet what came with our own.
  [[nodiscard]] multicast::Known known_of(std::size_t seat) {
    multicast::Known known = now().passed(seat);
    const Term& term = terms_.back();
    if (!term.had.empty()) known.extend(term.had[term.subgroup.senders[seat]]);
    return known;
  }
  /// Beyond the trim, and never received here: it will come again, too.
  void count_had(const Term& term, std::span<const std::uint64_t> trim) {
    for (std::size_t seat = 0; seat < trim.size(); ++seat) {
      const std::uint32_t sender = term.subgroup.senders[seat];
      const std::uint64_t from = std::max(term.epoch->passed(seat).turns, trim[seat]);
      if (const std::uint64_t messages = term.had[sender].messages_from(from))
        ahead_of_[term.names[sender]] += messages;
    }
  }
  /// What is in the state that we took, and what comes again of a sender and was delivered here
  /// already, is passed over.
  [[nodiscard]] bool is_known(const Term& term, const Delivery& delivery) {
    if (!term.had.empty() && delivery.turn < term.had[delivery.sender].turns) return true;
    if (ahead_of_.empty()) [[likely]]
      return false;
    const auto ahead = ahead_of_.find(term.names[delivery.sender]);
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
    if (ahead_of_.empty() && terms_.back().had.empty() && !lacks_state_) [[likely]]
      return upcall_(batch);
    if (lacks_state_) return;  // the view ends, and whom we ask next has it all
    std::vector<Delivery> rest;
    for (const Delivery& delivery : batch)
      if (!is_known(terms_.back(), delivery)) rest.push_back(delivery);
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
  std::deque<Term> terms_;                    // the last one is the view at hand
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
    : part_(std::make_unique<Part>(group, subgroup, std::move(options))) {
  group.attach(subgroup, *part_);
}
Multicast::Multicast(Group& group, const std::string& subgroup)
    : Multicast(group, subgroup, MulticastOptions()) {}
Multicast::~Multicast() = default;

std::span<std::byte> Multicast::prepare(std::size_t bytes) noexcept {
  return part_->prepare(bytes);
}
void Multicast::commit() noexcept { part_->commit(); }
SendResult Multicast::send(std::span<const std::byte> message) { return part_->send(message); }
std::size_t Multicast::largest_in_place() const noexcept { return part_->largest_in_place(); }
void Multicast::on_delivery(multicast::Upcall upcall) { part_->on_delivery(std::move(upcall)); }
std::optional<Delivery> Multicast::next() { return part_->next(); }
void Multicast::on_state(Save save, Load load) {
  part_->on_state(std::move(save), std::move(load));
}
const Subgroup& Multicast::subgroup() const noexcept { return part_->subgroup(); }
void Multicast::on_replay(multicast::ReplayUpcall upcall) { part_->on_replay(std::move(upcall)); }
std::vector<std::string> Multicast::log_notices() const { return part_->log_notices(); }
Counters Multicast::counters() const noexcept { return part_->counters(); }
void Multicast::each_table(const std::function<void(const TableCore&)>& look) const {
  part_->each_table(look);
}

}  // namespace dunlin
