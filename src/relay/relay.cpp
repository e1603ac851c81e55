#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include <sys/socket.h>

#include <dunlin/error.hpp>
#include <dunlin/relay/relay.hpp>

#include "fabric/client_listener.hpp"
#include "pubsub/channel.hpp"
#include "relay/session.hpp"

namespace dunlin::relay {
namespace {

constexpr int kEventsAtOnce = 256;
constexpr int kAcceptsAtOnce = 64;
constexpr std::uint32_t kPollsPerLook = 16;      // between looks while sockets and topics are quiet
constexpr std::uint64_t kRetryNs = 1'000'000;    // retry period for what no event tells of
constexpr std::uint64_t kSweepNs = 500'000'000;  // period of the check for silent clients
constexpr std::uint64_t kLifeNs = 250'000'000;   // between unrequested pongs
constexpr std::uint64_t kIntroductionNs = 10'000'000'000;  // time for a client to say hello

/// The listener's number in the epoll set; all other numbers are those of clients.
constexpr std::uint64_t kListenerTag = 0;

}  // namespace

class Relay::State {
 public:
  struct Client {
    Client(Descriptor socket, std::unique_ptr<Pipe> pipe, RelayContext& context)
        : connection(std::move(socket), std::move(pipe)), session(context, connection) {}
    Connection connection;
    Session session;
    std::uint64_t number = 0;
    std::uint32_t interest = 0;  // events of epoll
    bool over = false;
    bool blocked = false;          // whether it is in State::blocked_
    bool waits = false;            // whether it is in State::waiting_
    std::uint64_t life_at_ns = 0;  // when a blocked client is sent a pong
    std::uint64_t since_ns = 0;    // when it came, or last took something, or had nothing waiting
    std::uint64_t bytes_sent = 0;
  };

  State(pubsub::DomainParticipant& participant, RelayOptions given);
  ~State() { clients.clear(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::size_t poll();
  Waits waits();
  void close();
  [[nodiscard]] std::size_t relays() const noexcept {
    return topics_.peers().joined() ? topics_.peers().count() : 0;
  }

  RelayOptions options;
  ClientListener listener;
  SharedCounters counters;
  std::unordered_map<std::uint64_t, std::unique_ptr<Client>> clients;
  std::string last_parting;

 private:
  std::size_t look();
  void accept();
  void take_in(Descriptor socket);
  void handle(Client& client, std::uint32_t events);
  void proceed(Client& client);
  std::size_t proceed_blocked();
  std::size_t attend_due();
  void attend(Client& client);
  void show_life(std::uint64_t now_ns);
  void retry(std::uint64_t now_ns);
  void flush(Client& client);
  void watch(Client& client);
  void lose(Client& client, const std::string& why);
  void displace(const Client& client);
  void sweep(std::uint64_t now_ns);
  void check_client(Client& client, std::uint64_t now_ns);
  void bury();

  pubsub::DomainParticipant& participant_;
  PipeMaker make_pipe_;
  RelayTopics topics_;
  RelayContext context_;
  Descriptor epoll_;
  std::uint64_t next_number_ = kListenerTag + 1;
  std::uint32_t polls_until_look_ = 0;
  std::unordered_map<const Session*, Client*> by_session_;
  std::vector<std::uint64_t> blocked_;
  std::vector<std::uint64_t> waiting_;  // clients to be handled again soon
  std::vector<std::uint64_t> over_;
  std::uint64_t retry_at_ns_ = UINT64_MAX;
  std::uint64_t life_at_ns_ = UINT64_MAX;  // for the first blocked client
  std::uint64_t sweep_at_ns_ = 0;
};

Relay::State::State(pubsub::DomainParticipant& participant, RelayOptions given)
    : options(std::move(given)),
      listener(options.address, options.port, "choose another place for the relay"),
      counters(participant.fabric(), listener.address().text(), options),
      participant_(participant),
      make_pipe_(pipe_maker(Side::relay, options.secret)),
      topics_(participant),
      context_{.topics = topics_,
               .options = options,
               .counters = counters,
               .name = pubsub::member_name_of(participant.fabric(), participant.fabric().rank())} {
  if (!make_pipe_ && !is_loopback_address(options.address))
    throw Error("a relay at " + options.address +
                " can be reached by other hosts, so it needs the group's secret "
                "(RelayOptions::secret); without one it listens at 127.0.0.1 or ::1");
  if (options.clients == 0 || options.clients > kMaxClients)
    throw Error("a relay for " + std::to_string(options.clients) + " clients; 1 to " +
                std::to_string(kMaxClients) + " are possible (kMaxClients)");
  epoll_ = Descriptor(checked(epoll_create1(EPOLL_CLOEXEC), "making an epoll descriptor"));
  checked(
      watch_in(epoll_.get(), EPOLL_CTL_ADD, listener.descriptor(), EPOLLIN, {.u64 = kListenerTag}),
      "watching for clients");
}

std::size_t Relay::State::poll() {
  if (participant_.group().ended()) {
    if (!clients.empty()) close();
    return 0;
  }
  std::size_t done = proceed_blocked();
  if (polls_until_look_ == 0) {
    const std::size_t news = topics_.look();
    if (news > 0) sweep_at_ns_ = std::min(sweep_at_ns_, participant_.fabric().now_ns() + kSweepNs);
    const std::size_t seen = news + look();
    polls_until_look_ = seen > 0 ? 0 : kPollsPerLook;
    done += seen;
  } else {
    --polls_until_look_;
  }
  const std::uint64_t now_ns = participant_.fabric().now_ns();
  if (now_ns >= retry_at_ns_) retry(now_ns);
  show_life(now_ns);
  done += attend_due();
  if (now_ns >= sweep_at_ns_) sweep(now_ns);
  bury();
  if (retry_at_ns_ != UINT64_MAX) participant_.fabric().wake_at(retry_at_ns_);
  if (sweep_at_ns_ != UINT64_MAX) participant_.fabric().wake_at(sweep_at_ns_);
  if (life_at_ns_ != UINT64_MAX) participant_.fabric().wake_at(life_at_ns_);
  counters.clients.set(clients.size());
  counters.blocked_clients.set(blocked_.size());
  return done;
}

/// The poll before a sleep, and the one after it, look at all sockets and topics.
Waits Relay::State::waits() {
  polls_until_look_ = 0;
  return {.descriptors = {epoll_.get()}};
}

// --- the sockets ---------------------------------------------------------------------------------

std::size_t Relay::State::look() {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const std::uint64_t number = event.data.u64;  // the struct is packed: no reference to it
    if (number == kListenerTag) {
      accept();
    } else if (const auto found = clients.find(number); found != clients.end()) {
      handle(*found->second, event.events);
    }
  }
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

void Relay::State::accept() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    auto arrival = listener.accept();
    if (!arrival) return;
    ++counters.accepted;
    if (arrival->excess || clients.size() >= options.clients)
      ++counters.rejected;
    else
      take_in(std::move(arrival->socket));
  }
}

void Relay::State::take_in(Descriptor socket) {
  // The kernel notices a host that is gone without a word.
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  auto client =
      std::make_unique<Client>(std::move(socket), make_pipe_ ? make_pipe_() : nullptr, context_);
  client->number = next_number_++;
  client->interest = EPOLLIN;
  client->since_ns = participant_.fabric().now_ns();
  if (watch_in(epoll_.get(), EPOLL_CTL_ADD, client->connection.socket(), EPOLLIN,
               {.u64 = client->number}) != 0) {
    ++counters.rejected;
    return;
  }
  by_session_[&client->session] = client.get();
  clients.emplace(client->number, std::move(client));
  sweep_at_ns_ = std::min(sweep_at_ns_, participant_.fabric().now_ns() + kSweepNs);
}

void Relay::State::handle(Client& client, std::uint32_t events) {
  if (client.over) return;
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    if (!client.connection.read()) {
      proceed(client);  // handles frames that came before the end
      return lose(client, client.connection.why());
    }
    proceed(client);
  }
  client.session.mark_due();
}

void Relay::State::proceed(Client& client) {
  const bool was_greeted = client.session.greeted();
  client.session.proceed();
  if (!was_greeted && client.session.greeted()) displace(client);
  if (client.session.blocked() && !std::exchange(client.blocked, true))
    blocked_.push_back(client.number);
}

/// A client that comes back before its old connection is known to be broken replaces that
/// connection.
void Relay::State::displace(const Client& client) {
  for (const auto& [number, other] : clients)
    if (other.get() != &client && !other->over && other->session.greeted() &&
        other->session.id() == client.session.id())
      other->session.say_goodbye("another connection of this client has taken its place");
}

std::size_t Relay::State::proceed_blocked() {
  std::size_t done = 0;
  for (const std::uint64_t number : std::exchange(blocked_, {})) {
    const auto found = clients.find(number);
    if (found == clients.end() || found->second->over) continue;
    Client& client = *found->second;
    client.blocked = false;
    const std::uint64_t before = counters.published.value();
    proceed(client);
    if (client.session.blocked() && counters.published.value() == before) continue;
    client.session.mark_due();
    ++done;
  }
  return done;
}

/// Sends signs of life: a client that waits long for an answer would take its relay for dead.
void Relay::State::show_life(std::uint64_t now_ns) {
  life_at_ns_ = UINT64_MAX;
  for (const std::uint64_t number : blocked_) {
    const auto found = clients.find(number);
    if (found == clients.end() || found->second->over) continue;
    Client& client = *found->second;
    if (now_ns >= client.life_at_ns) {
      client.session.show_life();
      client.life_at_ns = now_ns + kLifeNs;
    }
    life_at_ns_ = std::min(life_at_ns_, client.life_at_ns);
  }
}

std::size_t Relay::State::attend_due() {
  if (context_.due.empty()) return 0;
  const std::vector<Session*> due = std::exchange(context_.due, {});
  for (Session* const session : due) {
    session->is_due = false;
    Client& client = *by_session_.at(session);
    if (!client.over) attend(client);
  }
  return due.size();
}

void Relay::State::attend(Client& client) {
  const bool again = client.session.attend();
  if (again && !std::exchange(client.waits, true)) waiting_.push_back(client.number);
  if (again) {
    const std::uint64_t at_ns = participant_.fabric().now_ns() + kRetryNs;
    retry_at_ns_ = std::min(retry_at_ns_, at_ns);
  }
  flush(client);
}

void Relay::State::retry(std::uint64_t) {
  retry_at_ns_ = UINT64_MAX;
  for (const std::uint64_t number : std::exchange(waiting_, {})) {
    const auto found = clients.find(number);
    if (found == clients.end() || found->second->over) continue;
    found->second->waits = false;
    attend(*found->second);
  }
}

void Relay::State::flush(Client& client) {
  if (!client.connection.write()) return lose(client, client.connection.why());
  if (client.session.closing() && client.connection.waiting() == 0)
    return lose(client, "the relay has ended it");
  // These frames had to wait until the queue was shorter.
  if (client.session.wants_input() && !client.connection.input().empty()) {
    proceed(client);
  }
  watch(client);
}

void Relay::State::watch(Client& client) {
  const std::uint32_t wanted = (client.session.wants_input() ? EPOLLIN : 0U) |
                               (client.connection.wants_to_write() ? EPOLLOUT : 0U);
  if (wanted == client.interest) return;
  client.interest = wanted;
  checked(watch_in(epoll_.get(), EPOLL_CTL_MOD, client.connection.socket(), wanted,
                   {.u64 = client.number}),
          "watching a client");
}

// --- the end of a client -------------------------------------------------------------------------

void Relay::State::lose(Client& client, const std::string& why) {
  if (std::exchange(client.over, true)) return;
  if (!client.session.greeted()) ++counters.rejected;
  if (!why.empty()) last_parting = "client " + std::to_string(client.number) + ": " + why;
  static_cast<void>(client.connection.write());  // the farewell, if the socket takes it
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, client.connection.socket(), nullptr);
  over_.push_back(client.number);
}

void Relay::State::bury() {
  for (const std::uint64_t number : std::exchange(over_, {})) {
    const auto found = clients.find(number);
    if (found == clients.end()) continue;
    finish_sending(found->second->connection.socket());
    std::erase(context_.due, &found->second->session);
    by_session_.erase(&found->second->session);
    clients.erase(found);
  }
}

void Relay::State::sweep(std::uint64_t now_ns) {
  std::uint64_t waiting = 0, most = 0;
  for (const auto& [number, client] : clients) {
    if (client->over) continue;
    const std::uint64_t bytes = client->connection.waiting();
    waiting += bytes;
    most = std::max(most, bytes);
    check_client(*client, now_ns);
  }
  counters.waiting_bytes.set(waiting);
  counters.most_waiting_bytes.set(most);
  const std::uint64_t topics_ns = topics_.let_go(now_ns);
  sweep_at_ns_ = clients.empty() ? topics_ns : now_ns + kSweepNs;
}

void Relay::State::check_client(Client& client, std::uint64_t now_ns) {
  client.session.check_topics();
  const bool moved = client.connection.bytes_sent() != client.bytes_sent;
  client.bytes_sent = client.connection.bytes_sent();
  const bool introduced = client.session.greeted() || client.session.closing();
  if (introduced && (moved || client.connection.waiting() == 0)) {
    client.since_ns = now_ns;
  } else if (!introduced && now_ns - client.since_ns >= kIntroductionNs) {
    lose(client, "it has not said hello in time");
  } else if (introduced && now_ns - client.since_ns >= options.stall_ns) {
    ++counters.dropped;
    lose(client, "it takes nothing of the " + std::to_string(client.connection.waiting()) +
                     " bytes that wait for it");
  }
}

void Relay::State::close() {
  const std::string& why = participant_.group().why_ended();
  for (const auto& [number, client] : clients) {
    if (client->over) continue;
    client->session.say_goodbye("this relay ends" + (why.empty() ? "" : ": " + why));
    lose(*client, {});
  }
  bury();
}

// --- the public class ----------------------------------------------------------------------------

Relay::Relay(pubsub::DomainParticipant& participant, RelayOptions options)
    : state_(std::make_unique<State>(participant, std::move(options))) {}
Relay::~Relay() = default;
std::size_t Relay::poll() { return state_->poll(); }
Waits Relay::waits() { return state_->waits(); }
std::uint16_t Relay::port() const noexcept { return state_->listener.address().port(); }
std::size_t Relay::clients() const noexcept { return state_->clients.size(); }
std::size_t Relay::relays() const noexcept { return state_->relays(); }
std::map<std::string, std::uint64_t> Relay::counters() const {
  return state_->counters.all.values();
}
const std::string& Relay::last_parting() const noexcept { return state_->last_parting; }
void Relay::close() { state_->close(); }

}  // namespace dunlin::relay
