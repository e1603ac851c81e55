#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/daemon.hpp>

#include "assert.hpp"
#include "daemon/handshake.hpp"
#include "daemon/session.hpp"
#include "fabric/shm/membarrier.hpp"

namespace dunlin {

using attached::Layout;
using attached::Packet;
using attached::PacketType;
using attached::Session;

namespace {

/// One poll in so many looks at sockets, which takes a system call: for new clients, for clients
/// that begin again after a rest, and for ends. Rings in shared memory are read in each poll.
constexpr std::uint32_t kPollsPerLook = 128;
/// A client that asks for nothing in so many polls must ring from then on.
constexpr std::uint32_t kPollsBeforeRest = 4'096;
constexpr std::size_t kReleasesAtOnce = 8;
constexpr std::uint64_t kListener = UINT64_MAX;
constexpr int kSocketsAtOnce = 64;
/// Descriptors in addition to one for each client: those of the process, its fabric and its log.
constexpr std::uint32_t kOtherDescriptors = 256;

}  // namespace

struct DaemonClient {
  Descriptor socket;
  std::unique_ptr<attached::SharedMemory> memory;
  std::unique_ptr<Session> session;
  pid_t pid = 0;
  std::uint32_t fruitless = 0;  // polls without a request
  std::uint64_t beats = 0;
  std::uint64_t beat_at_ns = 0;
  bool ended = false;
};

struct DaemonState {
  DaemonState(SegmentSpace& its_space, DaemonOptions its_options);

  std::size_t poll();
  std::size_t poll_clients();
  void ring_sleepers();
  std::size_t look_at_sockets();
  void take_newcomers();
  void refuse(const Descriptor& socket, const std::string& why);
  void welcome(Descriptor socket, const shm::Counterpart& who);
  void cut_off(std::uint32_t index, const std::string& why);
  std::size_t bury();
  std::size_t release_orphans();
  void check_silence();
  void rest_all();

  SegmentSpace& space;
  DaemonOptions options;
  attached::DaemonAddress address;
  Layout layout;
  Descriptor listener;
  Descriptor epoll;
  attached::Ledger ledger;
  std::vector<std::uint32_t> replied;
  std::vector<std::unique_ptr<DaemonClient>> clients;  // by index
  std::vector<std::uint32_t> busy;                     // clients that do not rest
  std::uint32_t living = 0;
  std::uint32_t ending = 0;
  std::uint64_t next_owner = 1;
  std::uint64_t served_before = 0;  // operations of clients that are gone
  std::string last_cut_off;
  std::deque<Key> orphans;  // segments to be released
  struct Release {
    SegmentOperation operation;
    Key key;
  };
  std::vector<Release> releases;
  std::uint32_t polls_until_look = 1;
  bool has_barriers = shm::register_for_barriers();
};

namespace {

DaemonOptions checked_options(DaemonOptions options) {
  const auto refuse = [&](const std::string& why) {
    throw Error(describe(attached::DaemonAddress{options.group, options.socket, {}}) + ": " + why);
  };
  attached::check({options.group, options.socket, options.access_group});
  options.transfer_bytes = round_up(options.transfer_bytes, kCacheLineBytes);
  if (!Layout{options.operations, options.transfer_bytes}.is_sound())
    refuse("operations must be a power of two up to " + std::to_string(kMaxAttachedOperations) +
           " (kMaxAttachedOperations), and transfer_bytes from " +
           std::to_string(kMinAttachedTransferBytes) + " to " +
           std::to_string(kMaxAttachedTransferBytes) + " (kMaxAttachedTransferBytes)");
  if (options.clients == 0 || options.clients > kMaxAttachedProcesses)
    refuse("clients must be 1 to " + std::to_string(kMaxAttachedProcesses) +
           " (kMaxAttachedProcesses)");
  if (options.quota_locks > kMaxClientLocks)
    refuse("quota_locks must be at most " + std::to_string(kMaxClientLocks) + " (kMaxClientLocks)");
  if (options.quota_bytes > kMaxRegionBytes)
    refuse("quota_bytes must be at most " + std::to_string(kMaxRegionBytes) + " (kMaxRegionBytes)");
  if ((options.socket_mode & ~0777U) != 0) refuse("socket_mode must be 0 to 0777");
  return options;
}

}  // namespace

DaemonState::DaemonState(SegmentSpace& its_space, DaemonOptions its_options)
    : space(its_space),
      options(checked_options(std::move(its_options))),
      address{options.group, options.socket, options.access_group},
      layout{options.operations, options.transfer_bytes},
      clients(options.clients) {
  ensure_descriptors(kOtherDescriptors + options.clients, kOtherDescriptors + options.clients,
                     options.clients);
  epoll = Descriptor(checked(epoll_create1(EPOLL_CLOEXEC), "making an epoll descriptor"));
  listener = attached::listen_at(address, options.socket_mode);
  checked(watch_in(epoll.get(), EPOLL_CTL_ADD, listener.get(), EPOLLIN, {.u64 = kListener}),
          "watching for clients");
  replied.reserve(options.clients);
  busy.reserve(options.clients);
  releases.resize(kReleasesAtOnce);
}

std::size_t DaemonState::poll() {
  std::size_t done = space.poll();
  done += poll_clients();
  if (--polls_until_look == 0) done += look_at_sockets();
  if (ending > 0) done += bury();
  if (!orphans.empty()) done += release_orphans();
  ring_sleepers();
  return done;
}

std::size_t DaemonState::poll_clients() {
  DUNLIN_ASSERT(busy.size() <= living, "DMN-3: a daemon polls each living client at most once");
  std::size_t done = 0;
  for (std::size_t i = busy.size(); i > 0; --i) {
    const std::uint32_t index = busy[i - 1];
    DaemonClient& client = *clients[index];
    DUNLIN_ASSERT(!client.ended, "DMN-3: no request of a client that has ended is taken");
    Session& session = *client.session;
    const std::size_t taken = session.poll();
    done += taken;
    client.fruitless = taken > 0 ? 0 : client.fruitless + 1;
    if (session.fault() != nullptr) {
      cut_off(index, std::string("it made ") + session.fault());
    } else if (session.rests()) {
      if (taken > 0) {
        session.go_on();  // handles requests from before clients had to ring
      } else {
        busy[i - 1] = busy.back();
        busy.pop_back();
      }
    } else if (client.fruitless >= kPollsBeforeRest) {
      session.rest();
      if (has_barriers) shm::barrier_on_all_processors();
    }
  }
  return done;
}

/// Lets all clients ring before a sleep: the next poll finds requests from before that.
void DaemonState::rest_all() {
  bool any = false;
  for (const std::uint32_t index : busy)
    if (!clients[index]->session->rests()) {
      clients[index]->session->rest();
      any = true;
    }
  if (any && has_barriers) shm::barrier_on_all_processors();
  polls_until_look = 1;
}

void DaemonState::ring_sleepers() {
  DUNLIN_ASSERT(replied.size() <= clients.size(), "each client is rung once for its replies");
  for (const std::uint32_t index : replied) {
    const auto& client = clients[index];
    if (client && !client->ended && client->session->must_ring()) attached::ring(client->socket);
  }
  replied.clear();
}

// --- clients that come and go --------------------------------------------------------------------

std::size_t DaemonState::look_at_sockets() {
  polls_until_look = kPollsPerLook;
  std::array<epoll_event, kSocketsAtOnce> events;
  const int count = epoll_wait(epoll.get(), events.data(), kSocketsAtOnce, 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t tag = events[static_cast<std::size_t>(i)].data.u64;
    if (tag == kListener) {
      take_newcomers();
      continue;
    }
    const auto index = static_cast<std::uint32_t>(tag);
    DUNLIN_ASSERT(index < clients.size(), "DMN-4: an event is the listener's or a client's");
    DaemonClient* const client = clients[index].get();
    if (client == nullptr || client->ended) continue;
    if (!attached::take_rings(client->socket)) {
      cut_off(index, {});
    } else if (client->session->rests()) {
      client->session->go_on();
      client->fruitless = 0;
      if (std::ranges::find(busy, index) == busy.end()) busy.push_back(index);
    }
  }
  if (options.silence_timeout_ms != 0) check_silence();
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

void DaemonState::take_newcomers() {
  for (int i = 0; i < kSocketsAtOnce; ++i) {
    Descriptor socket = shm::take_connection(listener);
    if (!socket) return;
    const shm::Counterpart who = attached::counterpart_of(socket, address);
    if (!who.admitted) {
      refuse(socket, "its user may not attach");
    } else if (living + ending >= options.clients) {
      refuse(socket, "it serves " + std::to_string(living + ending) + " clients already");
    } else {
      welcome(std::move(socket), who);
    }
  }
}

void DaemonState::refuse(const Descriptor& socket, const std::string& why) {
  Packet packet;
  packet.type = PacketType::refuse;
  std::copy_n(why.begin(), std::min(why.size(), packet.text.size() - 1), packet.text.begin());
  static_cast<void>(attached::send(socket, packet, -1));
}

void DaemonState::welcome(Descriptor socket, const shm::Counterpart& who) {
  const auto free = std::ranges::find_if(clients, [](const auto& one) { return !one; });
  DUNLIN_ASSERT_ALWAYS(free != clients.end(), "each client is counted as living or as ending");
  const auto index = static_cast<std::uint32_t>(free - clients.begin());
  Descriptor file;
  auto client = std::make_unique<DaemonClient>();
  try {
    file = attached::make_memory(layout.bytes());
    client->memory = std::make_unique<attached::SharedMemory>(file, layout.bytes());
  } catch (const Error& error) {
    return refuse(socket, error.what());
  }
  client->session =
      std::make_unique<Session>(space, ledger, replied, layout, client->memory->memory(),
                                attached::SessionOptions{.owner = next_owner++,
                                                         .user = who.user,
                                                         .quota_bytes = options.quota_bytes,
                                                         .quota_locks = options.quota_locks,
                                                         .index = index});
  Packet packet;
  packet.slots = static_cast<std::uint16_t>(layout.slots);
  packet.needs_fence = has_barriers ? 0 : 1;
  packet.transfer_bytes = layout.transfer_bytes;
  packet.rank = space.fabric().rank();
  packet.members = space.progress().size();
  packet.beat_ms = options.silence_timeout_ms == 0 ? 0 : options.silence_timeout_ms / 4 + 1;
  const std::string& group = space.fabric().group();
  std::copy_n(group.begin(), std::min(group.size(), packet.group.size() - 1), packet.group.begin());
  const std::string& name = SegmentPort::of(space).space_name();
  std::copy_n(name.begin(), std::min(name.size(), packet.space.size() - 1), packet.space.begin());
  if (!attached::send(socket, packet, file.get()) ||
      watch_in(epoll.get(), EPOLL_CTL_ADD, socket.get(), EPOLLIN | EPOLLRDHUP, {.u64 = index}) != 0)
    return;
  client->socket = std::move(socket);
  client->pid = who.pid;
  client->beat_at_ns = space.fabric().now_ns();
  *free = std::move(client);
  busy.push_back(index);
  ++living;
  DUNLIN_ASSERT(std::ranges::count_if(clients, [](const auto& one) { return one != nullptr; }) ==
                    living + ending,
                "each client is counted as living or as ending");
}

void DaemonState::cut_off(std::uint32_t index, const std::string& why) {
  DaemonClient& client = *clients[index];
  DUNLIN_ASSERT_ALWAYS(!client.ended && living > 0, "DMN-3: a client ends once");
  if (!why.empty())
    last_cut_off = "client " + std::to_string(index) + " (pid " + std::to_string(client.pid) +
                   ") was cut off: " + why;
  epoll_ctl(epoll.get(), EPOLL_CTL_DEL, client.socket.get(), nullptr);
  attached::hang_up(client.socket);
  client.socket.close();
  client.ended = true;
  client.session->end();
  DUNLIN_ASSERT(client.session->fault() == nullptr || !why.empty(),
                "DMN-1: a daemon says why it has cut a client off");
  std::erase(busy, index);
  --living;
  ++ending;
}

/// Removes clients that have ended, once their puts have.
std::size_t DaemonState::bury() {
  std::size_t done = 0;
  for (auto& client : clients) {
    if (!client || !client->ended || !client->session->over()) continue;
    served_before += client->session->served();
    for (const Key key : ledger.segments_of(client->session->owner())) orphans.push_back(key);
    DUNLIN_ASSERT_ALWAYS(ending > 0, "DMN-3: a client ends once");
    client.reset();
    --ending;
    ++done;
  }
  return done;
}

std::size_t DaemonState::release_orphans() {
  std::size_t done = 0;
  for (Release& release : releases) {
    if (!release.operation.finished() || orphans.empty()) continue;
    release.key = orphans.front();
    orphans.pop_front();
    ledger.forget(release.key);
    release.operation = space.release(release.key);
    ++done;
  }
  return done;
}

void DaemonState::check_silence() {
  const std::uint64_t now_ns = space.fabric().now_ns();
  const std::uint64_t timeout_ns = std::uint64_t{options.silence_timeout_ms} * 1'000'000;
  for (std::uint32_t index = 0; index < clients.size(); ++index) {
    DaemonClient* const client = clients[index].get();
    if (client == nullptr || client->ended) continue;
    const std::uint64_t beats = client->session->beats();
    if (beats != client->beats) {
      client->beats = beats;
      client->beat_at_ns = now_ns;
    } else if (now_ns - client->beat_at_ns > timeout_ns) {
      cut_off(index, "it did not poll for " + std::to_string(options.silence_timeout_ms) + " ms");
    }
  }
}

// --- the interface -------------------------------------------------------------------------------

Daemon::Daemon(SegmentSpace& space, DaemonOptions options)
    : state_(std::make_unique<DaemonState>(space, std::move(options))) {}

Daemon::~Daemon() {
  if (!state_->address.socket.empty()) attached::remove_socket(state_->address);
}

std::size_t Daemon::poll() { return state_->poll(); }

Waits Daemon::waits() {
  state_->rest_all();
  const std::uint64_t timeout_ns = std::uint64_t{state_->options.silence_timeout_ms} * 1'000'000;
  if (timeout_ns != 0 && state_->living > 0) fabric().wake_at(fabric().now_ns() + timeout_ns / 4);
  return {.descriptors = {state_->epoll.get()}};
}

Fabric& Daemon::fabric() const noexcept { return state_->space.fabric(); }
std::uint32_t Daemon::clients() const noexcept { return state_->living + state_->ending; }

std::uint64_t Daemon::served() const noexcept {
  std::uint64_t all = state_->served_before;
  for (const auto& client : state_->clients)
    if (client) all += client->session->served();
  return all;
}

const std::string& Daemon::last_cut_off() const noexcept { return state_->last_cut_off; }

}  // namespace dunlin
