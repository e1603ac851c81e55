#include "fabric/counters/reader.hpp"

#include <algorithm>

#include <dunlin/fabric/memory.hpp>

namespace dunlin {

using counter_page::Record;

namespace {

/// Reads a counter; nothing if its place is free, is given to another counter meanwhile, or is
/// damaged.
std::optional<CounterView> read_counter(const counter_page::Page& page, const Record& shared) {
  const std::uint64_t serial = memory::load(shared.serial);
  if (serial == 0) return std::nullopt;
  Record copy;
  memory::fetch(&copy, &shared, sizeof copy);
  const bool is_sound = copy.words > 0 && copy.words <= counter_page::kWords &&
                        copy.first_word <= counter_page::kWords - copy.words &&
                        copy.name_bytes <= copy.name.size() &&
                        copy.labels_bytes <= copy.labels.size() &&
                        copy.kind <= static_cast<std::uint8_t>(CounterKind::level) &&
                        copy.unit <= static_cast<std::uint8_t>(CounterUnit::nanoseconds);
  if (!is_sound) return std::nullopt;
  CounterView view{.serial = serial,
                   .name = std::string(copy.name.data(), copy.name_bytes),
                   .labels = std::string(copy.labels.data(), copy.labels_bytes),
                   .kind = static_cast<CounterKind>(copy.kind),
                   .unit = static_cast<CounterUnit>(copy.unit)};
  for (std::uint32_t i = 0; i < copy.words; ++i)
    view.words.push_back(memory::load(page.values[copy.first_word + i]));
  if (memory::load(shared.serial) != serial) return std::nullopt;
  return view;
}

}  // namespace

std::string_view CounterView::layer() const noexcept {
  return std::string_view(name).substr(0, std::min(name.find('.'), name.size()));
}

std::string_view CounterView::short_name() const noexcept {
  const std::size_t dot = name.find('.');
  return dot == std::string::npos ? name : std::string_view(name).substr(dot + 1);
}

std::vector<std::pair<std::string_view, std::string_view>> CounterView::split_labels() const {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  for (std::string_view rest = labels; !rest.empty();) {
    const std::string_view label = rest.substr(0, std::min(rest.find('\n'), rest.size()));
    rest.remove_prefix(std::min(label.size() + 1, rest.size()));
    const std::size_t equals = std::min(label.find('='), label.size());
    all.emplace_back(label.substr(0, equals), label.substr(std::min(equals + 1, label.size())));
  }
  return all;
}

std::optional<std::vector<CounterView>> read_counters(std::span<const std::byte> memory) {
  const bool aligned =
      reinterpret_cast<std::uintptr_t>(memory.data()) % alignof(counter_page::Page) == 0;
  if (!aligned || memory.size() < sizeof(counter_page::Page)) return std::nullopt;
  const auto& page = *reinterpret_cast<const counter_page::Page*>(memory.data());
  if (memory::load(page.magic) != counter_page::kMagic ||
      memory::load(page.version) != counter_page::kVersion)
    return std::nullopt;
  std::vector<CounterView> all;
  for (const Record& record : page.records)
    if (auto view = read_counter(page, record)) all.push_back(std::move(*view));
  std::ranges::sort(all, {}, &CounterView::serial);
  return all;
}

}  // namespace dunlin
