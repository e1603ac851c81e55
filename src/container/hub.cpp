#include "container/hub.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <dunlin/container/trait.hpp>
#include <dunlin/error.hpp>

#include "assert.hpp"
#include "container/steps.hpp"
#include "fabric/hash.hpp"
#include "fabric/names.hpp"

namespace dunlin {

std::string_view name_of(Promise promise) noexcept {
  static constexpr std::array<std::string_view, 4> kNames{"both", "writes", "reads", "local"};
  const auto place = static_cast<std::size_t>(promise);
  return place < kNames.size() ? kNames[place] : "unknown";
}

std::string_view name_of(Style style) noexcept {
  static constexpr std::array<std::string_view, 3> kNames{"automatic", "one_sided", "message"};
  const auto place = static_cast<std::size_t>(style);
  return place < kNames.size() ? kNames[place] : "unknown";
}

Containers::Containers(Fabric& fabric, ContainersOptions options) {
  auto own = std::make_unique<remote::Progress>(fabric);
  remote::Progress& progress = *own;
  hub_ = std::make_unique<container::Hub>(std::move(own), progress, options);
}

Containers::Containers(remote::Progress& progress, ContainersOptions options)
    : hub_(std::make_unique<container::Hub>(nullptr, progress, options)) {}

Containers::~Containers() = default;
remote::Progress& Containers::progress() const noexcept { return hub_->progress; }
const ComponentCosts& Containers::costs() const noexcept { return hub_->options.costs; }
void Containers::set_costs(const ComponentCosts& costs) noexcept {
  hub_->options.costs = costs;
  ++hub_->costs_version;
}
const std::string& Containers::broken_promise() const noexcept { return hub_->broken_promise; }
const std::string& Containers::why_refused() const noexcept { return hub_->why_refused; }

namespace container {

using remote::Status;

namespace {

/// An operation that waits for another's next step looks again after this.
constexpr std::uint64_t kLookAgainNs = 2'000;

/// The message of that head, which learns how long the content is.
std::span<const std::byte> join(MessageHead& head, std::span<const std::byte> content,
                                std::span<std::byte> message) noexcept {
  DUNLIN_ASSERT(sizeof head + content.size() <= message.size(), "CON-A1: a message of ours fits");
  head.bytes = static_cast<std::uint32_t>(content.size());
  std::memcpy(message.data(), &head, sizeof head);
  if (!content.empty()) std::memcpy(message.data() + sizeof head, content.data(), content.size());
  return message.first(sizeof head + content.size());
}

std::uint32_t checked_channel(std::uint32_t channel) {
  if (channel >= kMaxChannels)
    throw Error("containers: channel " + std::to_string(channel) + " is not below " +
                std::to_string(kMaxChannels) + " (kMaxChannels)");
  return channel;
}

}  // namespace

void check_name(const std::string& kind, const std::string& name) {
  if (name.empty() || name.size() > kMaxContainerNameBytes || !is_printable(name))
    throw Error(kind + " '" + name + "': its name must have 1 to " +
                std::to_string(kMaxContainerNameBytes) +
                " characters of printable ASCII (kMaxContainerNameBytes)");
}

std::uint32_t checked_most(const std::string& container, const char* option, bool is_variable,
                           std::uint32_t most, std::uint32_t limit) {
  if (is_variable && (most == 0 || most > limit))
    throw Error(
        container + ": a type of variable size needs the option " + option +
        ", the most bytes of one: 1 to " + std::to_string(limit) +
        (limit == kMaxPooledValueBytes ? " (kMaxPooledValueBytes)" : " (kMaxElementBytes)"));
  if (!is_variable && most != 0)
    throw Error(container + ": the option " + option +
                " is for types of variable size (ContainerTrait) only");
  return most;
}

bool checked_pool(const std::string& container, bool is_variable, std::size_t pool_bytes,
                  std::uint32_t inline_bytes) {
  if (pool_bytes != 0 && !is_variable)
    throw Error(container + ": the option pool_bytes is for values of variable size only");
  if (inline_bytes != 0 && pool_bytes == 0)
    throw Error(container + ": the option inline_bytes is for maps with a pool (pool_bytes)");
  return pool_bytes != 0;
}

// --- the hub -------------------------------------------------------------------------------------

Hub::Hub(std::unique_ptr<remote::Progress> own, remote::Progress& its_progress,
         ContainersOptions its_options)
    : own_progress(std::move(own)),
      progress(its_progress),
      fabric(its_progress.fabric()),
      options(its_options),
      counters(fabric, options.channel),
      attention(*this),
      channel_(
          progress, checked_channel(its_options.channel),
          [this](Rank from, std::span<const std::byte> message) { handle(from, message); },
          progress.capacity()),
      unanswered_(progress.capacity()) {
  progress.add(*this);
  count_present();
}

Hub::~Hub() { progress.remove(*this); }

void Hub::add(std::uint64_t id, Served& container) {
  if (!served.emplace(id, &container).second)
    throw Error("containers: this process has a container of this name already");
}

Style Hub::settled_style(std::initializer_list<Call> calls, const Situation& at) const noexcept {
  if (fabric.properties().atomics_coherent_with_cpu) return Style::automatic;
  double saved_ns = 0;  // by messages; 0 if nothing is measured
  for (const Call call : calls) saved_ns += longest_wait_ns(options.costs, call, at);
  return saved_ns > 0 ? Style::message : Style::automatic;
}

void Hub::look_again_soon() noexcept { fabric.wake_at(fabric.now_ns() + kLookAgainNs); }

void Hub::ask(Asked& asked) noexcept {
  DUNLIN_ASSERT(!asked.is_under_way(), "CON-P3: a request is sent once, until it is answered");
  if (free_calls_.empty()) try {
      if (free_calls_.capacity() <= calls_.size())  // so that forget() needs no memory
        free_calls_.reserve(2 * calls_.size() + 1);
      calls_.emplace_back();
      free_calls_.push_back(static_cast<std::uint32_t>(calls_.size() - 1));
    } catch (const std::bad_alloc&) {
      return;  // in the next poll
    }
  const std::uint32_t place = free_calls_.back();
  MessageHead head = asked.head_;
  head.kind = MessageKind::request;
  head.call = std::uint64_t{calls_[place].generation} << 32 | place;
  std::array<std::byte, kMaxMessageBytes> message;
  const auto whole = join(head, asked.content_, message);
  if (fabric.send(asked.to_, options.channel, whole) != Refusal::none) return;
  free_calls_.pop_back();
  calls_[place].asked = &asked;
  asked.call_ = head.call;
}

void Hub::forget(Asked& asked) noexcept {
  if (!asked.is_under_way()) return;
  const auto place = static_cast<std::uint32_t>(asked.call_);
  DUNLIN_ASSERT(place < calls_.size() && calls_[place].asked == &asked,
                "CON-P3: a reply goes to the call that asked");
  DUNLIN_ASSERT(free_calls_.size() < free_calls_.capacity(),
                "REM-5: a destructor allocates nothing");
  calls_[place].asked = nullptr;
  ++calls_[place].generation;
  free_calls_.push_back(place);
  asked.call_ = 0;
}

void Hub::send(Rank to, MessageHead head, std::span<const std::byte> content) {
  std::array<std::byte, kMaxMessageBytes> message;
  channel_.send(to, join(head, content, message));
}

/// A peer may send any bytes: those that are no message of ours are dropped (CON-A2).
void Hub::handle(Rank from, std::span<const std::byte> message) {
  MessageHead head;
  if (message.size() < sizeof head) return;
  std::memcpy(&head, message.data(), sizeof head);
  const auto content = message.subspan(sizeof head);
  if (content.size() != head.bytes) return;
  if (head.kind == MessageKind::reply) return take_reply(head, content);
  const auto found = served.find(head.container);
  const bool asks = head.kind == MessageKind::request;
  if (asks && !channel_.expect_send()) return refuse_for_memory(from, head);
  if (found != served.end()) return found->second->handle(from, head, content);
  if (asks) send(from, reply_to(head, Status::lost), {});
}

/// CON-P3: without memory for a reply, the request is not looked at.
void Hub::refuse_for_memory(Rank from, const MessageHead& request) {
  std::array<std::byte, sizeof(MessageHead)> message;
  MessageHead reply = reply_to(request, Status::no_memory);
  if (fabric.send(from, options.channel, join(reply, {}, message)) != Refusal::queue_full) return;
  unanswered_[from] = has_unanswered_ = true;
}

/// What they wait for ends with the connection. It is not the handler that closes that: it would
/// need memory.
void Hub::expel_unanswered() {
  for (Rank rank = 0; rank < unanswered_.size(); ++rank) {
    if (!unanswered_[rank]) continue;
    fabric.expel(rank, "there was no memory for replies to its requests");
    unanswered_[rank] = false;
  }
  has_unanswered_ = false;
}

void Hub::take_reply(const MessageHead& head, std::span<const std::byte> content) {
  const auto place = static_cast<std::uint32_t>(head.call);
  if (place >= calls_.size()) return;
  const bool is_old = calls_[place].generation != head.call >> 32;
  if (is_old) return;
  Asked* const asked = calls_[place].asked;
  // Numbers of calls begin anew with each Containers of a process; names of containers do not.
  if (asked == nullptr || asked->site_.id() != head.container) return;
  forget(*asked);
  DUNLIN_ASSERT(!asked->is_under_way(), "CON-P3: a request has one reply");
  const bool is_sound =
      head.status > static_cast<std::uint8_t>(Status::under_way) && head.status < remote::kStatuses;
  asked->replied(is_sound ? static_cast<Status>(head.status) : Status::refused, head.flag != 0,
                 content);
}

std::size_t Hub::poll_part() {
  if (has_unanswered_) expel_unanswered();
  attention.poll();
  std::size_t done = channel_.poll();
  for (const auto& [id, container] : served) done += container->poll_part();
  counters.show(progress.in_flight());
  return done;
}

void Hub::count_present() noexcept {
  present = 0;
  for (Rank rank = 0; rank < progress.capacity(); ++rank)
    present += (is_founder(rank) || progress.contains(rank)) && !gone(rank) ? 1 : 0;
}

bool Hub::has_changed() const noexcept {
  for (Rank rank = 0; rank < progress.capacity(); ++rank)
    if (progress.is_gone(rank) || (progress.contains(rank) && !is_founder(rank))) return true;
  return false;
}

void Hub::members_changed() {
  count_present();
  for (const auto& [id, container] : served) container->members_changed();
}

// --- a container's region ------------------------------------------------------------------------

namespace {

/// Checked before the region is made.
RegionSpec spec_of(const Hub& hub, const std::string& kind, const std::string& name,
                   std::size_t bytes, const std::string& layout, std::uint64_t generation) {
  hub.progress.check_is_only(kind + " '" + name + "'", kind + ":" + name);
  const std::string all = layout + "\nchannel " + std::to_string(hub.options.channel);
  return {.name = kind + ":" + name,
          .bytes = bytes,
          .generation = generation,
          .layout_hash = fnv1a(all),
          .layout_text = all};
}

}  // namespace

Site::Site(Hub& hub, const std::string& kind, const std::string& name, std::size_t bytes,
           const std::string& layout, std::uint64_t generation)
    : hub_(hub),
      region_(hub.fabric.allocate(spec_of(hub, kind, name, bytes, layout, generation))),
      id_(fnv1a(kind + ":" + name + "\n" + std::to_string(this->generation()))),
      withdrawn_(hub.progress.capacity()),
      refused_(hub.progress.capacity()),
      mapped_(hub.progress.capacity()) {
  subscription_ = hub.fabric.subscribe([this](const Event& event) {
    if (event.region != region_.id() || event.peer >= withdrawn_.size()) return;
    if (event.kind == Event::Kind::region_withdrawn) {
      withdrawn_[event.peer] = true;
      ++withdrawals_;
    }
    if (event.kind == Event::Kind::region_connected) withdrawn_[event.peer] = false;
    if (event.kind != Event::Kind::region_refused) return;
    refused_[event.peer] = true;
    hub_.why_refused = "containers: " + std::string(event.text);
  });
}

void Site::forget_mapped() const noexcept {
  std::fill(mapped_.begin(), mapped_.end(), nullptr);
  mapped_in_ = hub_.fabric.disconnections();
}

std::byte* Site::map(Rank rank, std::size_t bytes) const noexcept {
  DUNLIN_ASSERT(rank < mapped_.size(), "CON-P3: a member is asked for");
  const std::span<std::byte> there = hub_.fabric.reach(rank, region_.id());
  if (there.size() < bytes) return nullptr;
  mapped_[rank] = there.data();
  return there.data();
}

Site::Posted Site::post(Rank to, std::span<const Operation> batch, std::size_t& accepted) noexcept {
  DUNLIN_ASSERT(accepted <= batch.size(), "FAB-F1: what is left of a batch follows what is posted");
  const dunlin::Posted posted = hub_.fabric.post(batch.subspan(accepted));
  accepted += posted.accepted;
  if (posted.all()) {
    accepted = 0;
    return Posted::all;
  }
  return !remote::is_for_now(posted.refusal) || fault(to) != Status::ok ? Posted::never
                                                                        : Posted::later;
}

}  // namespace container
}  // namespace dunlin
