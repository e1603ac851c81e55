#include "group/control_message.hpp"

#include <algorithm>
#include <utility>

#include "fabric/bytes.hpp"

namespace dunlin::group {
namespace {

using Kind = ControlMessage::Kind;

// docs/formats/group-control.md
static_assert(static_cast<std::uint32_t>(Kind::hello) == 0);
static_assert(static_cast<std::uint32_t>(Kind::refused) == 1);
static_assert(static_cast<std::uint32_t>(Kind::news) == 2);
static_assert(static_cast<std::uint32_t>(Kind::plan) == 3);
static_assert(static_cast<std::uint32_t>(Kind::void_plan) == 4);
static_assert(static_cast<std::uint32_t>(Kind::formed) == 5);
static_assert(static_cast<std::uint32_t>(Kind::failed) == 6);
static_assert(static_cast<std::uint32_t>(Kind::welcome) == 7);
static_assert(static_cast<std::uint32_t>(Kind::want) == 8);
static_assert(static_cast<std::uint32_t>(Kind::state) == 9);
static_assert(static_cast<std::uint32_t>(Kind::admitted) == 10);
static_assert(static_cast<std::uint32_t>(Kind::enter) == 11);
static_assert(static_cast<std::uint32_t>(Kind::subgroups) == 12);
static_assert(sizeof(PlanId) == 8 && sizeof(Rank) == 4);

void write(Writer& writer, std::span<const std::byte> bytes) {
  writer.u32(static_cast<std::uint32_t>(bytes.size()));
  writer.bytes(bytes);
}

[[nodiscard]] std::vector<std::byte> read(Reader& reader) {
  const auto bytes = reader.bytes(reader.u32());
  return {bytes.begin(), bytes.end()};
}

}  // namespace

/// Encodes every field, whatever the kind: control messages are few.
std::vector<std::byte> encode(ControlMessage message) {
  std::vector<std::byte> bytes;
  Writer writer(bytes);
  writer.u32(static_cast<std::uint32_t>(message.kind));
  writer.text(message.name);
  writer.text(message.text);
  writer.u64(message.plan.id);
  const Admission& admission = message.plan.admission;
  writer.u32(admission.first);
  writer.u32(static_cast<std::uint32_t>(admission.newcomers.size()));
  for (const Admission::Newcomer& newcomer : admission.newcomers) {
    writer.text(newcomer.name);
    write(writer, newcomer.endpoint);
  }
  writer.bytes(admission.key);
  writer.u32(static_cast<std::uint32_t>(message.members.size()));
  for (const Entry::Member& member : message.members) {
    writer.u32(member.rank);
    writer.text(member.name);
    write(writer, member.endpoint);
  }
  writer.u64(message.id);
  writer.u64(message.view);
  writer.u32(message.count);
  writer.u32(message.good ? 1 : 0);
  writer.u32(static_cast<std::uint32_t>(message.ranks.size()));
  for (const Rank rank : message.ranks) writer.u32(rank);
  writer.u32(message.founders);
  return joined(bytes, std::move(message.bytes));
}

std::optional<ControlMessage> decode(std::vector<std::byte> bytes) {
  Reader reader(bytes);
  const std::uint32_t kind = reader.u32();
  if (kind > static_cast<std::uint32_t>(ControlMessage::Kind::subgroups)) return std::nullopt;
  ControlMessage message{.kind = static_cast<ControlMessage::Kind>(kind)};
  message.name = reader.text();
  message.text = reader.text();
  message.plan.id = reader.u64();
  Admission& admission = message.plan.admission;
  admission.first = reader.u32();
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
    std::string name = reader.text();
    admission.newcomers.push_back({std::move(name), read(reader)});
  }
  std::ranges::copy(reader.bytes(kAdmissionKeyBytes), admission.key.begin());
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
    const Rank rank = reader.u32();
    std::string name = reader.text();
    message.members.push_back({rank, std::move(name), read(reader)});
  }
  message.id = reader.u64();
  message.view = reader.u64();
  message.count = reader.u32();
  message.good = reader.u32() != 0;
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left)
    message.ranks.push_back(reader.u32());
  message.founders = reader.u32();
  const std::size_t rest = reader.rest().size();
  if (!reader.good()) return std::nullopt;
  message.bytes = tail_of(std::move(bytes), rest);
  return message;
}

}  // namespace dunlin::group
