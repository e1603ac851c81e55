#include "group/control_message.hpp"

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
static_assert(sizeof(PlanId) == 8 && sizeof(Rank) == 4);

}  // namespace

/// Every field, whatever the kind: control messages are few.
std::vector<std::byte> encode(const ControlMessage& message) {
  std::vector<std::byte> bytes;
  Writer writer(bytes);
  writer.u32(static_cast<std::uint32_t>(message.kind));
  writer.text(message.name);
  writer.text(message.text);
  writer.u64(message.plan.id);
  writer.text(message.plan.fabric);
  writer.text(message.plan.address);
  writer.u32(static_cast<std::uint32_t>(message.plan.members.size()));
  for (const std::string& member : message.plan.members) writer.text(member);
  writer.u32(message.plan.joiners);
  writer.u64(message.id);
  writer.u64(message.view);
  writer.u32(message.count);
  writer.u32(message.good ? 1 : 0);
  writer.u32(static_cast<std::uint32_t>(message.ranks.size()));
  for (const Rank rank : message.ranks) writer.u32(rank);
  writer.bytes(message.bytes);
  return bytes;
}

std::optional<ControlMessage> decode(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const std::uint32_t kind = reader.u32();
  if (kind > static_cast<std::uint32_t>(ControlMessage::Kind::state)) return std::nullopt;
  ControlMessage message{.kind = static_cast<ControlMessage::Kind>(kind)};
  message.name = reader.text();
  message.text = reader.text();
  message.plan.id = reader.u64();
  message.plan.fabric = reader.text();
  message.plan.address = reader.text();
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left)
    message.plan.members.push_back(reader.text());
  message.plan.joiners = reader.u32();
  message.id = reader.u64();
  message.view = reader.u64();
  message.count = reader.u32();
  message.good = reader.u32() != 0;
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left)
    message.ranks.push_back(reader.u32());
  const auto rest = reader.rest();
  message.bytes.assign(rest.begin(), rest.end());
  if (!reader.good() || message.plan.joiners > message.plan.members.size()) return std::nullopt;
  return message;
}

}  // namespace dunlin::group
