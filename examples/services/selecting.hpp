#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "outcome.hpp"

/// A catalogue of files (size, time of change, and path of each) lies in segments at a storage
/// member, and members that compute select from it what they need, without asking the storage
/// member.
namespace services {

inline constexpr std::size_t kRecordsPerSegment = 512;  // 64 KB

struct Record {
  std::int64_t bytes = 0;
  std::int64_t changed_s = 0;  // since 1970
  std::array<char, 112> path{};
};

struct Records {
  std::uint64_t count = 0;
  std::array<Record, kRecordsPerSegment> all{};
};

/// What a query selects: files of these sizes.
struct Sizes {
  std::int64_t least, most;
};

struct Answer {
  std::uint64_t files = 0;
  std::int64_t bytes = 0;
  std::int64_t newest_s = 0;
  friend bool operator==(const Answer&, const Answer&) = default;
  void add(std::int64_t size, std::int64_t changed_s) {
    ++files;
    bytes += size;
    newest_s = std::max(newest_s, changed_s);
  }
};

[[nodiscard]] inline std::size_t segments_of(std::size_t records) {
  return (records + kRecordsPerSegment - 1) / kRecordsPerSegment;
}
/// What the storage member needs for so many.
[[nodiscard]] inline std::size_t pool_bytes_of(std::size_t records) {
  return (segments_of(records) + 1) * (sizeof(Records) + 4096) + (1 << 16);
}
/// A segment with this name has the key of a segment with records.
[[nodiscard]] inline std::string records_name(std::size_t segment) {
  return "files/" + std::to_string(segment);
}

/// Puts them into segments of this member.
inline dunlin::remote::Job share(dunlin::SegmentSpace& space, const std::vector<Record>& records) {
  const auto part = std::make_unique<Records>();
  std::size_t done = 0;
  for (std::size_t i = 0; i < segments_of(records.size()); ++i) {
    part->count = std::min(kRecordsPerSegment, records.size() - done);
    std::copy_n(records.begin() + static_cast<std::ptrdiff_t>(done), part->count,
                part->all.begin());
    done += part->count;
    dunlin::SegmentSpec spec{.bytes = sizeof(Records),
                             .coherence = dunlin::Coherence::write,
                             .placement = dunlin::Placement::here()};
    const dunlin::Outcome made = co_await space.allocate(spec);
    demand(made);
    demand(co_await space.put(made.key, dunlin::bytes_of(*part)));
    // The name comes last: a process that finds a segment finds it full.
    std::uint64_t key = made.key.value;
    spec.bytes = sizeof key;
    spec.name = records_name(i);
    const dunlin::Outcome named = co_await space.allocate(spec);
    demand(named);
    demand(co_await space.put(named.key, dunlin::bytes_of(key)));
  }
}

class Selector {
 public:
  /// Under these keys are the names' segments.
  Selector(dunlin::SegmentSpace& space, std::vector<dunlin::Key> named)
      : space_(space), named_(std::move(named)) {}

  dunlin::remote::Job select(Sizes sizes) {
    answer_ = {};
    for (std::size_t next = 0; next < named_.size(); ++next) {
      if (keys_.size() == next) {
        dunlin::Key key;
        while (key.value == 0)
          demand(co_await space_.get(named_[next], dunlin::bytes_of(key.value)));
        keys_.push_back(key);
      }
      demand(co_await space_.get(keys_[next], dunlin::bytes_of(*part_)));
      for (std::size_t i = 0; i < part_->count; ++i)
        if (const Record& record = part_->all.at(i);
            record.bytes >= sizes.least && record.bytes <= sizes.most)
          answer_.add(record.bytes, record.changed_s);
    }
  }
  /// That of the last query.
  [[nodiscard]] const Answer& answer() const noexcept { return answer_; }

 private:
  dunlin::SegmentSpace& space_;
  std::vector<dunlin::Key> named_;
  std::vector<dunlin::Key> keys_;  // of the records, as far as they are known
  std::unique_ptr<Records> part_ = std::make_unique<Records>();
  Answer answer_;
};

}  // namespace services
