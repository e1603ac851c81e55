#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "fabric/verbs/handles.hpp"

/// A ping-pong by bare libibverbs: one queue pair, one word each way, nothing else.
namespace dunlin::test {

class BarePair {
 public:
  /// Calls who listens there.
  BarePair(const std::string& address, int port);
  BarePair(BarePair&&) noexcept = default;

  void send(std::uint64_t turn);
  void await(std::uint64_t turn);
  [[nodiscard]] const char* way() const { return sends_ ? "send" : "polled write"; }

 private:
  friend class BareListener;
  struct Word {
    std::uint64_t address = 0;
    std::uint32_t key = 0;
  };
  struct alignas(64) Words {
    std::uint64_t arriving = 0;
    std::uint64_t leaving = 0;
  };
  BarePair() = default;
  void prepare(verbs::Id id);
  [[nodiscard]] rdma_conn_param parameters();
  void post_receive();
  void reap(ibv_cq* queue);

  std::unique_ptr<Words> words_;
  verbs::EventChannel events_;
  verbs::Domain domain_;
  verbs::Memory registration_;
  verbs::CompletionQueue sent_;
  verbs::CompletionQueue received_;
  Word ours_;
  Word theirs_;
  bool sends_ = false;
  unsigned unsignalled_ = 0;
  verbs::Id id_;
};

class BareListener {
 public:
  explicit BareListener(const std::string& address);
  [[nodiscard]] int port() const;
  [[nodiscard]] BarePair accept();

 private:
  verbs::EventChannel events_;
  verbs::Id id_;
};

}  // namespace dunlin::test
