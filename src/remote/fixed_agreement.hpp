#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/remote/limits.hpp>

/// How a fixed list of members agrees on an order of proposals, none of which is handled before all
/// of them have it. Pure: messages go in, messages and decided proposals come out. If a member
/// dies, all stop (FixedMembers); so nobody has to go on with the order of a member that is gone.
///
///     proposer -> member 0    proposal
///     member 0 -> all         record n: the proposal, as number n of the order
///     each     -> member 0    has n: it has the records up to n
///     member 0 -> all         decided n: all have the records up to n
///
/// Messages of one member reach another one in the order in which they were sent.
namespace dunlin::remote {

class FixedAgreement {
 public:
  /// A message's first bytes. All words are in the machine's byte order.
  struct Header {
    enum class Kind : std::uint16_t { proposal = 1, record, has, decided };
    std::uint64_t order;     // names the order: a hash of its name
    std::uint32_t number;    // of a record: from 1 on; of `has` and `decided`: the last one
    std::uint16_t proposer;  // of a record: the rank
    Kind kind;
  };
  struct Outgoing {
    Rank to;
    std::vector<std::byte> message;
  };

  FixedAgreement(std::uint64_t order, Rank me, std::uint32_t members);

  /// False: so many own proposals are under way that there is no room.
  [[nodiscard]] bool propose(std::span<const std::byte> proposal);
  /// Takes a message of a member, which can be this one. Returns a sentence if it is none that this
  /// protocol sends.
  [[nodiscard]] std::string receive(Rank from, std::span<const std::byte> message);
  /// The messages that are to be sent since the last call, in order.
  [[nodiscard]] std::vector<Outgoing> take_outgoing() noexcept;
  /// The next decided proposal of the order; false if there is none. Later calls may use the
  /// proposal's memory again.
  [[nodiscard]] bool next(std::vector<std::byte>& proposal);

  static constexpr std::uint32_t kMostUnderWay = 64;  // own proposals

 private:
  using Kind = Header::Kind;
  struct Record {
    Rank proposer;
    std::vector<std::byte> proposal;
  };
  void send(Rank to, Kind kind, std::uint32_t number, Rank proposer,
            std::span<const std::byte> content);
  void order(Rank proposer, std::span<const std::byte> proposal);
  [[nodiscard]] std::string note(Rank from, std::uint32_t number);

  const std::uint64_t order_;
  const Rank me_;
  const std::uint32_t members_;
  std::uint32_t own_under_way_ = 0;
  std::deque<Record> records_;      // those that were not handed up, in order
  std::uint32_t received_ = 0;      // number of the last record here
  std::uint32_t decided_ = 0;       // number of the last one that all members have
  std::uint32_t handed_up_ = 0;     // number of the last one that next() has returned
  std::uint32_t ordered_ = 0;       // at member 0: number of the last one
  std::vector<std::uint32_t> has_;  // at member 0: what each member has
  std::vector<Outgoing> outgoing_;
};

static_assert(sizeof(FixedAgreement::Header) + kMaxProposalBytes == kMaxMessageBytes);

}  // namespace dunlin::remote
