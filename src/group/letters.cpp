#include "group/letters.hpp"

#include "fabric/bytes.hpp"

namespace dunlin::group {
namespace {

using Kind = Letter::Kind;

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

/// Every field, whatever the kind: letters are few.
std::vector<std::byte> encode(const Letter& letter) {
  std::vector<std::byte> bytes;
  Writer writer(bytes);
  writer.u32(static_cast<std::uint32_t>(letter.kind));
  writer.text(letter.name);
  writer.text(letter.text);
  writer.u64(letter.plan.id);
  writer.text(letter.plan.fabric);
  writer.text(letter.plan.address);
  writer.u32(static_cast<std::uint32_t>(letter.plan.members.size()));
  for (const std::string& member : letter.plan.members) writer.text(member);
  writer.u32(letter.plan.joiners);
  writer.u64(letter.id);
  writer.u64(letter.view);
  writer.u32(letter.count);
  writer.u32(letter.good ? 1 : 0);
  writer.u32(static_cast<std::uint32_t>(letter.ranks.size()));
  for (const Rank rank : letter.ranks) writer.u32(rank);
  writer.bytes(letter.bytes);
  return bytes;
}

std::optional<Letter> decode(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const std::uint32_t kind = reader.u32();
  if (kind > static_cast<std::uint32_t>(Letter::Kind::state)) return std::nullopt;
  Letter letter{.kind = static_cast<Letter::Kind>(kind)};
  letter.name = reader.text();
  letter.text = reader.text();
  letter.plan.id = reader.u64();
  letter.plan.fabric = reader.text();
  letter.plan.address = reader.text();
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left)
    letter.plan.members.push_back(reader.text());
  letter.plan.joiners = reader.u32();
  letter.id = reader.u64();
  letter.view = reader.u64();
  letter.count = reader.u32();
  letter.good = reader.u32() != 0;
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left)
    letter.ranks.push_back(reader.u32());
  const auto rest = reader.rest();
  letter.bytes.assign(rest.begin(), rest.end());
  if (!reader.good() || letter.plan.joiners > letter.plan.members.size()) return std::nullopt;
  return letter;
}

}  // namespace dunlin::group
