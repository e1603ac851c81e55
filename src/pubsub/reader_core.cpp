#include "pubsub/reader_core.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include <dunlin/pubsub/limits.hpp>

#include "assert.hpp"

namespace dunlin::pubsub {

ReaderCore::ReaderCore(std::shared_ptr<TopicCore> of, std::shared_ptr<const TypeSupport> type,
                       std::uint16_t number, DataReaderQos qos, AnyReader::Filter filter)
    : topic(std::move(of)),
      type_(std::move(type)),
      number_(number),
      qos_(qos),
      filter_(std::move(filter)),
      holds_(qos.history.kind == History::Kind::keep_all &&
             (qos.reliability.kind == Reliability::Kind::reliable ||
              qos.slow_reader.kind == SlowReader::Kind::drop)),
      room_(qos.limits.max_samples),
      most_instances_(qos.limits.max_instances) {
  if (!type_->plain) scratch_ = type_->make();
}

ReaderCore::~ReaderCore() {
  for (const auto& slot : slots_) {
    DUNLIN_ASSERT_ALWAYS(slot->loans == 0, "PUB-R2: a sample is there while it is lent");
    type_->destroy(slot->data);
  }
  for (const auto& [key, instance] : instances_) destroy_key_holder(*instance);
  if (scratch_ != nullptr) type_->destroy(scratch_);
}

// --- what arrives --------------------------------------------------------------------------------

/// The object that the payload is; null if it is no object of the type.
const void* ReaderCore::object_of(const Incoming& in) {
  const bool xcdr = (in.header.flags & kXcdrFlag) != 0;
  if (type_->plain) {
    if (xcdr || in.payload.size() != type_->bytes) return nullptr;
    if (type_->valid != nullptr && !type_->valid(in.payload.data())) return nullptr;
    return in.payload.data();
  }
  if (!type_->raw && !xcdr) return nullptr;
  if (!type_->decode(in.payload, scratch_)) return nullptr;
  if (type_->raw) {
    auto& raw = *static_cast<RawSample*>(scratch_);
    raw.plain = !xcdr;
    raw.key_hash = in.header.key_hash;
  }
  return scratch_;
}

void ReaderCore::append_key(const void* object) const {
  key_.clear();
  if (type_->keyed) type_->append_key(object, key_);
}

/// The instance of a sample. A tool's reader has one instance for all keys, except for exclusive
/// ownership: then it tells instances apart by `key_hash`; 0: it does not.
ReaderInstance* ReaderCore::instance_of(const void* object, bool make, std::uint64_t key_hash) {
  if (only_ != nullptr && key_hash == 0) return only_;
  append_key(object);
  if (key_hash != 0) Writer(key_).u64(key_hash);
  const std::string_view key(reinterpret_cast<const char*>(key_.data()), key_.size());
  if (const auto found = instances_.find(key); found != instances_.end())
    return found->second.get();
  if (!make) return nullptr;
  reclaim_instances(qos_.limits.max_instances - 1);
  if (instances_.size() >= qos_.limits.max_instances) {
    ++rejected_status.total_count;
    changed(Status::sample_rejected);
    // A reliable reader takes this sample, and is full then.
    if (qos_.reliability.kind != Reliability::Kind::reliable) return nullptr;
  }
  auto instance = std::make_unique<ReaderInstance>();
  instance->handle = next_handle_++;
  instance->key = std::string(key);
  if (key_hash == 0) {
    instance->key_holder = type_->make();
    type_->copy(instance->key_holder, object);
  }
  ReaderInstance* const made = instance.get();
  instances_.emplace(std::string_view(made->key), std::move(instance));
  if (!type_->keyed && key_hash == 0) only_ = made;
  return made;
}

InstanceHandle ReaderCore::lookup(const void* key_holder) const {
  if (only_ != nullptr) return only_->handle;
  append_key(key_holder);
  const auto found =
      instances_.find(std::string_view(reinterpret_cast<const char*>(key_.data()), key_.size()));
  return found == instances_.end() ? 0 : found->second->handle;
}

void ReaderCore::destroy_key_holder(const ReaderInstance& instance) const noexcept {
  if (instance.key_holder != nullptr) type_->destroy(instance.key_holder);
}

/// Removes instances that have ended and that no reader needs, until there are at most `most`.
void ReaderCore::reclaim_instances(std::size_t most) {
  for (auto one = instances_.begin(); instances_.size() > most && one != instances_.end();) {
    const ReaderInstance& instance = *one->second;
    const bool is_over = &instance != only_ && instance.cached == 0 && instance.writers.empty() &&
                         instance.state != InstanceState::alive;
    if (is_over) destroy_key_holder(instance);
    one = is_over ? instances_.erase(one) : std::next(one);
  }
  if (instances_.size() <= qos_.limits.max_instances) most_instances_ = qos_.limits.max_instances;
}

void ReaderCore::receive(const Incoming& in, std::uint64_t now_ns) {
  order_ = {.position = in.order_position, .is_behind = in.header.kind == Kind::unregister};
  if (closed_ || dropped_) [[unlikely]]
    return;
  const void* const object = object_of(in);
  if (object == nullptr) [[unlikely]] {
    ++lost_status.total_count;
    changed(Status::sample_lost);
    return;
  }
  const bool is_owned = in.writer->qos.ownership.kind == Ownership::Kind::exclusive;
  const bool by_hash = type_->raw && !type_->keyed && is_owned;
  const bool makes =
      in.header.kind == Kind::sample || (type_->raw && in.header.kind == Kind::dispose);
  ReaderInstance* const instance = instance_of(object, makes, by_hash ? in.header.key_hash : 0);
  if (instance == nullptr) [[unlikely]]
    return;
  switch (in.header.kind) {
    case Kind::sample:
      return sample(in, *instance, object, now_ns);
    case Kind::dispose:
      if (!owned(*instance, *in.writer)) return;
      if (type_->raw && !type_->keyed) return key_only(in, *instance, object);
      end_instance(*instance, InstanceState::disposed, *in.writer, in.header, in.received_ns);
      break;
    case Kind::unregister:
      forget_writer(*instance, *in.writer, now_ns);
      break;
    default:
      return;
  }
  reclaim_instances(qos_.limits.max_instances);
}

/// Whether samples of that writer count for the instance, which the writer may take over by this
/// call.
bool ReaderCore::owned(ReaderInstance& instance, RemoteWriter& writer) const noexcept {
  if (writer.qos.ownership.kind == Ownership::Kind::shared) return true;
  RemoteWriter*& owner = instance.owner;
  if (owner == nullptr || (owner != &writer && (!owner->alive() || writer.owns_before(*owner))))
    owner = &writer;
  return owner == &writer;
}

void ReaderCore::sample(const Incoming& in, ReaderInstance& instance, const void* object,
                        std::uint64_t now_ns) {
  if (std::ranges::find(instance.writers, in.writer) == instance.writers.end())
    instance.writers.push_back(in.writer);
  if (!owned(instance, *in.writer)) return;
  if (qos_.deadline.period_ns != kInfiniteNs) {
    instance.deadline_ns = now_ns + qos_.deadline.period_ns;
    due_at(instance.deadline_ns);
  }
  const std::uint64_t lifespan_ns = in.writer->qos.lifespan.duration_ns;
  const std::uint64_t expires_ns =
      lifespan_ns == kInfiniteNs ? kInfiniteNs : in.received_ns + lifespan_ns;
  if (expires_ns <= now_ns) return;
  if (const std::uint64_t apart_ns = qos_.time_based_filter.minimum_separation_ns; apart_ns > 0) {
    if (instance.passed_any && now_ns - instance.passed_ns < apart_ns) return;
  }
  if (filter_ && !filter_(object)) return;
  instance.passed_any = true;
  instance.passed_ns = now_ns;
  revive(instance);
  SampleInfo info = info_of(in, instance);
  if (on_sample) {
    instance.is_new = false;
    return on_sample(object, info);
  }
  ReaderSlot* const slot = store(instance, object, info);
  if (slot == nullptr) return;
  slot->expires_ns = expires_ns;
}

void ReaderCore::revive(ReaderInstance& instance) noexcept {
  if (instance.state == InstanceState::alive) return;
  if (instance.state == InstanceState::disposed)
    ++instance.disposed_generation;
  else
    ++instance.no_writers_generation;
  instance.state = InstanceState::alive;
  instance.is_new = true;
}

SampleInfo ReaderCore::info_of(const Incoming& in, const ReaderInstance& instance) const {
  return {.valid_data = true,
          .sample_state = SampleState::not_read,
          .view_state = instance.is_new ? ViewState::new_view : ViewState::not_new_view,
          .instance_state = instance.state,
          .instance = instance.handle,
          .publication = in.writer->id(),
          .sequence = in.header.sequence,
          .source_ns = in.header.source_ns,
          .reception_ns = in.received_ns,
          .position = in.position,
          .order_position = in.order_position,
          .disposed_generation = instance.disposed_generation,
          .no_writers_generation = instance.no_writers_generation};
}

/// Handles a message with a key only. A tool's reader knows no keys, and has one instance for all:
/// it reports each dispose as it is.
void ReaderCore::key_only(const Incoming& in, ReaderInstance& instance, const void* object) {
  SampleInfo info = info_of(in, instance);
  info.valid_data = false;
  info.instance_state = InstanceState::disposed;
  if (&instance != only_) instance.state = InstanceState::disposed;  // so that it can go
  if (on_sample) return on_sample(object, info);
  static_cast<void>(store(instance, object, info));
}

/// Ends the instance, which is disposed, or without writers: a sample without data says so.
void ReaderCore::end_instance(ReaderInstance& instance, InstanceState state,
                              const RemoteWriter& writer, const MessageHeader& header,
                              std::uint64_t received_ns) {
  instance.deadline_ns = kInfiniteNs;
  const bool changes =
      instance.state == InstanceState::alive ||
      (instance.state == InstanceState::no_writers && state == InstanceState::disposed);
  if (!changes) return;
  instance.state = state;
  if (instance.key_holder == nullptr) return;  // nothing identifies the instance
  const SampleInfo info{
      .valid_data = false,
      .view_state = instance.is_new ? ViewState::new_view : ViewState::not_new_view,
      .instance_state = state,
      .instance = instance.handle,
      .publication = writer.id(),
      .sequence = header.sequence,
      .source_ns = header.source_ns,
      .reception_ns = received_ns,
      .order_position = order_.position,
      .disposed_generation = instance.disposed_generation,
      .no_writers_generation = instance.no_writers_generation};
  if (on_sample) return on_sample(instance.key_holder, info);
  static_cast<void>(store(instance, instance.key_holder, info));
}

void ReaderCore::forget_writer(ReaderInstance& instance, RemoteWriter& writer,
                               std::uint64_t now_ns) {
  if (instance.owner == &writer) instance.owner = nullptr;
  const auto found = std::ranges::find(instance.writers, &writer);
  if (found == instance.writers.end()) return;
  instance.writers.erase(found);
  if (instance.writers.empty())
    end_instance(instance, InstanceState::no_writers, writer, {}, now_ns);
}

// --- the cache -----------------------------------------------------------------------------------

ReaderSlot* ReaderCore::free_slot() {
  if (free_.empty()) {
    slots_.push_back(std::make_unique<ReaderSlot>());
    slots_.back()->data = type_->make();
    free_.reserve(slots_.size());
    return slots_.back().get();
  }
  ReaderSlot* const slot = free_.back();
  DUNLIN_ASSERT(slot->loans == 0 && !slot->cached, "PUB-R2: a slot that is lent is not reused");
  free_.pop_back();
  return slot;
}

/// Stores a sample; returns null if the cache is full, and keeps what it has. A reader that holds
/// the topic back takes the message at hand in any case: since the topic asked, the end of an
/// instance may have filled the cache.
ReaderSlot* ReaderCore::store(ReaderInstance& instance, const void* object,
                              const SampleInfo& info) {
  if (qos_.history.kind == History::Kind::keep_last) {
    if (instance.cached >= qos_.history.depth) unlink(*instance.oldest);
    if (cached_ >= qos_.limits.max_samples) unlink(*oldest_);
  } else if (info.valid_data && !holds_ && cached_ >= room_) {
    ++lost_status.total_count;
    changed(Status::sample_lost);
    return nullptr;
  }
  ReaderSlot* const slot = free_slot();
  if (object == scratch_)
    std::swap(scratch_, slot->data);
  else if (type_->plain)
    std::memcpy(slot->data, object, type_->bytes);
  else
    type_->copy(slot->data, object);
  slot->info = info;
  slot->instance = &instance;
  slot->expires_ns = kInfiniteNs;
  slot->cached = true;
  slot->is_behind = order_.is_behind;
  slot->before = newest_;
  slot->after = nullptr;
  (newest_ != nullptr ? newest_->after : oldest_) = slot;
  newest_ = slot;
  slot->instance_before = instance.newest;
  slot->instance_after = nullptr;
  (instance.newest != nullptr ? instance.newest->instance_after : instance.oldest) = slot;
  instance.newest = slot;
  ++instance.cached;
  ++cached_;
  changed(Status::data_available);
  return slot;
}

/// Takes the slot out of the cache, and frees it unless it is lent (PUB-R2).
void ReaderCore::unlink(ReaderSlot& slot) noexcept {
  DUNLIN_ASSERT(slot.cached && slot.instance != nullptr && slot.instance->cached > 0,
                "PUB-R1: a slot is free once for each sample that it cached");
  ReaderInstance& instance = *slot.instance;
  (slot.before != nullptr ? slot.before->after : oldest_) = slot.after;
  (slot.after != nullptr ? slot.after->before : newest_) = slot.before;
  (slot.instance_before != nullptr ? slot.instance_before->instance_after : instance.oldest) =
      slot.instance_after;
  (slot.instance_after != nullptr ? slot.instance_after->instance_before : instance.newest) =
      slot.instance_before;
  slot.cached = false;
  slot.instance = nullptr;
  --instance.cached;
  if (--cached_ <= qos_.limits.max_samples) room_ = qos_.limits.max_samples;
  if (slot.loans == 0) free_.push_back(&slot);
}

bool ReaderCore::selected(const Selection& selection, const ReaderSlot& slot,
                          std::uint64_t now_ns) const noexcept {
  const auto in = [](auto mask, auto state) {
    return (static_cast<unsigned>(mask) & static_cast<unsigned>(state)) != 0;
  };
  const ReaderInstance& instance = *slot.instance;
  return slot.expires_ns > now_ns &&
         (selection.instance == 0 || selection.instance == instance.handle) &&
         in(selection.sample_states, slot.info.sample_state) &&
         in(selection.view_states,
            instance.is_new ? ViewState::new_view : ViewState::not_new_view) &&
         in(selection.instance_states, instance.state);
}

bool ReaderCore::available(const Selection& selection, std::uint64_t now_ns) const noexcept {
  for (const ReaderSlot* slot = oldest_; slot != nullptr; slot = slot->after)
    if (selected(selection, *slot, now_ns)) return true;
  return false;
}

bool ReaderCore::any(const Selection& selection, std::uint64_t now_ns,
                     const AnyReader::Filter& query) const {
  for (const ReaderSlot* slot = oldest_; slot != nullptr; slot = slot->after)
    if (slot->info.valid_data && selected(selection, *slot, now_ns) && query(slot->data))
      return true;
  return false;
}

std::optional<InOrder> ReaderCore::next_in_order(std::uint64_t now_ns) const noexcept {
  for (const ReaderSlot* slot = oldest_; slot != nullptr; slot = slot->after)
    if (slot->expires_ns > now_ns)
      return InOrder{.position = slot->info.order_position, .is_behind = slot->is_behind};
  return std::nullopt;
}

std::size_t ReaderCore::lend(const Selection& selection, bool take, std::vector<ReaderSlot*>& slots,
                             std::vector<SampleInfo>& infos, std::uint64_t now_ns) {
  ReaderSlot* next = nullptr;
  for (ReaderSlot* slot = oldest_; slot != nullptr && slots.size() < selection.max_samples;
       slot = next) {
    next = slot->after;
    if (slot->expires_ns <= now_ns) {
      unlink(*slot);
      continue;
    }
    if (!selected(selection, *slot, now_ns)) continue;
    const ReaderInstance& instance = *slot->instance;
    slots.push_back(slot);
    infos.push_back(slot->info);
    infos.back().view_state = instance.is_new ? ViewState::new_view : ViewState::not_new_view;
    if (type_->keyed || !type_->raw) infos.back().instance_state = instance.state;
  }
  // Ranks count from the last sample backwards; a returned sample is not new any more.
  for (std::size_t i = slots.size(); i-- > 0;) infos[i].sample_rank = slots[i]->instance->rank++;
  for (ReaderSlot* const slot : slots) slot->instance->rank = 0;
  for (ReaderSlot* const slot : slots) {
    slot->instance->is_new = false;
    slot->info.sample_state = SampleState::read;
    ++slot->loans;
    if (take) unlink(*slot);
  }
  reclaim_instances(qos_.limits.max_instances);
  return slots.size();
}

void ReaderCore::give_back(std::vector<ReaderSlot*>& slots) noexcept {
  for (ReaderSlot* const slot : slots) {
    DUNLIN_ASSERT(slot->loans > 0, "PUB-R2: a loan is given back once");
    if (--slot->loans == 0 && !slot->cached) free_.push_back(slot);
  }
  slots.clear();
}

// --- writers, and time ---------------------------------------------------------------------------

void ReaderCore::matched(bool alive) {
  ++matched_status.current_count;
  ++matched_status.total_count;
  ++(alive ? liveliness_status.alive_count : liveliness_status.not_alive_count);
  changed(Status::subscription_matched | Status::liveliness_changed);
}

void ReaderCore::unmatched(RemoteWriter& writer, std::uint64_t now_ns) {
  --matched_status.current_count;
  --(writer.silent ? liveliness_status.not_alive_count : liveliness_status.alive_count);
  changed(Status::subscription_matched | Status::liveliness_changed);
  forget(writer, now_ns);
}

void ReaderCore::went_silent(RemoteWriter& writer, std::uint64_t now_ns) {
  --liveliness_status.alive_count;
  ++liveliness_status.not_alive_count;
  changed(Status::liveliness_changed);
  forget(writer, now_ns);
}

void ReaderCore::forget(RemoteWriter& writer, std::uint64_t now_ns) {
  for (const auto& [key, instance] : instances_) forget_writer(*instance, writer, now_ns);
  reclaim_instances(qos_.limits.max_instances);
}

void ReaderCore::heard_again() {
  ++liveliness_status.alive_count;
  --liveliness_status.not_alive_count;
  changed(Status::liveliness_changed);
}

void ReaderCore::mismatched(std::string why) {
  ++incompatible_status.total_count;
  incompatible_status.last = std::move(why);
  changed(Status::requested_incompatible_qos);
}

void ReaderCore::check_time(std::uint64_t now_ns) {
  if (now_ns < next_due_ns_) return;
  next_due_ns_ = kInfiniteNs;
  for (const auto& [key, instance] : instances_) {
    if (instance->deadline_ns <= now_ns) {
      ++deadline_status.total_count;
      deadline_status.last_instance = instance->handle;
      changed(Status::requested_deadline_missed);
      // Another writer may own the instance now, and the next period begins.
      instance->owner = nullptr;
      instance->deadline_ns += qos_.deadline.period_ns;
      if (instance->deadline_ns <= now_ns) instance->deadline_ns = now_ns + qos_.deadline.period_ns;
    }
    due_at(instance->deadline_ns);
  }
}

void ReaderCore::drop() noexcept {
  dropped_ = true;
  lost_status.dropped = true;
  changed(Status::sample_lost);
}

// --- statuses ------------------------------------------------------------------------------------

void ReaderCore::changed(Status status) noexcept {
  pending_ = pending_ | status;
  changes_ = changes_ | status;
}

Status ReaderCore::take_changes() noexcept { return std::exchange(changes_, Status::none); }

void ReaderCore::flush() {
  const Status now = std::exchange(pending_, Status::none);
  if (now != Status::none && on_status && !closed_) on_status(now);
}

}  // namespace dunlin::pubsub
