#include "fabric/counters/counters.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "fabric/core/core.hpp"

namespace dunlin {

using counter_page::Record;

namespace {

/// The index where so many words in a row are free; kWords if there is no such index.
std::uint32_t find_room(const std::bitset<counter_page::kWords>& taken, std::uint32_t words) {
  std::uint32_t free = 0;
  for (std::uint32_t i = 0; i < taken.size(); ++i) {
    free = taken[i] ? 0 : free + 1;
    if (free == words) return i + 1 - words;
  }
  return counter_page::kWords;
}

template <std::size_t Bytes>
std::uint8_t put_text(std::array<char, Bytes>& to, std::string_view text) {
  const std::string_view part = text.substr(0, Bytes);
  std::memcpy(to.data(), part.data(), part.size());
  return static_cast<std::uint8_t>(part.size());
}

}  // namespace

// --- the pages -----------------------------------------------------------------------------------

CounterPages::Page& CounterPages::add_page() {
  Page page;
  try {
    page.region = fabric_.publish(
        {.name = std::string(counter_page::kRegion), .bytes = sizeof(counter_page::Page)});
    page.content = reinterpret_cast<counter_page::Page*>(page.region.memory().data());
  } catch (const Error&) {  // a member must not fail because it cannot be observed
    page.unseen = std::make_unique<counter_page::Page>();
    page.content = page.unseen.get();
  }
  page.content->version = counter_page::kVersion;
  page.content->counters = counter_page::kCounters;
  page.content->words = counter_page::kWords;
  memory::store(page.content->magic, counter_page::kMagic);
  return pages_.emplace_back(std::move(page));
}

std::optional<CounterPages::Added> CounterPages::add_to(
    Page& page, Record shape, std::span<const std::uint64_t> first) noexcept {
  if (page.counters == counter_page::kCounters ||
      counter_page::kWords - page.taken.count() < shape.words)
    return std::nullopt;
  shape.first_word = find_room(page.taken, shape.words);
  if (shape.first_word == counter_page::kWords) return std::nullopt;
  auto* const free = std::ranges::find(page.runs, 0U, &Page::Run::words);
  *free = {.first = shape.first_word, .words = shape.words};
  for (std::uint32_t i = 0; i < shape.words; ++i) {
    page.taken.set(shape.first_word + i);
    memory::store(page.content->values[shape.first_word + i], i < first.size() ? first[i] : 0);
  }
  ++page.counters;
  Record& record = page.content->records[static_cast<std::size_t>(free - page.runs.begin())];
  shape.serial = 0;
  memory::place(&record, &shape, sizeof shape);
  memory::store(record.serial, ++serials_);
  return Added{.record = &record,
               .words = std::span(page.content->values).subspan(shape.first_word, shape.words)};
}

CounterPages::Added CounterPages::add(Record shape, std::string_view name, std::string_view labels,
                                      std::span<const std::uint64_t> first) {
  DUNLIN_ASSERT_ALWAYS(shape.words > 0 && shape.words <= counter_page::kWords, "it fits in a page");
  shape.name_bytes = put_text(shape.name, name);
  shape.labels_bytes = put_text(shape.labels, labels);
  for (Page& page : pages_)
    if (const auto added = add_to(page, shape, first)) return *added;
  return add_to(add_page(), shape, first).value();
}

void CounterPages::remove(Record& record) noexcept {
  const auto page = std::ranges::find_if(pages_, [&](const Page& each) {
    const auto& all = each.content->records;
    return !std::less<>()(&record, all.data()) && std::less<>()(&record, all.data() + all.size());
  });
  DUNLIN_ASSERT_ALWAYS(page != pages_.end(), "a counter is on a page");
  memory::store(record.serial, 0);
  const auto index = static_cast<std::size_t>(&record - page->content->records.data());
  const Page::Run run = std::exchange(page->runs[index], {});
  for (std::uint32_t i = 0; i < run.words; ++i) page->taken.reset(run.first + i);
  --page->counters;
}

std::vector<std::span<const std::byte>> CounterPages::pages() const {
  std::vector<std::span<const std::byte>> all;
  all.reserve(pages_.size());
  for (const Page& page : pages_) all.push_back(std::as_bytes(std::span(page.content, 1)));
  return all;
}

// --- the counters of an object -------------------------------------------------------------------

CounterSet::CounterSet(Fabric& fabric, std::string labels)
    : pages_(FabricCore::counters_of(fabric)), labels_(std::move(labels)) {}

CounterSet::~CounterSet() {
  for (const auto& [record, words] : added_) pages_.remove(*record);
}

SharedCounter CounterSet::add(std::string_view name, CounterKind kind, CounterUnit unit) {
  return SharedCounter(add_words(name, 1, kind, unit).front());
}

std::span<std::uint64_t> CounterSet::add_words(std::string_view name, std::uint32_t words,
                                               CounterKind kind, CounterUnit unit) {
  added_.reserve(added_.size() + 1);
  const CounterPages::Added added = pages_.add({.words = words,
                                                .kind = static_cast<std::uint8_t>(kind),
                                                .unit = static_cast<std::uint8_t>(unit)},
                                               name, labels_);
  added_.emplace_back(added.record, added.words);
  return added.words;
}

std::map<std::string, std::uint64_t> CounterSet::values() const {
  std::map<std::string, std::uint64_t> values;
  for (const auto& [record, words] : added_) {
    const std::uint64_t value = memory::load(words.front());
    if (words.size() != 1 || value == SharedCounter::kUnknown) continue;
    const std::string_view name(record->name.data(), record->name_bytes);
    values.emplace(name.substr(name.find('.') + 1), value);
  }
  return values;
}

}  // namespace dunlin
