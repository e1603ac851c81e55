#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/table.hpp>

#include "multicast/ring.hpp"
#include "multicast/row.hpp"
#include "multicast/view_options.hpp"

/// The memory of one subgroup in one view, on which the view's stages work: a ring for each sender
/// and a row for each member, at every member; and which member is which sender.
namespace dunlin::multicast {

/// Which sender a member is, if it is one.
using SenderRank = std::optional<std::size_t>;

class ViewMemory {
 public:
  /// Throws Error. Does not wait for the peers. `fabric` must outlive this object.
  ViewMemory(Fabric& fabric, SubgroupViewOptions options);
  ViewMemory(const ViewMemory&) = delete;
  ViewMemory& operator=(const ViewMemory&) = delete;

  [[nodiscard]] Fabric& fabric() const noexcept { return fabric_; }
  [[nodiscard]] const SubgroupViewOptions& options() const noexcept { return options_; }
  [[nodiscard]] bool ordered() const noexcept { return options_.mode != Mode::unordered; }
  [[nodiscard]] bool durable() const noexcept { return options_.mode == Mode::durable; }

  // --- members and senders -----------------------------------------------------------------------
  [[nodiscard]] std::size_t members() const noexcept { return options_.members.size(); }
  [[nodiscard]] std::size_t senders() const noexcept { return options_.senders.size(); }
  /// This process, as an index into the members.
  [[nodiscard]] std::size_t me() const noexcept { return me_; }
  [[nodiscard]] SenderRank own_sender_rank() const noexcept { return sender_rank_of_[me_]; }
  [[nodiscard]] SenderRank sender_rank_of(std::size_t member) const noexcept {
    return sender_rank_of_[member];
  }

  // --- rings -------------------------------------------------------------------------------------
  /// Size and layout of each ring, without its memory.
  [[nodiscard]] const RingShape& shape() const noexcept { return shape_; }
  [[nodiscard]] RingShape ring_of(std::size_t sender_rank) const noexcept {
    RingShape shape = shape_;
    shape.memory = rings_.memory().data() + sender_rank * shape_.bytes;
    return shape;
  }
  [[nodiscard]] const Region& rings() const noexcept { return rings_; }
  [[nodiscard]] bool rings_connected() const noexcept { return rings_connected_; }

  // --- rows --------------------------------------------------------------------------------------
  [[nodiscard]] TableCore& table() noexcept { return table_; }
  [[nodiscard]] const TableCore& table() const noexcept { return table_; }
  /// A word of a member's row, as this process sees it.
  [[nodiscard]] std::uint64_t seen(std::size_t member, std::size_t offset) const noexcept {
    return memory::load(*reinterpret_cast<const std::uint64_t*>(table_.row(member) + offset));
  }
  /// Writes a word of the own row; a push makes the peers see it.
  void write(std::size_t offset, std::uint64_t value) noexcept {
    memory::store(*reinterpret_cast<std::uint64_t*>(table_.mine() + offset), value);
  }

  // --- agreement of the members on the options ---------------------------------------------------
  [[nodiscard]] bool connected() const noexcept { return rings_connected_ && table_.connected(); }
  /// Throws Error if a peer made another view of this name.
  void check() const;
  /// Whether the first member made another view of this name: then this member has to go.
  [[nodiscard]] bool differs_from_first() const noexcept { return differs_from_first_; }

  /// Charges a simulated node for looking at entries and making upcalls.
  void spend(std::size_t entries, std::size_t upcalls) noexcept {
    if (const CpuCosts* costs = fabric_.cpu_costs()) [[unlikely]] {
      fabric_.spend(costs->entry_ns * static_cast<double>(entries) +
                    costs->trigger_ns * static_cast<double>(upcalls));
    }
  }

 private:
  [[nodiscard]] Region allocate_rings() const;
  [[nodiscard]] TableOptions table_options() const;
  void handle(const Event& event);
  void connect_rings() noexcept;

  Fabric& fabric_;
  const SubgroupViewOptions options_;
  std::size_t me_ = 0;
  std::vector<SenderRank> sender_rank_of_;  // by member
  RingShape shape_;                         // without memory
  Region rings_;
  Subscription subscription_;
  TableCore table_;
  std::string refusal_;
  bool differs_from_first_ = false;
  bool rings_connected_ = false;
};

}  // namespace dunlin::multicast
