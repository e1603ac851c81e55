#include "group/subgroup_message.hpp"

#include <utility>

#include <dunlin/limits.hpp>

#include "fabric/bytes.hpp"

namespace dunlin::group {
namespace {

using Kind = SubgroupMessage::Kind;

// docs/formats/group-control.md
static_assert(static_cast<std::uint32_t>(Kind::ask) == 0);
static_assert(static_cast<std::uint32_t>(Kind::report) == 1);
static_assert(static_cast<std::uint32_t>(Kind::request) == 2);
static_assert(static_cast<std::uint32_t>(Kind::wedge) == 3);
static_assert(static_cast<std::uint32_t>(Kind::wedged) == 4);
static_assert(static_cast<std::uint32_t>(Kind::propose) == 5);
static_assert(static_cast<std::uint32_t>(Kind::refused) == 6);
static_assert(static_cast<std::uint32_t>(Kind::want) == 7);
static_assert(static_cast<std::uint32_t>(Kind::state) == 8);
static_assert(static_cast<std::uint32_t>(Kind::parted) == 9);
static_assert(static_cast<std::uint32_t>(Kind::accepted) == 10);
static_assert(static_cast<std::uint32_t>(Kind::decide) == 11);

// These are the bits of a word in a SubgroupReport.
constexpr std::uint32_t kWantsIn = 1;
constexpr std::uint32_t kSends = 2;
constexpr std::uint32_t kRemoves = 4;
constexpr std::uint32_t kLacksState = 8;
constexpr std::uint32_t kAccepted = 16;

void write_words(Writer& writer, const std::vector<std::uint64_t>& words) {
  writer.u32(static_cast<std::uint32_t>(words.size()));
  for (const std::uint64_t word : words) writer.u64(word);
}
[[nodiscard]] std::vector<std::uint64_t> read_words(Reader& reader) {
  std::vector<std::uint64_t> words;
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left)
    words.push_back(reader.u64());
  return words;
}

/// Writes a set up to the last word that has a bit.
void write_set(Writer& writer, const MemberSet& set) {
  std::uint32_t words = MemberSet::kWords;
  while (words > 0 && set.word(words - 1) == 0) --words;
  writer.u32(words);
  for (std::uint32_t i = 0; i < words; ++i) writer.u64(set.word(i));
}
/// Reads a set. A message with more words than a set can have is read no further.
[[nodiscard]] MemberSet read_set(Reader& reader) {
  MemberSet set;
  const std::uint32_t words = reader.u32();
  if (words > MemberSet::kWords) static_cast<void>(reader.bytes(SIZE_MAX));
  for (std::uint32_t i = 0; i < words && reader.good(); ++i) set.set_word(i, reader.u64());
  return set;
}

void write_ends(Writer& writer, const std::vector<SubgroupEnd>& ends) {
  writer.u32(static_cast<std::uint32_t>(ends.size()));
  for (const SubgroupEnd& end : ends) {
    writer.u64(end.generation);
    write_words(writer, end.trim);
  }
}
[[nodiscard]] std::vector<SubgroupEnd> read_ends(Reader& reader) {
  std::vector<SubgroupEnd> ends;
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
    const std::uint64_t generation = reader.u64();
    ends.push_back({generation, read_words(reader)});
  }
  return ends;
}

void write_report(Writer& writer, const SubgroupReport& report) {
  writer.text(report.name);
  writer.u32(report.attempt);
  writer.u32((report.wants_in ? kWantsIn : 0) | (report.sends ? kSends : 0) |
             (report.removes ? kRemoves : 0) | (report.lacks_state ? kLacksState : 0) |
             (report.accepted ? kAccepted : 0));
  writer.text(report.options);
  writer.text(report.label);
  writer.u32(static_cast<std::uint32_t>(report.founders.size()));
  for (const std::string& founder : report.founders) writer.text(founder);
  writer.u64(report.generation);
  write_set(writer, report.members);
  write_words(writer, report.received);
  write_ends(writer, report.ends);
}
[[nodiscard]] SubgroupReport read_report(Reader& reader) {
  SubgroupReport report{.name = reader.text(), .attempt = reader.u32()};
  const std::uint32_t bits = reader.u32();
  report.wants_in = (bits & kWantsIn) != 0;
  report.sends = (bits & kSends) != 0;
  report.removes = (bits & kRemoves) != 0;
  report.lacks_state = (bits & kLacksState) != 0;
  report.accepted = (bits & kAccepted) != 0;
  report.options = reader.text();
  report.label = reader.text();
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left)
    report.founders.push_back(reader.text());
  report.generation = reader.u64();
  report.members = read_set(reader);
  report.received = read_words(reader);
  report.ends = read_ends(reader);
  return report;
}

void write_change(Writer& writer, const SubgroupChange& change) {
  writer.text(change.name);
  writer.u64(change.generation);
  write_set(writer, change.members);
  write_set(writer, change.stay);
  write_set(writer, change.senders);
  write_set(writer, change.anew);
  writer.u32(change.had_members ? 1 : 0);
  writer.text(change.options);
  writer.text(change.label);
  write_ends(writer, change.ends);
}
[[nodiscard]] SubgroupChange read_change(Reader& reader) {
  SubgroupChange change{.name = reader.text(), .generation = reader.u64()};
  change.members = read_set(reader);
  change.stay = read_set(reader);
  change.senders = read_set(reader);
  change.anew = read_set(reader);
  change.had_members = reader.u32() != 0;
  change.options = reader.text();
  change.label = reader.text();
  change.ends = read_ends(reader);
  return change;
}

/// Whether name and text are valid; a message with invalid ones is read no further.
[[nodiscard]] bool fits(const std::string& name, const std::string& options,
                        const std::string& label) {
  return !name.empty() && name.size() <= kMaxSubgroupNameBytes &&
         options.size() <= kMaxSubgroupTextBytes && label.size() <= kMaxSubgroupTextBytes;
}

}  // namespace

std::vector<std::byte> encode(SubgroupMessage message) {
  std::vector<std::byte> bytes;
  Writer writer(bytes);
  writer.u32(static_cast<std::uint32_t>(message.kind));
  writer.text(message.name);
  writer.u64(message.generation);
  writer.u32(message.attempt);
  writer.u32(message.good ? 1 : 0);
  writer.text(message.text);
  write_words(writer, message.received);
  writer.u32(static_cast<std::uint32_t>(message.reports.size()));
  for (const SubgroupReport& report : message.reports) write_report(writer, report);
  writer.u32(static_cast<std::uint32_t>(message.changes.size()));
  for (const SubgroupChange& change : message.changes) write_change(writer, change);
  return joined(bytes, std::move(message.bytes));
}

std::optional<SubgroupMessage> decode_subgroup(std::vector<std::byte> bytes) {
  Reader reader(bytes);
  const std::uint32_t kind = reader.u32();
  if (kind > static_cast<std::uint32_t>(Kind::decide)) return std::nullopt;
  SubgroupMessage message{.kind = static_cast<Kind>(kind)};
  message.name = reader.text();
  message.generation = reader.u64();
  message.attempt = reader.u32();
  message.good = reader.u32() != 0;
  message.text = reader.text();
  message.received = read_words(reader);
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
    message.reports.push_back(read_report(reader));
    const SubgroupReport& report = message.reports.back();
    if (!fits(report.name, report.options, report.label)) return std::nullopt;
  }
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
    message.changes.push_back(read_change(reader));
    const SubgroupChange& change = message.changes.back();
    if (!fits(change.name, change.options, change.label)) return std::nullopt;
  }
  const std::size_t rest = reader.rest().size();
  if (!reader.good()) return std::nullopt;
  message.bytes = tail_of(std::move(bytes), rest);
  return message;
}

}  // namespace dunlin::group
