#include "store/counters.hpp"

#include <dunlin/fabric/memory.hpp>

#include "store/state.hpp"

namespace dunlin::store {

void PartCounters::look(const State& state) noexcept {
  census_.count_piece(state);
  keys_.set(state.own_count(kKeysAt));
  value_bytes_.set(state.own_count(kValueBytesAt));
  const Census::Memory& memory = census_.memory();
  memory_bytes_.set(memory.bytes);
  held_bytes_.set(memory.held);
  used_bytes_.set(memory.used);
  const std::uint64_t limit = state.options.limit_bytes;
  limit_bytes_.set(limit == 0 ? SharedCounter::kUnknown : limit);
  evictions_.set(state.evictions());
  main_slots_.set(state.main_headers() * kSlots);
  main_slots_used_.set(census_.slots().used);
  indirect_headers_.set(memory.indirect_headers);
  indirect_headers_free_.set(memory.indirect_headers_free);
  locked_chains_.set(census_.slots().locked_chains);
}

SharedCounter& State::counter_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::put:
    case Kind::insert:
    case Kind::replace:
    case Kind::compare_and_set:
    case Kind::update:
      return counters.puts;
    case Kind::erase:
      return counters.erases;
    case Kind::expire:
      return counters.expiries;
    case Kind::evict:
    case Kind::reap:
    case Kind::restore:
    case Kind::copy_put:
    case Kind::copy_erase:
      break;
  }
  return counters.others;
}

}  // namespace dunlin::store
