#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include <dunlin/error.hpp>
#include <dunlin/fabric.hpp>
#include <dunlin/pubsub/core.hpp>
#include <dunlin/run.hpp>

#include "fabric/thread_guard.hpp"
#include "pubsub/carrier.hpp"
#include "pubsub/topic_core.hpp"
#include "pubsub/topic_qos.hpp"
#include "turns.hpp"

namespace dunlin::pubsub {

class ParticipantCore {
 public:
  using Carriers = std::vector<std::shared_ptr<Carrier>>;
  ParticipantCore(Group& of, ParticipantOptions given)
      : group(of), options(std::move(given)), clock(std::make_shared<PollClock>(of.fabric())) {}
  ~ParticipantCore() {
    hand_over();
    for (const auto& carrier : carriers) carrier->end();
    clock->end();
  }
  ParticipantCore(const ParticipantCore&) = delete;
  ParticipantCore& operator=(const ParticipantCore&) = delete;

  [[nodiscard]] Waits waits() const { return group.waits(); }

  std::size_t poll() {
    DUNLIN_ONE_THREAD(&group.fabric());
    clock->begin_poll();
    std::size_t done = group.poll();
    // Handlers may make topics, put new ones in the place of old ones, and poll. So the loop is by
    // index, and carriers that end meanwhile stay until the outermost poll is over.
    std::vector<Carrier*> polled = std::exchange(spare_, {});
    const UnderWay under_way(*this);
    done += turns_.poll([&] { return carriers.size(); },
                        [&](std::size_t i) { return carriers[i]->rests(); },
                        [&](std::size_t i) {
                          polled.push_back(carriers[i].get());
                          return polled.back()->poll();
                        });
    done += remove_unused(polled);
    std::exception_ptr failure;
    for (Carrier* const carrier : polled) carrier->flush(failure);
    wake_in_time(polled);
    polled.clear();
    spare_ = std::move(polled);
    if (failure) std::rethrow_exception(failure);
    return done;
  }

  /// The topic of that name in that order, which is begun if it is not there.
  std::shared_ptr<TopicCore> topic_of(const std::string& name, const TopicQos& qos,
                                      const TypeSupport& type) {
    DUNLIN_ONE_THREAD(&group.fabric());
    check_is_elsewhere_unused(name, qos.order);
    for (std::size_t i = 0; i < carriers.size();) {
      Carrier* const carrier = carriers[i].get();
      const std::shared_ptr<TopicCore> found = carrier->find(name);
      if (!found || carrier->order() != qos.order) {
        ++i;
        continue;
      }
      if (carrier->leaving()) {  // that topic begins anew, and has the log if there is one
        if (found->qos().level == Level::logged)
          end(i);
        else
          ++i;  // the old topic still hands over what was written
        continue;
      }
      if (found->why_refused.empty()) return found;
      carrier->remove(found);  // another topic of that name may exist
      if (carrier->topics().empty() && !carrier->joined()) end(i);
    }
    auto topic = std::make_shared<TopicCore>(group, clock, name, qos, type.name);
    if (qos.order.empty())
      take(std::make_shared<Carrier>(group, clock, options, topic));
    else
      carrier_of(qos)->add(topic);
    return topic;
  }

  /// The carrier of that order, whose subgroup this member asks to join if it is not in it. Of the
  /// policies, only those of the order count.
  std::shared_ptr<Carrier> carrier_of(const TopicQos& qos) {
    for (const auto& carrier : carriers)
      if (carrier->order() == qos.order && !carrier->leaving() && carrier->why_left().empty())
        return carrier;
    return take(std::make_shared<Carrier>(group, clock, options, qos));
  }

  Group& group;
  ParticipantOptions options;
  std::shared_ptr<PollClock> clock;
  Carriers carriers;

 private:
  const std::shared_ptr<Carrier>& take(std::shared_ptr<Carrier> carrier) {
    carrier->polled_by(*this);
    return carriers.emplace_back(std::move(carrier));
  }
  /// Hands over topic after topic, in hand_over_ms for all together.
  void hand_over() noexcept {
    const Fabric& fabric = group.fabric();
    const std::uint64_t until_ns = fabric.now_ns() + options.hand_over_ms * kNsPerMs;
    for (const auto& carrier : carriers) {
      const std::uint64_t now_ns = fabric.now_ns();
      carrier->hand_over(
          static_cast<std::uint32_t>((until_ns - std::min(until_ns, now_ns)) / kNsPerMs));
    }
  }
  /// Throws Error if another order has a topic of that name: two such topics are most probably
  /// meant to be one.
  void check_is_elsewhere_unused(const std::string& name, const OrderName& order) const {
    const auto place = [](const OrderName& of) {
      return of.empty() ? std::string("without an order")
                        : "in the order '" + std::string(of.view()) + "'";
    };
    for (const auto& carrier : carriers) {
      const auto other = carrier->order() != order ? carrier->find(name) : nullptr;
      if (!other || !other->is_held() || carrier->leaving()) continue;
      throw Error("topic '" + name + "': this participant has it " + place(carrier->order()) +
                  ", and it is asked for " + place(order) + "; these would be two topics");
    }
  }
  /// Makes carriers of topics without any handle leave their subgroups, then removes them. Returns
  /// how many begin to leave: the next poll tells the group.
  std::size_t remove_unused(const std::vector<Carrier*>& polled) {
    std::size_t left = 0;
    for (Carrier* const carrier : polled) {
      if (!carrier->leaving() && carrier->unused()) {
        carrier->leave();
        ++left;
      }
      if (!carrier->leaving() || !carrier->left()) continue;
      const auto found = std::ranges::find(carriers, carrier, &std::shared_ptr<Carrier>::get);
      if (found != carriers.end()) end(static_cast<std::size_t>(found - carriers.begin()));
    }
    return left;
  }
  void end(std::size_t place) {
    carriers[place]->end();
    if (polls_under_way_ > 0) ended_.push_back(std::move(carriers[place]));
    carriers.erase(carriers.begin() + static_cast<std::ptrdiff_t>(place));
  }
  /// Asks to be polled in time for what the carriers wait for; those that rest wait for no time.
  void wake_in_time(const std::vector<Carrier*>& polled) {
    std::uint64_t due_ns = kInfiniteNs;
    for (const Carrier* const carrier : polled) due_ns = std::min(due_ns, carrier->due_ns());
    if (due_ns != kInfiniteNs) group.fabric().wake_at(due_ns);
  }

  /// Marks a poll under way; polls that handlers make are nested in it.
  class UnderWay {
   public:
    explicit UnderWay(ParticipantCore& of) noexcept : of_(of) { ++of_.polls_under_way_; }
    ~UnderWay() {
      if (--of_.polls_under_way_ == 0 && !of_.ended_.empty()) of_.ended_.clear();
    }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    ParticipantCore& of_;
  };

  Turns turns_;
  std::vector<Carrier*> spare_;  // spare memory for the list of polled carriers
  Carriers ended_;               // carriers that ended in a poll that is under way
  std::uint32_t polls_under_way_ = 0;
};

DomainParticipant::DomainParticipant(Group& group, ParticipantOptions options)
    : core_(std::make_shared<ParticipantCore>(group, std::move(options))) {}
DomainParticipant::~DomainParticipant() = default;
DomainParticipant::DomainParticipant(DomainParticipant&& other) noexcept = default;
DomainParticipant& DomainParticipant::operator=(DomainParticipant&& other) noexcept = default;

std::size_t DomainParticipant::poll() { return core_->poll(); }
Waits DomainParticipant::waits() const { return core_->group.waits(); }
void DomainParticipant::check() const { core_->group.check(); }
Fabric& DomainParticipant::fabric() const noexcept { return core_->group.fabric(); }
Group& DomainParticipant::group() const noexcept { return core_->group; }

std::vector<TopicInfo> DomainParticipant::topics() const {
  std::vector<TopicInfo> all;
  for (const SubgroupInfo& subgroup : core_->group.subgroups())
    if (auto info = topic_of(subgroup)) all.push_back(std::move(*info));
  for (const auto& carrier : core_->carriers)
    for (auto& info : carrier->topics_of_order()) all.push_back(std::move(info));
  return all;
}

std::vector<OrderInfo> DomainParticipant::orders() const {
  std::vector<OrderInfo> all;
  for (const SubgroupInfo& subgroup : core_->group.subgroups())
    if (auto info = order_of(subgroup)) all.push_back(std::move(*info));
  return all;
}

/// The number grows, as an order's topics only become more while this member is in it.
std::uint64_t DomainParticipant::topic_changes() const noexcept {
  constexpr unsigned kTopicsBits = 32;
  std::uint64_t changes = core_->group.subgroup_changes() << kTopicsBits;
  for (const auto& carrier : core_->carriers) changes += carrier->topics_of_order_count();
  return changes;
}

bool DomainParticipant::holds_topics() const noexcept { return !core_->carriers.empty(); }

void DomainParticipant::assert_liveliness() {
  for (const auto& carrier : core_->carriers)
    for (const auto& topic : carrier->topics()) topic->assert_liveliness_of_participant();
}

TopicOrder::TopicOrder(const DomainParticipant& participant, const OrderName& name,
                       std::size_t ring_bytes) {
  if (name.empty()) throw Error("an order needs a name");
  const std::string who = "order '" + std::string(name.view()) + "'";
  const TopicQos qos{.ring_bytes = ring_bytes, .order = name};
  check_topic_qos("any of " + who, qos);
  carrier_ = participant.core_->carrier_of(qos);
  if (carrier_->ring_bytes() != ring_bytes)
    throw Error(who + ": this participant is in it already, with ring_bytes " +
                std::to_string(carrier_->ring_bytes()) + " and not " + std::to_string(ring_bytes));
  hold_ = carrier_->hold();
}
bool TopicOrder::joined() const noexcept { return carrier_ && carrier_->joined(); }
std::string TopicOrder::why_refused() const {
  if (!carrier_ || carrier_->why_left().empty()) return {};
  return "order '" + std::string(carrier_->order().view()) + "': " + carrier_->why_left();
}

// --- topics --------------------------------------------------------------------------------------

AnyTopic::AnyTopic(const DomainParticipant& participant, const std::string& name,
                   std::shared_ptr<const TypeSupport> type, TopicQos qos) {
  check_topic_name(name);
  core_ = participant.core_->topic_of(name, qos, *type);
  if (core_->qos() != qos)
    throw Error("topic '" + name + "': this participant has it already, with another TopicQos");
  // A raw topic takes the type of a typed one.
  if (!core_->type || core_->type->raw) core_->type = type;
  if (!type->raw && core_->type->text != type->text)
    throw Error("topic '" + name + "': this participant has it already, with another type: " +
                show_both_types(core_->type->text, type->text));
  type_ = std::move(type);
}

const std::string& AnyTopic::name() const noexcept { return core_->name(); }
const TopicQos& AnyTopic::qos() const noexcept { return core_->qos(); }
bool AnyTopic::joined() const noexcept { return core_->joined(); }
std::string AnyTopic::why_waiting() const { return core_->why_waiting(); }
const std::string& AnyTopic::why_refused() const noexcept { return core_->why_refused; }
InconsistentTopicStatus AnyTopic::inconsistent_topic_status() const { return core_->inconsistent; }
void AnyTopic::on_inconsistent_topic(std::function<void()> handler) {
  core_->on_inconsistent = std::move(handler);
}
std::vector<EndpointInfo> AnyTopic::endpoints() const { return core_->endpoints(); }
std::uint64_t AnyTopic::endpoint_changes() const noexcept { return core_->endpoint_changes(); }
bool AnyTopic::has_reader_of(std::string_view member) const noexcept {
  return core_->has_reader_of(member);
}
const TopicCounters& AnyTopic::counters() const noexcept { return core_->counters; }
const std::string& AnyTopic::type_text() const noexcept { return core_->type_text(); }
std::uint64_t AnyTopic::position() const noexcept { return core_->position(); }
std::size_t AnyTopic::held_in_memory() const noexcept { return core_->held_in_memory(); }
std::uint64_t AnyTopic::beginning() const noexcept { return core_->beginning(); }
std::uint64_t AnyTopic::delivered_of(const ClientId& client) const noexcept {
  return core_->clients().delivered_of(client);
}
void AnyTopic::on_client(std::function<void(const ClientStamp&)> handler) {
  core_->on_client = std::move(handler);
}

// --- writers -------------------------------------------------------------------------------------

AnyWriter::AnyWriter(const AnyTopic& topic, const DataWriterQos& qos)
    : AnyWriter(topic, qos, topic.type_) {}
AnyWriter::AnyWriter(const AnyTopic& topic, const DataWriterQos& qos,
                     std::shared_ptr<const TypeSupport> type)
    : core_(topic.core_->make_writer(std::move(type), qos)) {}

WriteResult AnyWriter::put(const void* sample, Put what) {
  DUNLIN_ONE_THREAD(core_->topic->fabric());
  switch (what) {
    case Put::dispose:
      return core_->put(sample, Kind::dispose);
    case Put::unregister:
      return core_->put(sample, Kind::unregister);
    default:
      return core_->put(sample, Kind::sample);
  }
}
WriteResult AnyWriter::write(const void* sample, const ClientStamp& from) {
  DUNLIN_ONE_THREAD(core_->topic->fabric());
  return core_->put(sample, Kind::sample, &from);
}
WriteResult AnyWriter::dispose(const void* key_holder, const ClientStamp& from) {
  DUNLIN_ONE_THREAD(core_->topic->fabric());
  return core_->put(key_holder, Kind::dispose, &from);
}
void* AnyWriter::loan() noexcept {
  DUNLIN_ONE_THREAD(core_->topic->fabric());
  return core_->loan();
}
std::span<std::byte> AnyWriter::loan(const void* fields, std::size_t elements) {
  DUNLIN_ONE_THREAD(core_->topic->fabric());
  return core_->loan(fields, elements);
}
void AnyWriter::publish() noexcept {
  DUNLIN_ONE_THREAD(core_->topic->fabric());
  core_->publish();
}
bool AnyWriter::ready() const noexcept { return core_->active && !core_->closed(); }
std::string AnyWriter::why_refused() const { return core_->why_refused; }
WriteResult AnyWriter::assert_liveliness() { return core_->assert_liveliness(); }
const DataWriterQos& AnyWriter::qos() const noexcept { return core_->qos(); }
MatchedStatus AnyWriter::publication_matched_status() const noexcept {
  return core_->matched_status;
}
DeadlineMissedStatus AnyWriter::offered_deadline_missed_status() const noexcept {
  return core_->deadline_status;
}
IncompatibleQosStatus AnyWriter::offered_incompatible_qos_status() const {
  return core_->incompatible_status;
}
LivelinessLostStatus AnyWriter::liveliness_lost_status() const noexcept {
  return core_->lost_status;
}
Status AnyWriter::status_changes() noexcept { return core_->take_changes(); }
Status AnyWriter::peek_changes() const noexcept { return core_->changes(); }
void AnyWriter::on_status(std::function<void(Status)> handler) {
  core_->on_status = std::move(handler);
}
void AnyWriter::on_room(std::function<void()> handler) { core_->on_room = std::move(handler); }
bool AnyWriter::acknowledged() const { return core_->acknowledged(); }
bool AnyWriter::wait_for_acknowledgments(std::uint32_t timeout_ms) {
  const auto done = [this] { return core_->acknowledged() || core_->topic->ended(); };
  const Carrier* const carrier = core_->topic->carrier();
  if (carrier != nullptr && !done())
    Loop(carrier->participant().group.fabric())
        .add(carrier->participant())
        .run_until(done, timeout_ms);
  return core_->acknowledged();
}
void AnyWriter::close() {
  if (core_) core_->close();
}

// --- readers -------------------------------------------------------------------------------------

AnyReader::AnyReader(const AnyTopic& topic, const DataReaderQos& qos, Filter filter)
    : core_(topic.core_->make_reader(topic.type_, qos, std::move(filter))) {}

void AnyReader::on_sample(SampleHandler handler) { core_->on_sample = std::move(handler); }

AnyReader::Loan AnyReader::lend(const Selection& selection, bool take) {
  DUNLIN_ONE_THREAD(core_->topic->fabric());
  Loan loan;
  loan.slots_ = std::exchange(core_->spare_slots, {});
  loan.infos_ = std::exchange(core_->spare_infos, {});
  core_->lend(selection, take, loan.slots_, loan.infos_, core_->topic->now_ns());
  if (core_->catches_up && take && loan.size() > 0) core_->topic->wake();
  loan.reader_ = core_;
  return loan;
}
AnyReader::Loan AnyReader::take(const Selection& selection) { return lend(selection, true); }
AnyReader::Loan AnyReader::read(const Selection& selection) { return lend(selection, false); }
bool AnyReader::available(const Selection& selection) const noexcept {
  return core_->available(selection, core_->topic->now_ns());
}
/// All samples in any cache lie before the place of a reader that is still to be announced; so only
/// stored samples can come before it.
AnyReader::NextInOrder AnyReader::next_in_order() const noexcept {
  const bool over = core_->closed() || core_->dropped() || core_->topic->ended();
  const bool wants_stored = core_->qos().durability.kind != Durability::Kind::volatile_ &&
                            core_->topic->qos().level >= Level::volatile_storage;
  const auto next = core_->next_in_order(core_->topic->now_ns());
  const bool is_coming = !over && wants_stored && !core_->active;
  return {.has_sample = next.has_value(),
          .waits = !next && (is_coming || (!over && core_->catches_up)),
          .is_coming = is_coming,
          .position = next ? next->position : 0,
          .is_behind = next && next->is_behind};
}
void AnyReader::make_room() noexcept { core_->make_room(); }
bool AnyReader::any(const Selection& selection, const Filter& query) const {
  return core_->any(selection, core_->topic->now_ns(), query);
}
InstanceHandle AnyReader::lookup_instance(const void* key_holder) const {
  return core_->lookup(key_holder);
}
bool AnyReader::ready() const noexcept { return core_->active && !core_->closed(); }
std::string AnyReader::why_refused() const { return core_->why_refused; }
const TopicQos& AnyReader::topic_qos() const noexcept { return core_->topic->qos(); }
const DataReaderQos& AnyReader::qos() const noexcept { return core_->qos(); }
MatchedStatus AnyReader::subscription_matched_status() const noexcept {
  return core_->matched_status;
}
DeadlineMissedStatus AnyReader::requested_deadline_missed_status() const noexcept {
  return core_->deadline_status;
}
IncompatibleQosStatus AnyReader::requested_incompatible_qos_status() const {
  return core_->incompatible_status;
}
LivelinessChangedStatus AnyReader::liveliness_changed_status() const noexcept {
  return core_->liveliness_status;
}
SampleRejectedStatus AnyReader::sample_rejected_status() const noexcept {
  return core_->rejected_status;
}
SampleLostStatus AnyReader::sample_lost_status() const noexcept { return core_->lost_status; }
Status AnyReader::status_changes() noexcept { return core_->take_changes(); }
Status AnyReader::peek_changes() const noexcept { return core_->changes(); }
void AnyReader::on_status(std::function<void(Status)> handler) {
  core_->on_status = std::move(handler);
}
void AnyReader::close() {
  if (core_) core_->close();
}

AnyReader::Loan::Loan(Loan&& other) noexcept
    : reader_(std::move(other.reader_)),
      slots_(std::move(other.slots_)),
      infos_(std::move(other.infos_)) {}
AnyReader::Loan& AnyReader::Loan::operator=(Loan&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  reader_ = std::move(other.reader_);
  slots_ = std::move(other.slots_);
  infos_ = std::move(other.infos_);
  return *this;
}
AnyReader::Loan::~Loan() { give_back(); }

const void* AnyReader::Loan::data(std::size_t i) const noexcept { return slots_[i]->data; }

void AnyReader::Loan::give_back() noexcept {
  if (!reader_) return;
  reader_->give_back(slots_);
  infos_.clear();
  reader_->spare_slots = std::move(slots_);
  reader_->spare_infos = std::move(infos_);
  reader_.reset();
}

}  // namespace dunlin::pubsub
