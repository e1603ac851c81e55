#include "fabric/meeting/guest.hpp"

#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>

#include "fabric/meeting/connection.hpp"
#include "fabric/meeting/visit.hpp"
#include "fabric/meeting/waiting.hpp"

namespace dunlin::meeting {
namespace {

/// For a connection, and for the proof after it: then what is there is not a host, or is stopped,
/// and somebody else may be by the next attempt.
constexpr std::uint64_t kPatienceNs = 2'000'000'000;

std::uint64_t now() { return read_clock_ns(CLOCK_MONOTONIC); }

class Guest {
 public:
  Guest(const Plan& plan, Bytes card, std::string where, Descriptor socket,
        std::uint64_t deadline_ns)
      : plan_(plan),
        where_(std::move(where)),
        deadline_ns_(deadline_ns),
        patience_ns_(std::min(deadline_ns, now() + kPatienceNs)),
        connection_(std::move(socket), Side::guest, plan.secret, plan.tls.get()),
        visit_(plan, card, connection_.channel()) {}

  Attempt run();

 private:
  [[nodiscard]] std::optional<Attempt> listen();
  [[nodiscard]] std::optional<Attempt> listen_to(const Frame& frame);
  [[nodiscard]] Attempt broken() const;
  [[nodiscard]] Attempt too_late() const;
  [[nodiscard]] Attempt unproved() const;
  [[nodiscard]] Attempt without_tls();

  const Plan& plan_;
  std::string where_;
  std::uint64_t deadline_ns_;
  std::uint64_t patience_ns_;
  Connection connection_;
  Visit visit_;
  bool introduced_ = false;
};

Attempt Guest::run() {
  while (true) {
    if (!connection_.write()) {  // but perhaps it said why, before it hung up
      std::optional<Attempt> end = listen();
      return end ? std::move(*end) : broken();
    }
    const std::uint64_t until_ns = introduced_ ? deadline_ns_ : patience_ns_;
    if (now() >= until_ns) return too_late();
    const int wanted = connection_.all_is_sent() ? POLLIN : POLLIN | POLLOUT;
    std::vector<pollfd> watched{{connection_.socket().get(), static_cast<short>(wanted), 0}};
    sleep_in_poll(watched, until_ns);
    if ((watched[0].revents & ~POLLOUT) == 0) continue;
    if (std::optional<Attempt> end = listen()) return std::move(*end);
  }
}

std::optional<Attempt> Guest::listen() {
  const bool open = connection_.read();
  Channel& channel = connection_.channel();
  if (channel.proved() && !introduced_) {
    introduced_ = true;
    visit_.introduce();
  }
  for (const Frame& frame : channel.take_frames())
    if (std::optional<Attempt> end = listen_to(frame)) return end;
  if (!connection_.tls_fault().empty()) return without_tls();
  if (channel.fault() != Channel::Fault::none) return unproved();
  if (!open) return broken();
  return std::nullopt;
}

std::optional<Attempt> Guest::listen_to(const Frame& frame) {
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

Attempt Guest::broken() const {
  const std::string news = visit_.text().empty() ? "" : ". Its last news: " + visit_.text();
  if (introduced_) return {Attempt::End::lost, "the host at " + where_ + " left or died" + news};
  return {Attempt::End::unanswered, "somebody at " + where_ + " hung up on us before a proof"};
}

Attempt Guest::too_late() const {
  if (!introduced_)
    return {Attempt::End::unproved, "somebody at " + where_ +
                                        " takes connections and does not answer: is it stopped, or "
                                        "is this not a meeting?"};
  return {Attempt::End::lost, visit_.text() + ". This member waited as a guest at " + where_};
}

Attempt Guest::without_tls() {
  static_cast<void>(connection_.write());  // it may want to know
  const std::string text = "whoever holds the meeting at " + where_ + " " +
                           connection_.tls_fault() +
                           ": give all members TLS of the same CA, or none";
  return {introduced_ ? Attempt::End::lost : Attempt::End::unproved, text};
}

Attempt Guest::unproved() const {
  const Channel& channel = connection_.channel();
  const std::string host = "the host of the meeting at " + where_;
  switch (channel.fault()) {
    case Channel::Fault::turned_away:
    case Channel::Fault::wrong_proof:
      return {Attempt::End::unproved,
              host + " knows another secret than this member: give all members the same"};
    case Channel::Fault::other_version:
      return {Attempt::End::unproved,
              host + " speaks version " + std::to_string(channel.peer_version()) +
                  " of the protocol, and this member version " + std::to_string(kVersion) +
                  ": all members must use the same release of Dunlin"};
    default:
      break;
  }
  if (channel.proved()) return {Attempt::End::lost, host + " broke the protocol"};
  return {Attempt::End::unproved, "what answers at " + where_ +
                                      " does not speak the protocol of a meeting: is it another "
                                      "service?"};
}

}  // namespace

Attempt visit(const Plan& plan, Bytes card, const Endpoint& endpoint, std::uint64_t deadline_ns) {
  const std::string where = endpoint.text();
  std::string fault;
  Descriptor socket = begin_to_connect(endpoint, fault);
  if (socket) {
    std::vector<pollfd> watched{{socket.get(), POLLOUT, 0}};
    sleep_in_poll(watched, std::min(deadline_ns, now() + kPatienceNs));
    fault = watched[0].revents == 0 ? "no answer" : connection_fault(socket);
  }
  if (!fault.empty())
    return {Attempt::End::unanswered, "nobody can be reached at " + where + " (" + fault + ")"};
  return Guest(plan, card, where, std::move(socket), deadline_ns).run();
}

}  // namespace dunlin::meeting
