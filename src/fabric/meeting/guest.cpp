#include "fabric/meeting/guest.hpp"

#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>

#include "fabric/meeting/connection.hpp"
#include "fabric/meeting/visit.hpp"

namespace dunlin::meeting {
namespace {

/// For a connection, and for the proof after it: then what is there is not a host, or is stopped,
/// and somebody else may be by the next attempt.
constexpr std::uint64_t kPatienceNs = 2'000'000'000;

std::uint64_t now() { return read_clock_ns(CLOCK_MONOTONIC); }

}  // namespace

/// With whoever took our connection.
class Guest::Talk {
 public:
  Talk(const Plan& plan, Bytes card, std::string where, Descriptor socket,
       std::uint64_t deadline_ns)
      : where_(std::move(where)),
        deadline_ns_(deadline_ns),
        patience_ns_(std::min(deadline_ns, now() + kPatienceNs)),
        connection_(std::move(socket), Side::guest, *plan.tls),
        visit_(plan, card, connection_.channel()) {}

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
  Visit visit_;
  bool introduced_ = false;
};

std::optional<Attempt> Guest::Talk::go_on() {
  pollfd look{connection_.socket().get(), POLLIN, 0};
  if (::poll(&look, 1, 0) > 0)
    if (std::optional<Attempt> end = listen()) return end;
  if (!connection_.write()) {  // but perhaps it said why, before it hung up
    std::optional<Attempt> end = listen();
    return end ? std::move(*end) : broken();
  }
  if (now() >= (introduced_ ? deadline_ns_ : patience_ns_)) return too_late();
  return std::nullopt;
}

Awaited Guest::Talk::awaited() const {
  Awaited news;
  news.by(introduced_ ? deadline_ns_ : patience_ns_);
  news.add(connection_.socket(), connection_.all_is_sent() ? POLLIN : POLLIN | POLLOUT);
  return news;
}

std::optional<Attempt> Guest::Talk::listen() {
  const bool open = connection_.read();
  Channel& channel = connection_.channel();
  if (channel.proved() && !introduced_) {
    introduced_ = true;
    visit_.introduce();
  }
  for (const Frame& frame : channel.take_frames())
    if (std::optional<Attempt> end = listen_to(frame)) return end;
  if (channel.fault() != Fault::none) return unproved();
  if (!open) return broken();
  return std::nullopt;
}

std::optional<Attempt> Guest::Talk::listen_to(const Frame& frame) {
  switch (visit_.hear(frame)) {
    case Visit::Outcome::waiting:
      return std::nullopt;
    case Visit::Outcome::met:
      return Attempt{Attempt::End::met, {}, visit_.roster()};
    case Visit::Outcome::refused:
      throw Refused(visit_.text() + " (said the host of the meeting at " + where_ + ")");
    case Visit::Outcome::given_up:
      return Attempt{Attempt::End::lost, "its host gave up: " + visit_.text()};
    case Visit::Outcome::violated:
      return Attempt{Attempt::End::lost, "the host at " + where_ + " broke the protocol"};
  }
  return std::nullopt;
}

Attempt Guest::Talk::broken() const {
  const std::string news = visit_.text().empty() ? "" : ". Its last news: " + visit_.text();
  if (introduced_) return {Attempt::End::lost, "the host at " + where_ + " left or died" + news};
  return {Attempt::End::unanswered, "somebody at " + where_ + " hung up on us before a proof"};
}

Attempt Guest::Talk::too_late() const {
  if (!introduced_)
    return {Attempt::End::unproved, "somebody at " + where_ +
                                        " takes connections and does not answer: is it stopped, or "
                                        "is this not a meeting?"};
  return {Attempt::End::lost, visit_.text() + ". This member waited as a guest at " + where_};
}

Attempt Guest::Talk::unproved() {
  static_cast<void>(connection_.write());  // TLS tells the host why
  const Channel& channel = connection_.channel();
  const std::string host = "the host of the meeting at " + where_;
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
                                          " does not speak the protocol of a meeting: is it "
                                          "another service?"};
  }
}

Guest::Guest(const Plan& plan, Bytes card, const Endpoint& endpoint, std::uint64_t deadline_ns)
    : plan_(plan),
      card_(card),
      where_(endpoint.text()),
      deadline_ns_(deadline_ns),
      patience_ns_(std::min(deadline_ns, now() + kPatienceNs)),
      connecting_(begin_to_connect(endpoint, fault_)) {}

Guest::~Guest() = default;

std::optional<Attempt> Guest::poll() {
  if (!talk_)
    if (std::optional<Attempt> end = finish_connecting()) return end;
  return talk_ ? talk_->go_on() : std::nullopt;
}

std::optional<Attempt> Guest::finish_connecting() {
  if (connecting_) {
    pollfd look{connecting_.get(), POLLOUT, 0};
    const bool answered = ::poll(&look, 1, 0) > 0;
    if (!answered && now() < patience_ns_) return std::nullopt;
    fault_ = answered ? connection_fault(connecting_) : "no answer";
  }
  if (!fault_.empty())
    return Attempt{Attempt::End::unanswered,
                   "nobody can be reached at " + where_ + " (" + fault_ + ")"};
  talk_ = std::make_unique<Talk>(plan_, card_, where_, std::move(connecting_), deadline_ns_);
  return std::nullopt;
}

Awaited Guest::awaited() const {
  if (talk_) return talk_->awaited();
  Awaited news;
  news.by(patience_ns_);
  news.add(connecting_, POLLOUT);
  return news;
}

}  // namespace dunlin::meeting
