#include "fabric/meeting/host.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fabric/bytes.hpp"

namespace dunlin::meeting {
namespace {

constexpr std::size_t kMaxStrangers = 64;      // besides those that we wait for
constexpr std::size_t kOwnDescriptors = 16;    // of a meeting itself
constexpr std::size_t kOtherDescriptors = 48;  // of the process
constexpr std::uint64_t kStrangerNs = 5'000'000'000;
/// Then those who are known are served first.
constexpr int kMaxAcceptedAtOnce = 16;
constexpr std::uint64_t kAcceptPauseNs = 10'000'000;
constexpr std::uint64_t kNewsIntervalNs = 100'000'000;
/// For the last words, when nobody can stay.
constexpr std::uint64_t kFarewellNs = 1'000'000'000;
/// A roster may be megabytes, for each guest.
constexpr std::size_t kMaxUnsentBytes = 65536;

std::uint64_t now() { return read_clock_ns(CLOCK_MONOTONIC); }

Bytes shortened(const std::string& text) {
  return bytes_of(std::string_view(text).substr(0, kMaxTextBytes));
}

}  // namespace

Host::Host(const Plan& plan, Bytes card, Claim claim, std::uint64_t deadline_ns)
    : plan_(plan), gathering_(plan, card), claim_(std::move(claim)), deadline_ns_(deadline_ns) {
  const std::uint64_t needed = plan.members() + kOwnDescriptors;
  ensure_descriptors(needed, needed + kMaxStrangers + kOtherDescriptors, plan.members());
}

std::optional<Roster> Host::poll() {
  const std::uint64_t now_ns = now();
  look();
  for (auto& visitor : visitors_)
    if (visitor->readable) hear(*visitor);
  accept_strangers(now_ns);
  advance();
  tell_news(now_ns);
  for (auto& visitor : visitors_) speak(*visitor);
  sweep(now_ns);
  if (over() || (told_go_ && now_ns >= deadline_ns_)) return roster();
  if (!refused_all_.empty() && (visitors_.empty() || now_ns >= deadline_ns_))
    throw Refused(refused_all_);
  if (now_ns >= deadline_ns_) give_up();
  return std::nullopt;
}

// --- who comes and goes --------------------------------------------------------------------------

void Host::accept_strangers(std::uint64_t now_ns) {
  if (now_ns < next_accept_ns_ || told_go_) return;
  for (int i = 0; i < kMaxAcceptedAtOnce; ++i) {
    Descriptor socket = take_connection(claim_.listener);
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        make_room_for_descriptor(now_ns);
      return;
    }
    if (strangers() >= kMaxStrangers + gathering_.missing()) make_room();
    std::string from = origin_of(socket);
    visitors_.push_back(std::make_unique<Visitor>(Visitor{
        {std::move(socket), Side::host, *plan_.tls}, std::move(from), now_ns + kStrangerNs}));
    hear(*visitors_.back());  // a member has said something already
  }
}

/// None is left, for this process or its system.
void Host::make_room_for_descriptor(std::uint64_t now_ns) {
  if (strangers() > 0) return make_room();
  next_accept_ns_ = now_ns + kAcceptPauseNs;
}

std::size_t Host::strangers() const {
  return static_cast<std::size_t>(
      std::count_if(visitors_.begin(), visitors_.end(),
                    [](const auto& visitor) { return !visitor->ticket && !visitor->gone; }));
}

/// The oldest goes; but whoever speaks our language stays as long as others do not.
void Host::make_room() {
  const auto oldest = [this](auto&& suits) {
    return std::find_if(visitors_.begin(), visitors_.end(), [&](const auto& visitor) {
      return !visitor->ticket && !visitor->gone && suits(*visitor);
    });
  };
  auto found = oldest([](const Visitor& visitor) {
    return visitor.leaving || !visitor.connection.channel().greeted();
  });
  if (found == visitors_.end()) found = oldest([](const Visitor&) { return true; });
  drop(**found);
}

void Host::hear(Visitor& visitor) {
  if (visitor.gone) return;
  if (visitor.leaving) {
    if (!visitor.connection.discard()) drop(visitor);
    return;
  }
  const bool open = visitor.connection.read();
  Channel& channel = visitor.connection.channel();
  for (const Frame& frame : channel.take_frames())
    if (!visitor.leaving && !visitor.gone) hear_frame(visitor, frame);
  if (channel.fault() != Fault::none && !visitor.leaving && !visitor.gone) {
    note_stranger(visitor);
    channel.fault() == Fault::garbage ? drop(visitor) : dismiss(visitor);
  }
  if (!open) drop(visitor);
}

void Host::hear_frame(Visitor& visitor, const Frame& frame) {
  if (frame.type == FrameType::introduce && !visitor.ticket) return introduce(visitor, frame);
  if (frame.type == FrameType::have && visitor.ticket &&
      gathering_.confirmed(*visitor.ticket, Reader(frame.body).u32()))
    return;
  drop(visitor);  // it knows the secret, but not the protocol
}

void Host::introduce(Visitor& visitor, const Frame& frame) {
  Introduction guest;
  // Once all may go, whoever comes is of another meeting at this address, and finds it later.
  if (!decode(frame.body, guest) || told_go_) return drop(visitor);
  if (!refused_all_.empty()) return refuse(visitor, refused_all_);
  Gathering::Verdict verdict = gathering_.admit(guest, visitor.from);
  if (verdict.taken) {  // perhaps by one who is gone by now
    for (auto& other : visitors_)
      if (other->ticket) hear(*other);
    verdict = gathering_.admit(guest, visitor.from);
  }
  if (verdict.admitted) {
    visitor.ticket = verdict.admitted;
    visitor.connection.channel().send(FrameType::news, shortened(gathering_.progress()));
    news_ = true;
    return;
  }
  last_refusal_ = "A member from " + visitor.from + " was refused: " + verdict.refusal;
  refuse(visitor, verdict.refusal);
  if (plan_.all_must_fit && !verdict.taken && !verdict.other_group) refuse_all(last_refusal_);
}

void Host::refuse(Visitor& visitor, const std::string& why) {
  visitor.connection.channel().send(FrameType::refuse, shortened(why));
  dismiss(visitor);
}

void Host::refuse_all(const std::string& why) {
  refused_all_ = why;
  const std::uint64_t farewell_ns = now() + kFarewellNs;
  deadline_ns_ = std::min(deadline_ns_, farewell_ns);
  for (auto& visitor : visitors_) {
    if (!visitor->ticket || visitor->gone) continue;
    gathering_.left(*visitor->ticket);
    visitor->ticket.reset();
    visitor->until_ns = farewell_ns;
    refuse(*visitor, why);
  }
}

/// Hanging up at once could make its system throw away what we say: so it hangs up first.
void Host::dismiss(Visitor& visitor) {
  visitor.leaving = true;
  speak(visitor);
}

void Host::speak(Visitor& visitor) {
  if (visitor.gone) return;
  if (!visitor.connection.write()) return drop(visitor);
  if (visitor.leaving && visitor.connection.all_is_sent()) visitor.connection.stop_writing();
}

void Host::drop(Visitor& visitor) {
  visitor.gone = true;
  if (!visitor.ticket) return;
  gathering_.left(*visitor.ticket);
  visitor.ticket.reset();
  news_ = true;
}

void Host::note_stranger(const Visitor& visitor) {
  const Channel& channel = visitor.connection.channel();
  if (channel.proved()) return;
  ++without_proof_;
  last_without_proof_ = visitor.from;
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
  for (auto& visitor : visitors_)
    if (!visitor->ticket && now_ns >= visitor->until_ns) drop(*visitor);
  std::erase_if(visitors_, [](const auto& visitor) { return visitor->gone; });
}

// --- what guests are told ------------------------------------------------------------------------

void Host::advance() {
  if (gathering_.complete() && key_round_ != gathering_.round()) {
    key_round_ = gathering_.round();
    key_ = random_digest();
  }
  if (gathering_.complete())
    for (auto& visitor : visitors_)
      if (visitor->ticket) tell_roster(*visitor);
  if (gathering_.decided() && !told_go_) tell_go();
}

void Host::tell_roster(Visitor& visitor) {
  Channel& channel = visitor.connection.channel();
  if (visitor.round != key_round_) {
    visitor.round = key_round_;
    visitor.told = 0;
    visitor.told_all = false;
  }
  for (; visitor.told < plan_.members() && channel.output().size() < kMaxUnsentBytes;
       ++visitor.told) {
    std::vector<std::byte> body;
    Writer writer(body);
    writer.u32(key_round_);
    writer.u32(visitor.told);
    writer.bytes(gathering_.card_of(visitor.told));
    channel.send(FrameType::member, body);
  }
  if (visitor.told < plan_.members() || visitor.told_all) return;
  visitor.told_all = true;
  std::vector<std::byte> body;
  Writer writer(body);
  writer.u32(key_round_);
  writer.u32(gathering_.rank_of(*visitor.ticket));
  writer.bytes(key_);
  channel.send(FrameType::roster, body);
}

/// So that a guest, too, can say who is missing. Not each change to each: that would be n^2.
void Host::tell_news(std::uint64_t now_ns) {
  if (!news_ || now_ns < next_news_ns_ || gathering_.decided()) return;
  news_ = false;
  next_news_ns_ = now_ns + kNewsIntervalNs;
  const std::string text = gathering_.progress();
  for (auto& visitor : visitors_)
    if (visitor->ticket && visitor->connection.all_is_sent())
      visitor->connection.channel().send(FrameType::news, shortened(text));
}

void Host::tell_go() {
  told_go_ = true;
  std::vector<std::byte> body;
  Writer(body).u32(key_round_);
  for (auto& visitor : visitors_)
    if (visitor->ticket) visitor->connection.channel().send(FrameType::go, body);
}

// --- step by step --------------------------------------------------------------------------------

/// The listener comes first, then the visitors.
Awaited Host::awaited() const {
  const bool accepting = now() >= next_accept_ns_;
  Awaited news;
  news.by(deadline_ns_);
  if (news_) news.by(next_news_ns_);
  if (!accepting) news.by(next_accept_ns_);
  news.descriptors.push_back({accepting ? claim_.listener.get() : -1, POLLIN, 0});
  for (const auto& visitor : visitors_) {
    const bool more_to_tell = visitor->ticket && gathering_.complete() && !visitor->told_all;
    const bool nothing_to_send = visitor->connection.all_is_sent() && !more_to_tell;
    news.add(visitor->connection.socket(), nothing_to_send ? POLLIN : POLLIN | POLLOUT);
    if (!visitor->ticket) news.by(visitor->until_ns);
  }
  return news;
}

void Host::look() {
  Awaited news = awaited();
  static_cast<void>(news.is_here());
  for (std::size_t i = 0; i < visitors_.size(); ++i)
    visitors_[i]->readable = (news.descriptors[i + 1].revents & ~POLLOUT) != 0;
}

bool Host::over() const {
  return told_go_ && std::all_of(visitors_.begin(), visitors_.end(), [](const auto& visitor) {
           return !visitor->ticket || visitor->connection.all_is_sent();
         });
}

Roster Host::roster() const {
  Roster roster{.rank = gathering_.rank_of(Gathering::kHost), .members = {}, .key = key_};
  for (Rank rank = 0; rank < plan_.members(); ++rank) {
    const Bytes card = gathering_.card_of(rank);
    roster.members.push_back({plan_.names[rank], {card.begin(), card.end()}});
  }
  return roster;
}

void Host::give_up() {
  std::string text = plan_.group_text() + " did not meet within " +
                     std::to_string(plan_.timeout_ms) + " ms: " + gathering_.progress() +
                     ". This member waited as the host of the meeting at " + plan_.address;
  if (claim_.at.text() != plan_.address) text += " (" + claim_.at.text() + ")";
  if (!last_refusal_.empty()) text += ". " + last_refusal_;
  if (without_proof_ > 0)
    text += ". Turned away: " + std::to_string(without_proof_) +
            " without a proof; the last, from " + last_without_proof_;
  for (auto& visitor : visitors_) {
    if (!visitor->ticket) continue;
    visitor->connection.channel().send(FrameType::give_up, shortened(text));
    static_cast<void>(visitor->connection.write());
  }
  throw Error(text);
}

}  // namespace dunlin::meeting
