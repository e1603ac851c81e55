#include "fabric/rendezvous/joiner.hpp"

#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>

#include "fabric/rendezvous/connection.hpp"
#include "fabric/rendezvous/handshake.hpp"

namespace dunlin::rendezvous {
namespace {

/// The time for a connection, and for the proof after it: when it is over, the process there is no
/// host, or is stopped, and another process may be there at the next attempt.
constexpr std::uint64_t kPatienceNs = 2'000'000'000;

std::uint64_t now() { return read_clock_ns(CLOCK_MONOTONIC); }

}  // namespace

/// A conversation with the process that accepted our connection.
class Joiner::Talk {
 public:
  Talk(const Plan& plan, Bytes endpoint_address, std::string where, Descriptor socket,
       std::uint64_t deadline_ns)
      : where_(std::move(where)),
        deadline_ns_(deadline_ns),
        patience_ns_(std::min(deadline_ns, now() + kPatienceNs)),
        connection_(std::move(socket), Side::joiner, *plan.tls),
        visit_(plan, endpoint_address, connection_.channel()) {}

  [[nodiscard]] std::optional<Attempt> go_on();
  [[nodiscard]] Awaited awaited() const;

 private:
  [[nodiscard]] std::optional<Attempt> listen();
  [[nodiscard]] std::optional<Attempt> listen_to(const Frame& frame);
  [[nodiscard]] Attempt broken() const;
  [[nodiscard]] Attempt too_late() const;
  [[nodiscard]] Attempt unproved();

  std::string where_;
  std::uint64_t deadline_ns_;
  std::uint64_t patience_ns_;
  Connection connection_;
  JoinerHandshake visit_;
  bool requested_ = false;
};

std::optional<Attempt> Joiner::Talk::go_on() {
  pollfd look{connection_.socket().get(), POLLIN, 0};
  if (::poll(&look, 1, 0) > 0)
    if (std::optional<Attempt> end = listen()) return end;
  if (!connection_.write()) {  // perhaps it said why before it hung up
    std::optional<Attempt> end = listen();
    return end ? std::move(*end) : broken();
  }
  if (now() >= (requested_ ? deadline_ns_ : patience_ns_)) return too_late();
  return std::nullopt;
}

Awaited Joiner::Talk::awaited() const {
  Awaited news;
  news.by(requested_ ? deadline_ns_ : patience_ns_);
  news.add(connection_.socket(), connection_.all_is_sent() ? POLLIN : POLLIN | POLLOUT);
  return news;
}

std::optional<Attempt> Joiner::Talk::listen() {
  const bool open = connection_.read();
  Channel& channel = connection_.channel();
  if (channel.proved() && !requested_) {
    requested_ = true;
    visit_.request_join();
  }
  for (const Frame& frame : channel.take_frames())
    if (std::optional<Attempt> end = listen_to(frame)) return end;
  if (channel.fault() != Fault::none) return unproved();
  if (!open) return broken();
  return std::nullopt;
}

std::optional<Attempt> Joiner::Talk::listen_to(const Frame& frame) {
  switch (visit_.receive(frame)) {
    case JoinerHandshake::Outcome::waiting:
      return std::nullopt;
    case JoinerHandshake::Outcome::met:
      return Attempt{Attempt::End::met, {}, visit_.roster()};
    case JoinerHandshake::Outcome::refused:
      throw Refused(visit_.text() + " (said the host of the rendezvous at " + where_ + ")");
    case JoinerHandshake::Outcome::given_up:
      return Attempt{Attempt::End::lost, "its host gave up: " + visit_.text()};
    case JoinerHandshake::Outcome::violated:
      return Attempt{Attempt::End::lost, "the host at " + where_ + " broke the protocol"};
  }
  return std::nullopt;
}

Attempt Joiner::Talk::broken() const {
  const std::string news = visit_.text().empty() ? "" : ". Its last news: " + visit_.text();
  if (requested_) return {Attempt::End::lost, "the host at " + where_ + " left or died" + news};
  return {Attempt::End::unanswered, "somebody at " + where_ + " hung up on us before a proof"};
}

Attempt Joiner::Talk::too_late() const {
  if (!requested_)
    return {Attempt::End::unproved, "somebody at " + where_ +
                                        " takes connections and does not answer: is it stopped, or "
                                        "is this not a rendezvous?"};
  return {Attempt::End::lost, visit_.text() + ". This member waited as a joiner at " + where_};
}

Attempt Joiner::Talk::unproved() {
  static_cast<void>(connection_.write());  // TLS tells the host why
  const Channel& channel = connection_.channel();
  const std::string host = "the host of the rendezvous at " + where_;
  if (channel.proved()) return {Attempt::End::lost, host + " broke the protocol"};
  switch (channel.fault()) {
    case Fault::turned_away:
    case Fault::wrong_secret:
      return {Attempt::End::unproved,
              host + " knows another secret than this member: give all members the same"};
    case Fault::other_version:
      return {Attempt::End::unproved,
              host + " speaks version " + std::to_string(channel.peer_version()) +
                  " of the protocol, and this member version " + std::to_string(kVersion) +
                  ": all members must use the same release of Dunlin"};
    case Fault::certificate:
      return {Attempt::End::unproved, host + " " + channel.fault_text() +
                                          ": give all members certificates of the same CA, or "
                                          "none"};
    default:
      return {Attempt::End::unproved, "what answers at " + where_ +
                                          " does not speak the protocol of a rendezvous: is it "
                                          "another service?"};
  }
}

Joiner::Joiner(const Plan& plan, Bytes endpoint_address, const SocketAddress& target,
               std::uint64_t deadline_ns)
    : plan_(plan),
      endpoint_address_(endpoint_address),
      where_(target.text()),
      deadline_ns_(deadline_ns),
      patience_ns_(std::min(deadline_ns, now() + kPatienceNs)),
      connecting_(begin_to_connect(target, fault_)) {}

Joiner::~Joiner() = default;

std::optional<Attempt> Joiner::poll() {
  if (!talk_)
    if (std::optional<Attempt> end = finish_connecting()) return end;
  return talk_ ? talk_->go_on() : std::nullopt;
}

std::optional<Attempt> Joiner::finish_connecting() {
  if (connecting_) {
    pollfd look{connecting_.get(), POLLOUT, 0};
    const bool answered = ::poll(&look, 1, 0) > 0;
    if (!answered && now() < patience_ns_) return std::nullopt;
    fault_ = answered ? connection_fault(connecting_.get()) : "no answer";
  }
  if (!fault_.empty())
    return Attempt{Attempt::End::unanswered,
                   "nobody can be reached at " + where_ + " (" + fault_ + ")"};
  talk_ = std::make_unique<Talk>(plan_, endpoint_address_, where_, std::move(connecting_),
                                 deadline_ns_);
  return std::nullopt;
}

Awaited Joiner::awaited() const {
  if (talk_) return talk_->awaited();
  Awaited news;
  news.by(patience_ns_);
  news.add(connecting_, POLLOUT);
  return news;
}

}  // namespace dunlin::rendezvous
