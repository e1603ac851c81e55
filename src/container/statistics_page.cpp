#include "container/statistics_page.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <dunlin/fabric/memory.hpp>

namespace dunlin::container {

namespace {

constexpr std::uint64_t kLookNs = 10'000'000;

}  // namespace

// --- a container's line --------------------------------------------------------------------------

PageLine::PageLine(StatisticsPage& page, container_page::Kind kind, const std::string& name,
                   std::uint64_t capacity, Look look)
    : page_(page), kind_(kind), name_(name), capacity_(capacity), look_(std::move(look)) {
  page_.add(*this);
}

void PageLine::look() noexcept {
  if (look_ == nullptr) return;
  const std::uint64_t entries = look_();
  if (entries == entries_) return;
  entries_ = entries;
  changed();
}

// --- the page ------------------------------------------------------------------------------------

StatisticsPage::StatisticsPage(Fabric& fabric, std::uint32_t channel)
    : fabric_(fabric),
      region_(
          fabric.publish({.name = std::string(container_page::kPrefix) + std::to_string(channel),
                          .bytes = sizeof(container_page::Page)})),
      page_(reinterpret_cast<container_page::Page*>(region_.memory().data())) {
  page_->version = container_page::kVersion;
  page_->slots_count = container_page::kMaxShown;
  memory::store(page_->magic, container_page::kMagic);
}

void StatisticsPage::add(PageLine& line) {
  lines_.push_back(&line);
  memory::store(page_->containers, lines_.size());
  note_change();
  const auto free = std::find(shown_.begin(), shown_.end(), nullptr);
  if (free == shown_.end()) return;
  *free = &line;
  line.slot_ = static_cast<std::size_t>(free - shown_.begin());
  container_page::Slot& slot = page_->slots[line.slot_];
  const std::size_t bytes = std::min(line.name_.size(), slot.name.size());
  slot.name_bytes = static_cast<std::uint32_t>(bytes);
  std::memcpy(slot.name.data(), line.name_.data(), bytes);
  memory::store(slot.entries, line.entries_);
  memory::store(slot.capacity, line.capacity_);
  for (std::uint64_t& calls : slot.calls) memory::store(calls, 0);
  memory::store(slot.kind, static_cast<std::uint32_t>(line.kind_));
}

void StatisticsPage::remove(PageLine& line) noexcept {
  std::erase(lines_, &line);
  memory::store(page_->containers, lines_.size());
  if (line.slot_ == PageLine::kNoSlot) return;
  memory::store(page_->slots[line.slot_].kind,
                static_cast<std::uint32_t>(container_page::Kind::none));
  shown_[line.slot_] = nullptr;
}

void StatisticsPage::show(std::size_t done, std::size_t in_flight) noexcept {
  const std::uint64_t now = fabric_.recent_ns();
  if (now - looked_at_ns_ >= kLookNs) {
    looked_at_ns_ = now;
    for (PageLine* const line : lines_) line->look();
  }
  if (!schedule_.is_due(done, [&] { return std::uint64_t{in_flight}; })) return;
  memory::store(page_->in_flight, in_flight);
  for (PageLine* const line : lines_) {
    if (!line->is_changed_ || line->slot_ == PageLine::kNoSlot) continue;
    line->is_changed_ = false;
    container_page::Slot& slot = page_->slots[line->slot_];
    memory::store(slot.entries, line->entries_);
    memory::store(slot.capacity, line->capacity_);
    for (std::size_t way = 0; way < container_page::kWays; ++way)
      memory::store(slot.calls[way], line->calls_[way]);
  }
}

}  // namespace dunlin::container
