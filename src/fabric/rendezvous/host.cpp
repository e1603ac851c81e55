#include "fabric/rendezvous/host.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fabric/bytes.hpp"

namespace dunlin::rendezvous {
namespace {

constexpr std::size_t kMaxStrangers = 64;      // besides missing members
constexpr std::size_t kOwnDescriptors = 16;    // for a rendezvous itself
constexpr std::size_t kOtherDescriptors = 48;  // for the rest of the process
constexpr std::uint64_t kStrangerNs = 5'000'000'000;
/// A host accepts so many connections at once; then it serves known members first.
constexpr int kMaxAcceptedAtOnce = 16;
constexpr std::uint64_t kAcceptPauseNs = 10'000'000;
constexpr std::uint64_t kNewsIntervalNs = 100'000'000;
/// The time for the last frames, when no member can stay.
constexpr std::uint64_t kFarewellNs = 1'000'000'000;
/// A session may have so many unsent bytes: a roster may be megabytes, for each joiner.
constexpr std::size_t kMaxUnsentBytes = 65536;

std::uint64_t now() { return read_clock_ns(CLOCK_MONOTONIC); }

/// Spreads numbers that follow each other.
std::uint64_t mix(std::uint64_t number) {
  number *= 0x9e3779b97f4a7c15;
  return (number ^ number >> 32) * 0xd6e8feb86659fd93 >> 16;
}

Bytes shortened(const std::string& text) {
  return bytes_of(std::string_view(text).substr(0, kMaxTextBytes));
}

}  // namespace

Host::Host(const Plan& plan, Bytes endpoint_address, Claim claim, std::uint64_t deadline_ns)
    : plan_(plan),
      builder_(plan, endpoint_address),
      claim_(std::move(claim)),
      deadline_ns_(deadline_ns) {
  const std::uint64_t needed = plan.members() + kOwnDescriptors;
  ensure_descriptors(needed, needed + kMaxStrangers + kOtherDescriptors, plan.members());
}

std::optional<Roster> Host::poll() {
  const std::uint64_t now_ns = now();
  look();
  for (auto& session : sessions_)
    if (session->readable) receive(*session);
  accept_strangers(now_ns);
  advance();
  send_news(now_ns);
  for (auto& session : sessions_) flush(*session);
  sweep(now_ns);
  if (over() || (go_sent_ && now_ns >= deadline_ns_)) return roster();
  if (!refused_all_.empty() && (sessions_.empty() || now_ns >= deadline_ns_))
    throw Refused(refused_all_);
  if (now_ns >= deadline_ns_) give_up();
  return std::nullopt;
}

// --- members that come and go --------------------------------------------------------------------

void Host::accept_strangers(std::uint64_t now_ns) {
  if (now_ns < next_accept_ns_ || go_sent_) return;
  for (int i = 0; i < kMaxAcceptedAtOnce; ++i) {
    Descriptor socket = take_connection(claim_.listener);
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        make_room_for_descriptor(now_ns);
      return;
    }
    if (strangers() >= kMaxStrangers + builder_.missing()) make_room();
    std::string from = origin_of(socket);
    sessions_.push_back(std::make_unique<Session>(Session{
        {std::move(socket), Side::host, *plan_.tls}, std::move(from), now_ns + kStrangerNs}));
    receive(*sessions_.back());  // a member has sent something already
  }
}

/// Frees a descriptor: none is left, for this process or its system.
void Host::make_room_for_descriptor(std::uint64_t now_ns) {
  if (strangers() > 0) return make_room();
  next_accept_ns_ = now_ns + kAcceptPauseNs;
}

std::size_t Host::strangers() const {
  return static_cast<std::size_t>(
      std::count_if(sessions_.begin(), sessions_.end(),
                    [](const auto& session) { return !session->ticket && !session->gone; }));
}

/// Drops a random stranger: if the oldest went, a flood that is faster than this host would push
/// each member out before it has introduced itself. Strangers that have greeted stay as long as
/// there are others.
void Host::make_room() {
  std::vector<Session*> all, without_greeting;
  for (const auto& session : sessions_) {
    if (session->ticket || session->gone) continue;
    all.push_back(session.get());
    if (session->leaving || !session->connection.channel().greeted())
      without_greeting.push_back(session.get());
  }
  const std::vector<Session*>& from = without_greeting.empty() ? all : without_greeting;
  drop(*from[mix(++pushed_out_) % from.size()]);
}

void Host::receive(Session& session) {
  if (session.gone) return;
  if (session.leaving) {
    if (!session.connection.discard()) drop(session);
    return;
  }
  const bool open = session.connection.read();
  Channel& channel = session.connection.channel();
  for (const Frame& frame : channel.take_frames())
    if (!session.leaving && !session.gone) on_frame(session, frame);
  if (channel.fault() != Fault::none && !session.leaving && !session.gone) {
    note_stranger(session);
    channel.fault() == Fault::garbage ? drop(session) : dismiss(session);
  }
  if (!open) drop(session);
}

void Host::on_frame(Session& session, const Frame& frame) {
  if (frame.type == FrameType::request_join && !session.ticket) return request_join(session, frame);
  if (frame.type == FrameType::have && session.ticket &&
      builder_.confirmed(*session.ticket, Reader(frame.body).u32()))
    return;
  drop(session);  // it knows the secret, but not the protocol
}

void Host::request_join(Session& session, const Frame& frame) {
  JoinRequest joiner;
  // Once all may go, a joiner that comes belongs to a later rendezvous at this address, and finds
  // that one when it tries again.
  if (!decode(frame.body, joiner) || go_sent_) return drop(session);
  if (!refused_all_.empty()) return refuse(session, refused_all_);
  RosterBuilder::Verdict verdict = builder_.admit(joiner, session.from);
  if (verdict.taken) {  // perhaps by a member that is gone
    for (auto& other : sessions_)
      if (other->ticket) receive(*other);
    verdict = builder_.admit(joiner, session.from);
  }
  if (verdict.admitted) {
    session.ticket = verdict.admitted;
    session.connection.channel().send(FrameType::news, shortened(builder_.progress()));
    news_ = true;
    return;
  }
  last_refusal_ = "A member from " + session.from + " was refused: " + verdict.refusal;
  refuse(session, verdict.refusal);
  if (plan_.all_must_fit && !verdict.taken && !verdict.other_group) refuse_all(last_refusal_);
}

void Host::refuse(Session& session, const std::string& why) {
  session.connection.channel().send(FrameType::refuse, shortened(why));
  dismiss(session);
}

void Host::refuse_all(const std::string& why) {
  refused_all_ = why;
  const std::uint64_t farewell_ns = now() + kFarewellNs;
  deadline_ns_ = std::min(deadline_ns_, farewell_ns);
  for (auto& session : sessions_) {
    if (!session->ticket || session->gone) continue;
    builder_.left(*session->ticket);
    session->ticket.reset();
    session->until_ns = farewell_ns;
    refuse(*session, why);
  }
}

/// Lets the other side hang up first: hanging up at once could make its system throw away what we
/// say.
void Host::dismiss(Session& session) {
  session.leaving = true;
  flush(session);
}

void Host::flush(Session& session) {
  if (session.gone) return;
  if (!session.connection.write()) return drop(session);
  if (session.leaving && session.connection.all_is_sent()) session.connection.stop_writing();
}

void Host::drop(Session& session) {
  session.gone = true;
  if (!session.ticket) return;
  builder_.left(*session.ticket);
  session.ticket.reset();
  news_ = true;
}

void Host::note_stranger(const Session& session) {
  const Channel& channel = session.connection.channel();
  if (channel.proved()) return;
  ++without_proof_;
  last_without_proof_ = session.from;
  if (channel.fault() == Fault::other_version)
    last_without_proof_ += " speaks version " + std::to_string(channel.peer_version()) +
                           " of the protocol, and we " + std::to_string(kVersion);
  else if (channel.fault() == Fault::wrong_secret)
    last_without_proof_ += " does not know our secret";
  else if (channel.fault() == Fault::certificate)
    last_without_proof_ += " " + channel.fault_text();
  else
    last_without_proof_ += " does not speak our protocol";
}

void Host::sweep(std::uint64_t now_ns) {
  for (auto& session : sessions_)
    if (!session->ticket && now_ns >= session->until_ns) drop(*session);
  std::erase_if(sessions_, [](const auto& session) { return session->gone; });
}

// --- what joiners are told -----------------------------------------------------------------------

void Host::advance() {
  if (builder_.complete() && key_round_ != builder_.round()) {
    key_round_ = builder_.round();
    key_ = random_digest();
  }
  if (builder_.complete())
    for (auto& session : sessions_)
      if (session->ticket) send_roster(*session);
  if (builder_.decided() && !go_sent_) send_go();
}

void Host::send_roster(Session& session) {
  Channel& channel = session.connection.channel();
  if (session.round != key_round_) {
    session.round = key_round_;
    session.sent_members = 0;
    session.roster_sent = false;
  }
  for (; session.sent_members < plan_.members() && channel.output().size() < kMaxUnsentBytes;
       ++session.sent_members) {
    std::vector<std::byte> body;
    Writer writer(body);
    writer.u32(key_round_);
    writer.u32(session.sent_members);
    writer.bytes(builder_.endpoint_address_of(session.sent_members));
    channel.send(FrameType::member, body);
  }
  if (session.sent_members < plan_.members() || session.roster_sent) return;
  session.roster_sent = true;
  std::vector<std::byte> body;
  Writer writer(body);
  writer.u32(key_round_);
  writer.u32(builder_.rank_of(*session.ticket));
  writer.bytes(key_);
  channel.send(FrameType::roster, body);
}

/// Sends news, so that a joiner, too, can name the missing members. Not each change is sent to each
/// joiner: that would be n^2 frames.
void Host::send_news(std::uint64_t now_ns) {
  if (!news_ || now_ns < next_news_ns_ || builder_.decided()) return;
  news_ = false;
  next_news_ns_ = now_ns + kNewsIntervalNs;
  const std::string text = builder_.progress();
  for (auto& session : sessions_)
    if (session->ticket && session->connection.all_is_sent())
      session->connection.channel().send(FrameType::news, shortened(text));
}

void Host::send_go() {
  go_sent_ = true;
  std::vector<std::byte> body;
  Writer(body).u32(key_round_);
  for (auto& session : sessions_)
    if (session->ticket) session->connection.channel().send(FrameType::go, body);
}

// --- step by step --------------------------------------------------------------------------------

/// What poll() waits for; the listener comes first, then the sessions.
Awaited Host::awaited() const {
  const bool accepting = now() >= next_accept_ns_;
  Awaited news;
  news.by(deadline_ns_);
  if (news_) news.by(next_news_ns_);
  if (!accepting) news.by(next_accept_ns_);
  news.descriptors.push_back({accepting ? claim_.listener.get() : -1, POLLIN, 0});
  for (const auto& session : sessions_) {
    const bool more_to_send = session->ticket && builder_.complete() && !session->roster_sent;
    const bool nothing_to_send = session->connection.all_is_sent() && !more_to_send;
    news.add(session->connection.socket(), nothing_to_send ? POLLIN : POLLIN | POLLOUT);
    if (!session->ticket) news.by(session->until_ns);
  }
  return news;
}

void Host::look() {
  Awaited news = awaited();
  static_cast<void>(news.is_here());
  for (std::size_t i = 0; i < sessions_.size(); ++i)
    sessions_[i]->readable = (news.descriptors[i + 1].revents & ~POLLOUT) != 0;
}

bool Host::over() const {
  return go_sent_ && std::all_of(sessions_.begin(), sessions_.end(), [](const auto& session) {
           return !session->ticket || session->connection.all_is_sent();
         });
}

Roster Host::roster() const {
  Roster roster{.rank = builder_.rank_of(RosterBuilder::kHost), .members = {}, .key = key_};
  for (Rank rank = 0; rank < plan_.members(); ++rank) {
    const Bytes endpoint_address = builder_.endpoint_address_of(rank);
    roster.members.push_back(
        {plan_.names[rank], {endpoint_address.begin(), endpoint_address.end()}});
  }
  return roster;
}

void Host::give_up() {
  std::string text = plan_.group_text() + " did not meet within " +
                     std::to_string(plan_.timeout_ms) + " ms: " + builder_.progress() +
                     ". This member waited as the host of the rendezvous at " + plan_.address;
  if (claim_.at.text() != plan_.address) text += " (" + claim_.at.text() + ")";
  if (!last_refusal_.empty()) text += ". " + last_refusal_;
  if (without_proof_ > 0)
    text += ". Turned away: " + std::to_string(without_proof_) +
            " without a proof; the last, from " + last_without_proof_;
  for (auto& session : sessions_) {
    if (!session->ticket) continue;
    session->connection.channel().send(FrameType::give_up, shortened(text));
    static_cast<void>(session->connection.write());
  }
  throw Error(text);
}

}  // namespace dunlin::rendezvous
