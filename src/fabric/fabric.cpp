#include <utility>

#include <dunlin/fabric.hpp>

#include "fabric/core/core.hpp"

/// The public class; src/fabric/core does the work.
namespace dunlin {

std::string_view describe(Refusal refusal) noexcept {
  switch (refusal) {
    case Refusal::none:
      return "accepted";
    case Refusal::queue_full:
      return "the queue to the peer is full: poll, then post the rest";
    case Refusal::not_connected:
      return "the peer has not announced this region yet, or has withdrawn it";
    case Refusal::out_of_bounds:
      return "the operation reaches past the end of the peer's region";
    case Refusal::misaligned:
      return "an atomic must be aligned to 8 bytes, and source and target must agree modulo 8";
    case Refusal::too_large:
      return "a message may have at most kMaxMessageBytes, and its channel is below kMaxChannels";
    case Refusal::unknown_peer:
      return "there is no peer of this rank";
    case Refusal::unknown_region:
      return "this fabric has no such region, or it was released";
    case Refusal::forked:
      return "this process was forked by a member, and is none itself: join after the fork";
  }
  return "unknown refusal";
}

// --- handles -------------------------------------------------------------------------------------

Region& Region::operator=(Region&& other) noexcept {
  if (this == &other) return *this;
  if (fabric_ != nullptr) fabric_->core_->release(id_);
  fabric_ = std::exchange(other.fabric_, nullptr);
  id_ = std::exchange(other.id_, {});
  memory_ = std::exchange(other.memory_, {});
  return *this;
}

Region::~Region() {
  if (fabric_ != nullptr) fabric_->core_->release(id_);
}

Subscription& Subscription::operator=(Subscription&& other) noexcept {
  if (this == &other) return *this;
  if (fabric_ != nullptr) fabric_->core_->unsubscribe(id_);
  fabric_ = std::exchange(other.fabric_, nullptr);
  id_ = std::exchange(other.id_, 0);
  return *this;
}

Subscription::~Subscription() {
  if (fabric_ != nullptr) fabric_->core_->unsubscribe(id_);
}

// --- the fabric ----------------------------------------------------------------------------------

Fabric::Fabric() = default;
Fabric::~Fabric() {
  if (core_ != nullptr) core_->counters_.reset();  // they have regions
}

void Fabric::expel(Rank peer, std::string why, Parting how) {
  const ThreadGuard::Call call(ThreadGuard::of(this));
  core_->expel(peer, std::move(why), how);
}

Fenced Fabric::fence(Rank peer) noexcept {
  if (!failed(peer)) return Fenced::not_yet;
  return core_->touches_nothing(peer) ? Fenced::yes : backend_->fence(peer);
}

bool Fabric::in_handler() const noexcept { return core_->polling(); }

Region Fabric::allocate(const RegionSpec& spec) {
  const ThreadGuard::Call call(ThreadGuard::of(this));
  return core_->make_region(spec, false);
}

std::uint64_t Fabric::generation(const Region& region) const noexcept {
  return core_->region(region.id()).spec.generation;
}

Region Fabric::publish(const RegionSpec& spec) { return core_->make_region(spec, true); }

void Fabric::announce(const Region& region) {
  const ThreadGuard::Call call(ThreadGuard::of(this));
  core_->announce(region, nullptr);
}

void Fabric::announce(const Region& region, std::span<const Rank> to) {
  const ThreadGuard::Call call(ThreadGuard::of(this));
  core_->announce(region, &to);
}

std::vector<std::byte> Fabric::endpoint() const { return core_->backend_->endpoint(); }

void Fabric::admit(const Admission& admission) {
  const ThreadGuard::Call call(ThreadGuard::of(this));
  core_->admit(admission);
}

Refusal Fabric::send(Rank peer, std::uint32_t channel,
                     std::span<const std::byte> message) noexcept {
  DUNLIN_ONE_THREAD(this);
  if (forked_) return Refusal::forked;
  if (peer >= peers_.size()) return Refusal::unknown_peer;
  if (message.size() > kMaxMessageBytes || channel >= kMaxChannels) return Refusal::too_large;
  if (peers_[peer].failed) return Refusal::none;  // accepted, and lost with the peer
  if (!peers_[peer].linked) return Refusal::not_connected;
  return backend_->send(peer, channel, message);
}

std::span<std::byte> Fabric::reach(Rank peer, RegionId region) noexcept {
  return forked_ ? std::span<std::byte>() : backend_->memory_of(peer, region);
}

void Fabric::ring(Rank peer) noexcept { backend_->wake(peer); }

void Fabric::prefetch(Rank peer, RegionId region, std::uint64_t offset,
                      std::size_t bytes) noexcept {
  backend_->prefetch(peer, region, offset, bytes);
}

void Fabric::abandon(Completion& completion) noexcept {
  DUNLIN_ONE_THREAD(this);
  if (!completion.finished()) backend_->forget(completion);
  FabricBackend::clear(completion);
}

Subscription Fabric::subscribe(EventHandler handler) {
  const ThreadGuard::Call call(ThreadGuard::of(this));
  return {*this, core_->subscribe(std::move(handler))};
}

void Fabric::receive(std::uint32_t channel, MessageHandler handler) {
  const ThreadGuard::Call call(ThreadGuard::of(this));
  core_->receive(channel, std::move(handler));
}
void Fabric::ignore(std::uint32_t channel) {
  const ThreadGuard::Call call(ThreadGuard::of(this));
  core_->ignore(channel);
}
bool Fabric::receives(std::uint32_t channel) const noexcept { return core_->receives(channel); }
bool Fabric::has_region(std::string_view name) const noexcept { return core_->has_region(name); }

std::uint64_t Fabric::now_ns() const noexcept { return backend_->now_ns(); }
std::uint64_t Fabric::awake_since_ns() const noexcept { return core_->awake_since_ns(); }
void Fabric::prepare_sleep() noexcept {
  const ThreadGuard::Call call(ThreadGuard::of(this));
  core_->prepare_sleep();
}
void Fabric::cancel_sleep() noexcept {
  const ThreadGuard::Call call(ThreadGuard::of(this));
  core_->cancel_sleep();
}
void Fabric::sleep(std::uint64_t timeout_ns) noexcept {
  const ThreadGuard::Call call(ThreadGuard::of(this));
  core_->sleep(timeout_ns);
}
void Fabric::wake_at(std::uint64_t time_ns) noexcept {
  DUNLIN_ONE_THREAD(this);
  core_->wake_at(time_ns);
}
int Fabric::wait_descriptor() const noexcept { return core_->wait_descriptor(); }
std::uint32_t Fabric::host_members() const noexcept { return backend_->host_members(); }
void Fabric::spend(double ns) noexcept { backend_->spend(ns); }

void Fabric::wake() noexcept {
  if (core_->sleeper_) core_->sleeper_->wake();
}

// --- the core ------------------------------------------------------------------------------------

FabricCore::FabricCore(Fabric& fabric, FabricSetup setup, std::unique_ptr<FabricBackend> backend)
    : fabric_(fabric),
      states_(setup.names.size()),
      silence_timeout_ns_(std::uint64_t{setup.silence_timeout_ms} * 1'000'000),
      last_silence_check_ns_(backend->now_ns()),
      detector_(static_cast<std::uint32_t>(setup.names.size()), silence_timeout_ns_,
                last_silence_check_ns_),
      sleeper_(std::move(setup.sleeper)),
      backend_(std::move(backend)) {
  fabric.rank_ = setup.rank;
  fabric.recent_ns_ = last_silence_check_ns_;
  fabric.peers_.resize(setup.names.size());
  for (Rank peer = 0; peer < size(); ++peer) {
    fabric.peers_[peer].name = std::move(setup.names[peer]);
    fabric.peers_[peer].linked = true;
  }
  for (const Rank never : setup.absent) leave_empty(never, "it was gone before this member came");
  fabric.cpu_costs_ = setup.cpu_costs;
  fabric.properties_ = setup.properties;
  fabric.kind_ = std::move(setup.kind);
  fabric.description_ = std::move(setup.description);
  fabric.group_ = std::move(setup.group);
  fabric.backend_ = backend_.get();
  backend_->core_ = this;
}

FabricCore::~FabricCore() = default;

/// The flag is for the layers. The child must not touch sockets, rings and devices, which are the
/// parent's.
void FabricCore::in_child() noexcept {
  guard_.in_child();
  fabric_.forked_ = true;
  fabric_.post_ = [](FabricBackend&, std::span<const Operation> batch) noexcept {
    return Posted{.refusal = batch.empty() ? Refusal::none : Refusal::forked};
  };
  fabric_.poll_ = [](FabricBackend&) noexcept { return std::size_t{0}; };
}

void FabricCore::require_own_process() const {
  if (fabric_.forked_)
    throw Error("this process was forked by a member of group '" + group() +
                "', and is none itself: join after the fork");
}

Refusal FabricCore::refuse(const Operation& operation) const noexcept {
  if (operation.peer >= size()) return Refusal::unknown_peer;
  if (operation.region.index >= regions_.size() || !regions_[operation.region.index].taken)
    return Refusal::unknown_region;
  if (states_[operation.peer].failing) {
    if (operation.completion != nullptr) {
      FabricBackend::begin(*operation.completion);
      FabricBackend::finish_failed(*operation.completion, operation.peer);
    }
    return Refusal::none;
  }
  return fabric_.connected(operation.peer, operation.region) ? Refusal::out_of_bounds
                                                             : Refusal::not_connected;
}

std::unique_ptr<Fabric> FabricCore::make(FabricSetup setup, std::unique_ptr<FabricBackend> backend,
                                         PostFunction post, PollFunction poll) {
  std::unique_ptr<Fabric> fabric(new Fabric);
  fabric->core_ = std::make_unique<FabricCore>(*fabric, std::move(setup), std::move(backend));
  fabric->post_ = post;
  fabric->poll_ = poll;
  fabric->backend_->start();
  fabric->core_->beat();
  return fabric;
}

}  // namespace dunlin
