#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <dunlin/fabric.hpp>

#include "fabric/sim/budget.hpp"
#include "fabric/sim/endpoint.hpp"
#include "fabric/sim/flight.hpp"
#include "fabric/sim/sim_backend.hpp"
#include "ring.hpp"

namespace dunlin::sim {

struct Simulation;
class Cpu;

/// One direction between two nodes, whatever fabrics they share.
struct Path {
  double distance = 1.0;  // latency, as a multiple of the profile's
  double pace = 1.0;      // time for a byte, as a multiple of a port's
  bool cut = false;
  Ticks wire_free = 0;
  Ticks last_arrival = 0;  // nothing arrives before, if placement is ordered
  Ticks receive_free = 0;
  Ticks word_busy_until = 0;  // an earlier atomic waits for its word, and what follows behind it
};

/// One direction between two members of a fabric.
struct Link {
  Link(std::uint64_t number, EndpointId sender, EndpointId receiver, Path& between)
      : index(number), from(sender), to(receiver), path(between) {}

  std::uint64_t index;  // numbers all links of the world
  EndpointId from;
  EndpointId to;
  Path& path;
  bool broken = false;  // for ever: one end has given the other up
  bool closed = false;  // whether the sender gave the other up
  bool silent = false;  // no heartbeat comes through
  bool retrying = false;
  std::uint32_t silence_generation = 0;

  FlightList stalled;  // not acknowledged, nor about to be
  FlightList held;     // signals that arrived before an earlier operation
  FlightList unheard;  // messages on a channel without a handler
  std::uint64_t next_order = 0;
  std::uint64_t first_missing = 0;  // all operations of a lower order are placed
  Ring<char> placed_beyond;         // from first_missing on

  Budget slots;
  Budget message_ring;
};

/// The words of a NIC's memory on which atomics were executed lately.
class BusyWords {
 public:
  /// Returns when the atomic begins: not before `earliest`, nor before its word is free. The word
  /// is free again `gap` later.
  [[nodiscard]] Ticks begin(const Flight& atomic, Ticks now, Ticks earliest, Ticks gap);

 private:
  using Word = std::tuple<EndpointId, std::uint64_t, std::uint64_t>;  // with region and offset
  static constexpr std::size_t kFirstLimit = 256;

  std::map<Word, Ticks> free_at_;
  std::size_t limit_ = kFirstLimit;  // with so many words, those that are free are forgotten
};

struct Nic {
  FlightList outbox;     // posted by the CPU, but not sent
  FlightList responses;  // reads to be answered
  Ticks transmit_free = 0;
  Ticks transmit_at = kNever;  // when the transmit occurrence that counts is due
  Ticks receive_free = 0;
  Ticks atomic_free = 0;
  BusyWords words;  // used if the profile has a gap between atomics on one word
  Ticks died_at = kNever;
  [[nodiscard]] bool dead() const noexcept { return died_at != kNever; }
};

/// The NICs and the links between them. A flight passes post, transmit, arrive, step (once for each
/// run of lines) and acknowledge; a read is fetched at its target, and arrives and steps once more
/// on its way back. A flight that cannot go on is stalled until its link is healed or given up.
class Network {
 public:
  explicit Network(Simulation& world);

  void add_node();
  /// Makes the roster of a fabric of these nodes.
  [[nodiscard]] std::shared_ptr<Roster> add_endpoints(const std::string& name,
                                                      const std::vector<Rank>& nodes);
  /// The endpoint of this rank at this node: the first call makes it.
  EndpointId add_endpoint(const std::shared_ptr<Roster>& roster, Rank rank, Rank node);
  [[nodiscard]] std::shared_ptr<Roster> roster_of(EndpointId endpoint) const noexcept {
    return endpoints_[endpoint].roster;
  }
  [[nodiscard]] bool has_endpoint(EndpointId endpoint) const noexcept {
    return endpoint < endpoints_.size();
  }
  /// Says that the fabric is at the endpoint from now on; a late one gets what has arrived already.
  void endpoint(EndpointId endpoint, SimBackend& fabric);
  void endpoint_late(EndpointId endpoint, SimBackend& fabric);
  /// Says that a newcomer is at the endpoint, and will have a fabric when it has met all.
  void enter(EndpointId endpoint) noexcept { endpoints_[endpoint].entered = true; }
  [[nodiscard]] bool has_entered(EndpointId endpoint) const noexcept {
    return endpoints_[endpoint].entered && !endpoints_[endpoint].gone;
  }
  /// Says that the fabric goes, or was never formed; its peers are told.
  void leave(EndpointId endpoint);
  [[nodiscard]] Rank node_of(EndpointId endpoint) const noexcept {
    return endpoints_[endpoint].node;
  }
  [[nodiscard]] Rank rank_of(EndpointId endpoint) const noexcept {
    return endpoints_[endpoint].rank;
  }
  /// The fabric at the endpoint; null: it is not formed yet, or gone.
  [[nodiscard]] SimBackend* fabric_at(EndpointId endpoint) const noexcept {
    return endpoints_[endpoint].fabric;
  }
  [[nodiscard]] const std::vector<Rank>& left_early(EndpointId endpoint) const {
    return endpoints_[endpoint].left;
  }

  [[nodiscard]] Link& link(EndpointId from, EndpointId to);
  [[nodiscard]] Path& path(Rank from, Rank to);
  [[nodiscard]] Flight& new_flight(EndpointId from) { return pool_.take(from); }

  // --- for fabrics -------------------------------------------------------------------------------
  void post(Flight& flight);
  /// How many flights have been posted so far.
  [[nodiscard]] std::uint64_t posted() const noexcept { return posted_; }
  /// Says that the target's CPU has handled the message.
  void message_handled(Flight& message, Ticks at);
  void execute_atomic(Flight& atomic);
  void retire(Flight& flight);
  /// Retires an arrival that no program is to see; a caller that waits for its result gets none.
  void drop(Flight& flight);
  /// Books an amount of one of the link's budgets as returned at that moment.
  void give_back(Link& link, Budget& budget, std::uint64_t amount, Ticks at);
  void abandon(EndpointId owner, const Completion& completion);
  /// Says that the owner's memory is about to be freed.
  void forget_memory(EndpointId owner, std::span<const std::byte> memory);
  /// Says that the observer gives the peer up: nothing passes between them any more.
  void close(EndpointId observer, EndpointId peer);

  // --- for fabrics that are being formed ---------------------------------------------------------
  /// Whether both NICs work, and nothing between them is cut.
  [[nodiscard]] bool can_meet(Rank one, Rank other);
  [[nodiscard]] Ticks round_trip(Rank one, Rank other);

  // --- faults ------------------------------------------------------------------------------------
  void crash(Rank node);
  void drop_unsent(Rank node);
  void delay_unsent(Rank node, Ticks by);
  void cut(Rank from, Rank to);
  void heal(Rank from, Rank to);
  void slow_link(Rank from, Rank to, double factor);
  /// Must be called when a node's CPU has stopped, paused or resumed.
  void cpu_changed(Rank node);

  // --- occurrences -------------------------------------------------------------------------------
  void on_transmit(Rank node);
  void on_flight(Happening what, Flight& flight);
  void on_retry(std::uint64_t link_index);
  void on_silence(std::uint64_t subject);

 private:
  struct Run {
    std::size_t begin;  // in bytes of the operation
    std::size_t end;
  };

  void schedule(Ticks at, Happening what, Flight& flight);
  void schedule_transmit(Rank node);
  [[nodiscard]] Nic& nic(EndpointId endpoint) { return nics_[endpoints_[endpoint].node]; }
  [[nodiscard]] Cpu& cpu(EndpointId endpoint);
  /// Visits all endpoints of the node, also those that are gone if something may still come from
  /// them.
  template <class Visit>
  void for_each_peer(EndpointId endpoint, Visit visit) {
    const std::shared_ptr<Roster> roster = endpoints_[endpoint].roster;
    for (const EndpointId peer : roster->endpoints)
      if (peer != endpoint && (!endpoints_[peer].gone || has_link(peer, endpoint))) visit(peer);
  }
  [[nodiscard]] bool has_link(EndpointId from, EndpointId to) const noexcept {
    const std::vector<Link*>& row = endpoints_[from].links;
    const std::size_t slot = endpoints_[to].slot;
    return slot < row.size() && row[slot] != nullptr;
  }
  /// Visits each link between the two nodes in this direction, in any fabric.
  template <class Visit>
  void for_each_link(Rank from, Rank to, Visit visit);
  [[nodiscard]] bool unreachable(const Flight& flight);
  void send_farewell(EndpointId from, EndpointId to);
  void hand_over(Flight& flight);
  [[nodiscard]] SimBackend::RemoteMemory target_of(const Flight& flight) const noexcept;
  [[nodiscard]] EndpointId heading_for(const Flight& f) const noexcept {
    return f.responding ? f.from : f.to;
  }
  [[nodiscard]] Link& wire_of(const Flight& f) {
    return f.responding ? link(f.to, f.from) : link(f.from, f.to);
  }
  [[nodiscard]] Ticks now() const noexcept;
  void wake(EndpointId endpoint);

  // These are in nic.cpp.
  void launch(Flight& flight);
  void respond(Flight& flight);
  void travel(Flight& flight, Ticks latency);
  [[nodiscard]] Ticks latency_of(const Flight& flight) const noexcept;
  [[nodiscard]] Ticks jittered(Ticks latency, const Path& path);
  void capture(Flight& flight);
  void arrive(Flight& flight);
  [[nodiscard]] Ticks behind_busy_words(const Flight& flight, Ticks begin);
  [[nodiscard]] Ticks way_back(const Flight& flight);
  void acknowledge_early(Flight& flight);
  void acknowledge_later(Flight& flight);
  void complete(Flight& flight);

  // These are in placement.cpp.
  void step(Flight& flight);
  void step_at_target(Flight& flight);
  void step_at_reader(Flight& flight);
  void place_run(Flight& flight);
  void place(Flight& flight, Run due);
  void accept_read(Flight& flight);
  void fetch(Flight& flight);
  void fetch_run(Flight& flight);
  void number(Flight& flight);
  [[nodiscard]] bool must_wait(Flight& flight);
  void settled(Flight& flight);
  void mark_placed(Link& link, std::uint64_t order);
  void shuffle(Flight& flight);
  [[nodiscard]] std::uint32_t runs_of(const Flight& flight) const noexcept;
  [[nodiscard]] Run run(const Flight& flight, std::uint32_t index) const noexcept;
  [[nodiscard]] std::uint32_t shuffled(const Flight& flight, std::uint32_t step) const noexcept;

  // These are in faults.cpp.
  void stall(Flight& flight);
  void stall_all(FlightList flights);
  void drop_arrived(EndpointId endpoint);
  void retry_stalled(Link& link);
  void retire_all(FlightList flights);
  void fail(Flight& flight);
  void update_silence(Link& link);

  Simulation& world_;
  bool ordered_;  // whether the network itself orders placement
  bool gated_;    // whether the target's NIC holds signals back until their turn
  FlightPool pool_;
  std::uint64_t posted_ = 0;
  std::vector<Nic> nics_;                                  // by node
  std::vector<std::vector<std::unique_ptr<Path>>> paths_;  // by nodes, made when first used
  std::vector<std::vector<EndpointId>> endpoints_of_;      // by node, except those that are gone
  std::vector<EndpointFacts> endpoints_;
  std::vector<std::unique_ptr<Link>> links_;  // made when first used
};

}  // namespace dunlin::sim
