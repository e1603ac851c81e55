#include <utility>

#include <dunlin/multicast.hpp>

#include "multicast/participant.hpp"

namespace dunlin {

using multicast::Counters;
using multicast::Delivery;
using multicast::SendResult;

Multicast::Multicast(Group& group, const std::string& subgroup, MulticastOptions options)
    : participant_(std::make_unique<Participant>(group, subgroup, std::move(options))) {
  group.attach(subgroup, *participant_);
}
Multicast::Multicast(Group& group, const std::string& subgroup)
    : Multicast(group, subgroup, MulticastOptions()) {}
Multicast::Multicast(std::unique_ptr<Participant> participant)
    : participant_(std::move(participant)) {}
std::unique_ptr<Multicast> Multicast::join(Group& group, const std::string& subgroup,
                                           MulticastOptions options, SubgroupJoin join) {
  auto participant = std::make_unique<Participant>(group, subgroup, std::move(options));
  participant->join(std::move(join));
  return std::unique_ptr<Multicast>(new Multicast(std::move(participant)));
}
Multicast::~Multicast() = default;

std::span<std::byte> Multicast::prepare(std::size_t bytes) noexcept {
  return participant_->prepare(bytes);
}
void Multicast::commit() noexcept { participant_->commit(); }
SendResult Multicast::send(std::span<const std::byte> message) {
  return participant_->send(message);
}
std::size_t Multicast::largest_in_place() const noexcept {
  return participant_->largest_in_place();
}
void Multicast::on_delivery(multicast::Upcall upcall) {
  participant_->on_delivery(std::move(upcall));
}
std::optional<Delivery> Multicast::next() { return participant_->next(); }
void Multicast::on_state(Save save, Load load) {
  participant_->on_state(std::move(save), std::move(load));
}
bool Multicast::joined() const noexcept { return participant_->joined(); }
void Multicast::set_sends(bool sends) { participant_->set_sends(sends); }
void Multicast::leave() { participant_->leave(); }
bool Multicast::acknowledged() { return participant_->acknowledged(); }
bool Multicast::hand_over(std::uint32_t timeout_ms) noexcept {
  return participant_->hand_over_at_end(timeout_ms);
}
bool Multicast::left() const noexcept { return participant_->has_left(); }
const std::string& Multicast::why_left() const noexcept { return participant_->why_left(); }
const std::string& Multicast::why_waiting() const noexcept { return participant_->why_waiting(); }
void Multicast::on_members(MembersHandler handler) { participant_->on_members(std::move(handler)); }
const Subgroup& Multicast::subgroup() const noexcept { return participant_->subgroup(); }
void Multicast::on_replay(multicast::ReplayUpcall upcall, Load load_logged) {
  participant_->on_replay(std::move(upcall), std::move(load_logged));
}
multicast::LogPosition Multicast::log_start() const { return participant_->log_start(); }
multicast::LogPosition Multicast::log_end() const { return participant_->log_end(); }
std::uint64_t Multicast::log_record() const { return participant_->log_record(); }
std::shared_ptr<multicast::LogCursor> Multicast::read_log(multicast::LogPosition at) const {
  return participant_->read_log(std::move(at));
}
void Multicast::keep_log_from(std::function<std::uint64_t()> first_record) {
  participant_->keep_log_from(std::move(first_record));
}
std::vector<std::string> Multicast::log_notices() const { return participant_->log_notices(); }
Counters Multicast::counters() const noexcept { return participant_->counters(); }
void Multicast::each_table(const std::function<void(const TableCore&)>& look) const {
  participant_->each_table(look);
}

}  // namespace dunlin
