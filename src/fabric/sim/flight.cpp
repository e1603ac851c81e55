#include "fabric/sim/flight.hpp"

namespace dunlin::sim {

void Flight::make_room() {
  if (offset % kCacheLineBytes + bytes <= small_.size()) {
    buffer_at_ = small_.data();
    return;
  }
  large_.resize(bytes + 2 * kCacheLineBytes);
  const auto address = reinterpret_cast<std::uintptr_t>(large_.data());
  buffer_at_ = large_.data() + (kCacheLineBytes - address % kCacheLineBytes) % kCacheLineBytes;
}

void FlightList::push_back(Flight& flight) noexcept {
  flight.next = nullptr;
  if (tail_ == nullptr) {
    head_ = tail_ = &flight;
  } else {
    tail_->next = &flight;
    tail_ = &flight;
  }
}

Flight& FlightList::pop_front() noexcept {
  Flight& first = *head_;
  head_ = first.next;
  if (head_ == nullptr) tail_ = nullptr;
  first.next = nullptr;
  return first;
}

void FlightList::insert_by_order(Flight& flight) noexcept {
  Flight** place = &head_;
  while (*place != nullptr && (*place)->order < flight.order) place = &(*place)->next;
  flight.next = *place;
  *place = &flight;
  if (flight.next == nullptr) tail_ = &flight;
}

FlightList FlightList::take_all() noexcept {
  const FlightList all = *this;
  head_ = tail_ = nullptr;
  return all;
}

Flight& FlightPool::take(std::uint32_t from) {
  if (free_ == nullptr) {
    free_ = &all_.emplace_back();
    free_->place = owners_.size();
    owners_.push_back(kNobody);
  }
  Flight& flight = *free_;
  free_ = flight.next;
  flight.next = nullptr;
  flight.from = owners_[flight.place] = from;
  return flight;
}

void FlightPool::release(Flight& flight) noexcept {
  owners_[flight.place] = kNobody;
  flight.forget();
  flight.next = free_;
  free_ = &flight;
}

}  // namespace dunlin::sim
