#include "fabric/verbs/send_queue.hpp"

#include <utility>

#include "assert.hpp"

namespace dunlin::verbs {

void SendQueue::open(ibv_qp* pair, std::uint32_t slots, std::span<std::byte> staging,
                     std::uint32_t key) {
  pair_ = pair;
  slots_ = slots;
  records_ = Ring<Record>(slots);
  staging_ = staging;
  staging_key_ = key;
}

SendQueue::Staged SendQueue::stage(std::size_t bytes) noexcept {
  DUNLIN_ASSERT(staging_head_ - staging_tail_ <= kRingBytes,
                "VRB-Q3: copies are freed with their records, once");
  const std::size_t lines = round_up(bytes, kCacheLineBytes);
  std::size_t at = staging_head_ % kRingBytes;
  const std::size_t skipped = at + lines > kRingBytes ? kRingBytes - at : 0;
  if (staging_head_ - staging_tail_ + skipped + lines > kRingBytes) return {};
  if (skipped > 0) at = 0;
  staging_head_ += skipped + lines;
  return {staging_.data() + at, static_cast<std::uint32_t>(at),
          static_cast<std::uint32_t>(skipped + lines)};
}

ibv_send_wr& SendQueue::add(ibv_wr_opcode opcode, const ibv_sge& piece, const Record& record,
                            std::uint64_t tag, unsigned flags) noexcept {
  DUNLIN_ASSERT(room() > 0, "VRB-Q1: each request under way has a record");
  if (chained_ == kMaxChain) error_ = ring();
  const bool told = record.kind != Record::Kind::silent && record.kind != Record::Kind::credit;
  ++unsignalled_;
  unsignalled_bytes_ += record.staged_bytes;
  const bool long_ago =
      unsignalled_ >= slots_ / 4 || unsignalled_bytes_ >= kRingBytes / 4;  // VRB-Q2
  if (told || record.completion != nullptr || long_ago) {
    flags |= IBV_SEND_SIGNALED;
    unsignalled_ = 0;
    unsignalled_bytes_ = 0;
  }
  pieces_[chained_] = piece;
  ibv_send_wr& request = chain_[chained_];
  request.wr_id = tag | static_cast<std::uint32_t>(records_.pushed());
  request.next = nullptr;
  request.sg_list = &pieces_[chained_];
  request.num_sge = piece.length == 0 ? 0 : 1;
  request.opcode = opcode;
  request.send_flags = flags;
  if (chained_ > 0) chain_[chained_ - 1].next = &request;
  ++chained_;
  records_.push(record);
  if (opcode != IBV_WR_SEND && opcode != IBV_WR_RDMA_WRITE) fetches_ = records_.pushed();
  return request;
}

/// Rings the doorbell; some providers answer with a negative number.
int SendQueue::ring() noexcept {
  const bool waits = std::exchange(chained_, 0) > 0;
  if (const int error = std::exchange(error_, 0)) return error;  // later requests go nowhere
  if (!waits || pair_ == nullptr) return 0;
  ibv_send_wr* refused = nullptr;
  const int error = ibv_post_send(pair_, chain_.data(), &refused);
  return error < 0 ? -error : error;
}

void SendQueue::clear() noexcept {
  while (!records_.empty()) records_.pop();
  chained_ = 0;
  error_ = 0;
  staging_tail_ = staging_head_;
}

}  // namespace dunlin::verbs
