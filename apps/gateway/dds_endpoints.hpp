#pragma once

#include <cstdint>
#include <string>

#include <dds/dds.h>

#include "gateway/dds_type.hpp"
#include "gateway/domain.hpp"
#include "gateway/rule.hpp"

namespace dunlin::app::gateway {

/// A topic's writer and reader in the DDS domain, as the rule has them. Neither sees the other.
class DdsEndpoints {
 public:
  /// The type must outlive it. Throws BadInput and Error.
  DdsEndpoints(const Domain& domain, const DdsType& type, const Rule& rule, bool transient_local);

  [[nodiscard]] dds_entity_t writer() const noexcept { return writer_.get(); }
  [[nodiscard]] dds_entity_t reader() const noexcept { return reader_.get(); }
  /// A sentence for an endpoint that does not match since the last call; empty: there is none.
  [[nodiscard]] std::string new_mismatch();

 private:
  Entity topic_;
  Entity writer_;
  Entity reader_;
  std::uint32_t requested_ = 0;  // mismatches that were told
  std::uint32_t offered_ = 0;
};

}  // namespace dunlin::app::gateway
