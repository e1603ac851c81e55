#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/error.hpp>

#include "log/log.hpp"
#include "log/simulated_disk.hpp"

namespace dunlin::log {

using Bytes = std::vector<std::byte>;

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// All that a log holds, from its first record on.
inline std::vector<Bytes> read_all(Log& log) {
  std::vector<Bytes> all;
  LogReader reader(log, log.first());
  while (const std::optional<Record> record = reader.next()) {
    EXPECT_EQ(record->number, log.first() + all.size());
    EXPECT_EQ(record->kind, record->payload.size());
    all.emplace_back(record->payload.begin(), record->payload.end());
  }
  EXPECT_EQ(log.first() + all.size(), log.next());
  EXPECT_EQ(reader.chain(), log.chain());
  return all;
}

/// Writes a log in a directory of a simulated disk, and remembers what it should be.
class Scribe {
 public:
  explicit Scribe(SimulatedDisk& disk, std::uint64_t seed = 1, std::uint64_t segment_bytes = 400)
      : disk_(disk), random_(seed), segment_bytes_(segment_bytes) {}

  void open() {
    log_.reset();
    log_ = std::make_unique<Log>(disk_.open("logs"),
                                 LogOptions{.name = "group/test", .segment_bytes = segment_bytes_});
  }
  void close() { log_.reset(); }
  Log& log() { return *log_; }

  /// Records of random lengths in one commit.
  void commit(std::uint32_t records, std::size_t most_bytes = 90) {
    Batch batch;
    for (std::uint32_t i = 0; i < records; ++i) {
      Bytes payload(draw(most_bytes + 1));
      for (std::byte& byte : payload) byte = static_cast<std::byte>(random_());
      const std::size_t half = payload.size() / 2;
      batch.append(static_cast<std::uint32_t>(payload.size()), std::span(payload).first(half),
                   std::span(payload).subspan(half));
      written_.push_back(std::move(payload));
    }
    log_->commit(batch);
    acknowledged_ = written_.size();
  }
  void truncate_from(std::uint64_t number) {
    acknowledged_ = std::min<std::uint64_t>(acknowledged_, number - 1);
    log_->truncate_from(number);
    written_.resize(number - 1);
  }
  /// A snapshot stands for what goes: the bytes of its number.
  void trim_before(std::uint64_t number) {
    number = std::min(number, log_->next());
    trimmed_ = std::max(trimmed_, number);
    const auto payload = std::as_bytes(std::span(&number, 1));
    log_->store({.number = number, .from = number, .payload = {payload.begin(), payload.end()}});
    log_->trim_before(number);
  }

  /// What was acknowledged is there, and what is there was written.
  void check() {
    ASSERT_GT(log_->next(), acknowledged_) << "it was acknowledged, and is lost";
    ASSERT_LE(log_->next(), written_.size() + 1);
    ASSERT_LE(log_->first(), trimmed_) << "nobody trimmed it";
    if (log_->snapshot()) {
      const Snapshot snapshot = log_->read_snapshot();
      ASSERT_LE(snapshot.number, trimmed_) << "nobody stored it";
      ASSERT_LE(log_->first(), snapshot.from);
      std::uint64_t number = 0;
      ASSERT_EQ(snapshot.payload.size(), sizeof number);
      std::memcpy(&number, snapshot.payload.data(), sizeof number);
      ASSERT_EQ(number, snapshot.number);
    }
    const std::vector<Bytes> found = read_all(*log_);
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i], written_[log_->first() - 1 + i]) << "record " << log_->first() + i;
    }
    written_.resize(log_->next() - 1);  // what comes next follows that
    acknowledged_ = written_.size();
  }
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  [[nodiscard]] const std::vector<Bytes>& written() const { return written_; }

 private:
  SimulatedDisk& disk_;
  std::mt19937_64 random_;
  std::uint64_t segment_bytes_;
  std::vector<Bytes> written_;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t trimmed_ = 1;
  std::unique_ptr<Log> log_;
};

/// The sentence of what was thrown; empty if nothing was.
template <class Do>
std::string error_of(Do action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace dunlin::log
