#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric/verbs/handles.hpp"

/// A connection of two by bare libibverbs: one queue pair each, and memory that the other may write
/// and read.
namespace dunlin::bench {

/// How an end learns that it was signalled. By the cheapest way that proves that all before has
/// been placed: a polled word or, on iWARP, a message.
enum class Signals { cheapest, wake };  // wake: a message, for which it sleeps

class BarePair {
 public:
  static constexpr std::size_t kRoomBytes = std::size_t{1} << 20;

  /// Connects to the listener there.
  BarePair(const std::string& address, int port, Signals signals = Signals::cheapest);
  BarePair(BarePair&&) noexcept = default;

  /// So many bytes into the peer's memory, and a signal behind them.
  void signal(std::size_t bytes = 0);
  /// Until the peer has signalled once more.
  void await();
  /// So many writes behind as few doorbells as there is room for.
  void write(std::size_t bytes, std::uint32_t count);
  /// From the peer's memory, until the bytes are here.
  void read(std::size_t bytes);
  /// To a word of the peer's, until its former value is here; needs has_atomics().
  void add();
  [[nodiscard]] bool has_atomics() const noexcept { return has_atomics_; }
  [[nodiscard]] const char* way() const noexcept { return sends_ ? "send" : "polled write"; }

 private:
  friend class BareListener;
  struct Place {
    std::uint64_t address = 0;
    std::uint32_t key = 0;
  };
  struct Buffer;
  struct FreeBuffer {
    void operator()(Buffer* buffer) const noexcept;
  };

  explicit BarePair(Signals signals) : signals_(signals) {}
  void prepare(verbs::Id id);
  void prepare_queues();
  [[nodiscard]] rdma_conn_param parameters();
  ibv_send_wr& next(ibv_wr_opcode opcode, std::size_t from, std::size_t to, std::size_t bytes);
  void add_signal();
  void ring();
  void finish();
  void post_receive();
  void reap_sent();
  void reap_received();
  [[nodiscard]] bool has_signalled();
  void meet_as_caller();

  Signals signals_;
  std::unique_ptr<Buffer, FreeBuffer> buffer_;
  verbs::EventChannel events_;
  verbs::Domain domain_;
  verbs::Memory registration_;
  verbs::CompletionChannel bell_;
  verbs::CompletionQueue sent_;
  verbs::CompletionQueue received_;
  Place ours_;
  Place theirs_;
  bool sends_ = false;
  bool has_atomics_ = false;
  std::uint8_t reads_at_once_ = 1;
  std::uint32_t slots_ = 0;
  std::uint32_t in_use_ = 0;       // requests that may not have completed
  std::uint32_t unsignalled_ = 0;  // since the last that will tell
  std::uint64_t signals_sent_ = 0;
  std::uint64_t signals_seen_ = 0;
  std::vector<ibv_send_wr> requests_;  // for the next doorbell
  std::vector<ibv_sge> pieces_;
  verbs::Id id_;
};

/// Must outlive what it has accepted, whose events are its own.
class BareListener {
 public:
  explicit BareListener(const std::string& address);
  [[nodiscard]] int port() const;
  [[nodiscard]] BarePair accept(Signals signals = Signals::cheapest);

 private:
  verbs::EventChannel events_;
  verbs::Id id_;
};

}  // namespace dunlin::bench
