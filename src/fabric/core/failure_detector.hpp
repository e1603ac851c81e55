#pragma once

#include <cstdint>
#include <vector>

#include <dunlin/fabric.hpp>

/// Tells which peers have fallen silent from the heartbeats that were seen of them. Pure: the
/// caller counts the beats and knows the time.
///
///     detector.look(now_ns);
///     for (each living peer) if (detector.silent(peer, beats_of(peer))) fail(peer);
namespace dunlin {

class FailureDetector {
 public:
  /// A timeout of 0 never finds a peer silent.
  FailureDetector(std::uint32_t peers, std::uint64_t timeout_ns, std::uint64_t now_ns);

  /// Makes room for so many peers.
  void grow(std::uint32_t peers) { windows_.resize(peers, Window{0, now_ns_}); }
  /// Says that the peer has come just now.
  void welcome(Rank peer, std::uint64_t now_ns) noexcept { windows_[peer].since_ns = now_ns; }

  /// Begins a look at the peers. If the last look was over half a timeout ago, this member has been
  /// asleep itself, and cannot tell a silent peer from its own deafness: every peer gets a new
  /// window.
  void look(std::uint64_t now_ns) noexcept;

  /// Whether the peer, whose heartbeats number `beats` so far, was silent for the whole timeout.
  [[nodiscard]] bool silent(Rank peer, std::uint64_t beats) noexcept;

 private:
  struct Window {
    std::uint64_t beats = 0;
    std::uint64_t since_ns = 0;
  };
  std::uint64_t timeout_ns_;
  std::uint64_t now_ns_;
  std::vector<Window> windows_;
};

}  // namespace dunlin
