#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include <dunlin/container/call_memory.hpp>
#include <dunlin/container/containers.hpp>
#include <dunlin/container/hash_map.hpp>
#include <dunlin/container/slot.hpp>
#include <dunlin/fabric/memory.hpp>

/// Containers of plain words: arrays, counters, and Bloom filters. Each call is one read, write or
/// atomic of the fabric, but for a Bloom filter's insert, and the read of a sharded counter.
namespace dunlin {

namespace container {

struct WordsState;

/// What was read.
struct ReadBytes {
  remote::Status status = remote::Status::ok;
  CallMemory memory = {};
};

/// How a call on a word has ended.
struct WordOutcome {
  remote::Status status = remote::Status::ok;
  std::uint64_t word = 0;
  [[nodiscard]] bool ok() const noexcept { return status == remote::Status::ok; }
};

/// How an add has ended.
struct Added : WordOutcome {
  /// The word before it.
  [[nodiscard]] std::uint64_t before() const noexcept { return word; }
};

/// How a read of a counter has ended.
struct CounterValue : WordOutcome {
  [[nodiscard]] std::uint64_t value() const noexcept { return word; }
};

/// How a call on a Bloom filter has ended.
struct MaybePresent {
  remote::Status status = remote::Status::ok;
  bool all_bits = false;
  [[nodiscard]] bool ok() const noexcept { return status == remote::Status::ok; }
  /// Whether the key may have been there when the call took effect.
  [[nodiscard]] bool found() const noexcept { return ok() && all_bits; }
};

/// An equal number of bytes in the memory of each member. Where a member's bytes are mapped here
/// (Fabric::reach), a call has ended when it is made.
class WordsCore {
 public:
  /// Throws Error. Members whose `layout` differs refuse each other. `capacity` is for observers:
  /// how many elements, words or bits a member's part has.
  WordsCore(Containers& containers, const std::string& kind, const std::string& name,
            std::uint64_t bytes, const std::string& layout, std::uint64_t capacity);
  ~WordsCore();
  WordsCore(const WordsCore&) = delete;
  WordsCore& operator=(const WordsCore&) = delete;

  [[nodiscard]] Containers& containers() const noexcept;
  /// Those that have a part: the founders.
  [[nodiscard]] std::uint32_t members() const noexcept { return containers().progress().size(); }
  /// This member's own bytes; others may be writing them (dunlin/fabric/memory.hpp).
  [[nodiscard]] std::span<std::byte> own() const noexcept;

  /// Reads into `memory`, if the bytes are mapped here; returns whether it has. `memory` begins on
  /// a word.
  [[nodiscard]] bool read_at_once(Rank home, std::uint64_t offset, void* memory,
                                  std::size_t bytes) noexcept;
  [[nodiscard]] remote::Protocol<ReadBytes> read(Rank home, std::uint64_t offset,
                                                 std::size_t bytes);
  /// `memory` begins on a word.
  [[nodiscard]] remote::Call<remote::Status> write(Rank home, std::uint64_t offset,
                                                   const void* memory, std::size_t bytes);
  [[nodiscard]] remote::Call<Added> add(Rank home, std::uint64_t offset, std::uint64_t value);
  [[nodiscard]] remote::Call<MaybePresent> set_bits(Rank home, std::uint64_t offset,
                                                    std::uint64_t bits);
  [[nodiscard]] remote::Call<MaybePresent> has_bits(Rank home, std::uint64_t offset,
                                                    std::uint64_t bits);
  /// Reads the word of that member, or of all, one by one, and adds them up.
  [[nodiscard]] remote::Call<CounterValue> sum(Rank first, Rank last, std::uint64_t offset);

 private:
  std::unique_ptr<WordsState> state_;
};

}  // namespace container

struct ArrayOptions {
  std::string name;        // the same at all members
  std::uint64_t size = 0;  // elements of all members together
};

/// How a get has ended, and the element.
template <class T>
class Element {
 public:
  Element() = default;
  explicit Element(const T& value) noexcept : value_(value) {}
  explicit Element(const container::ReadBytes& read) noexcept : status(read.status) {
    if (ok()) std::memcpy(&value_, read.memory.data(), sizeof(T));
  }

  [[nodiscard]] bool ok() const noexcept { return status == remote::Status::ok; }
  [[nodiscard]] const T& value() const noexcept { return value_; }

  remote::Status status = remote::Status::ok;

 private:
  T value_{};
};

/// An Array is spread over the members in blocks: element i is at member i / block(). An element of
/// up to 8 bytes is never torn; a larger one must not be got while another member puts it.
///
///     dunlin::Array<std::uint64_t> ranks(containers, {.name = "ranks", .size = 1'000'000});
///     ranks.put(7, 42).wait();
template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>,
                "an array holds plain bytes");
  static constexpr std::uint64_t kStride = round_up(sizeof(T), kWordBytes);
  struct alignas(kWordBytes) alignas(T) Aligned {
    T element;
  };

 public:
  Array(Containers& containers, const ArrayOptions& options)
      : size_(options.size),
        block_((options.size + containers.progress().size() - 1) / containers.progress().size()),
        core_(containers, "array", options.name, block_ * kStride,
              "element " + std::to_string(sizeof(T)) + "\nsize " + std::to_string(options.size),
              block_) {}

  // Requires index < size().
  [[nodiscard]] remote::Call<Element<T>> get(std::uint64_t index) {
    const Rank home = home_of(index);
    Aligned place{};
    remote::Progress& progress = core_.containers().progress();
    if (core_.read_at_once(home, offset_of(index), &place, sizeof(T)))
      return {progress, Element<T>(place.element)};
    return {progress, core_.read(home, offset_of(index), sizeof(T))};
  }
  [[nodiscard]] remote::Call<remote::Status> put(std::uint64_t index, const T& value) {
    const Aligned place{value};
    return core_.write(home_of(index), offset_of(index), &place, sizeof(T));
  }
  [[nodiscard]] remote::Call<container::Added> add(std::uint64_t index, std::uint64_t value) {
    static_assert(std::is_integral_v<T> && sizeof(T) == 8, "the fabric adds to 64-bit words");
    return core_.add(home_of(index), offset_of(index), value);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t block() const noexcept { return block_; }
  [[nodiscard]] Rank home_of(std::uint64_t index) const noexcept {
    return static_cast<Rank>(index / block_);
  }

 private:
  [[nodiscard]] std::uint64_t offset_of(std::uint64_t index) const noexcept {
    return index % block_ * kStride;
  }
  std::uint64_t size_;
  std::uint64_t block_;
  container::WordsCore core_;
};

struct CounterOptions {
  std::string name;      // the same at all members
  bool sharded = false;  // a word at each member: adding is local, reading asks all
  Rank host = 0;         // the member with the word, if it is not sharded
};

/// A Counter is a number to which all members add.
///
///     dunlin::Counter done(containers, {.name = "done"});
///     done.add(1).wait();
///     if (done.read().outcome().value() == members) go_on();
class Counter {
 public:
  Counter(Containers& containers, const CounterOptions& options);

  [[nodiscard]] remote::Call<container::Added> add(std::uint64_t value);
  /// For a sharded counter, the sum of words that are read one by one.
  [[nodiscard]] remote::Call<container::CounterValue> read();

 private:
  CounterOptions options_;
  container::WordsCore core_;
};

struct BloomFilterOptions {
  std::string name;         // the same at all members
  std::uint32_t words = 0;  // 64-bit words in each member's part; one for some 6 keys
};

/// A BloomFilter tells whether a key may have been inserted: all bits of a key are in one word, so
/// that one read answers. With 6 keys for each word, some 2.5 % of other keys are taken for
/// present.
template <PlainKey K>
class BloomFilter {
 public:
  BloomFilter(Containers& containers, const BloomFilterOptions& options)
      : words_(options.words),
        core_(containers, "bloom", options.name, std::uint64_t{options.words} * kWordBytes,
              "key " + std::to_string(sizeof(K)) + "\nwords " + std::to_string(options.words),
              std::uint64_t{options.words} * kWordBits) {}

  /// Inserts the key; found() says whether it may have been there before.
  [[nodiscard]] remote::Call<container::MaybePresent> insert(const K& key) {
    const Place place = place_of(key);
    return core_.set_bits(place.home, place.offset, place.bits);
  }
  [[nodiscard]] remote::Call<container::MaybePresent> contains(const K& key) {
    const Place place = place_of(key);
    return core_.has_bits(place.home, place.offset, place.bits);
  }
  /// Inserts a key of this member's own part at once; returns whether it may have been there
  /// before. As long as this is used, all inserts must be made by it, unless the fabric's atomics
  /// and the processor's exclude each other (Properties::atomics_coherent_with_cpu).
  bool insert_local(const K& key) noexcept {
    const Place place = place_of(key);
    std::uint64_t& word = word_at(place.offset);
    if ((memory::load(word) & place.bits) == place.bits) return true;
    return (memory::fetch_or(&word, place.bits) & place.bits) == place.bits;
  }
  /// Whether a key of this member's own part may have been inserted.
  [[nodiscard]] bool contains_local(const K& key) const noexcept {
    const Place place = place_of(key);
    return (memory::load(word_at(place.offset)) & place.bits) == place.bits;
  }
  /// Hints that a key of this member's own part will be used soon: prefetches its word.
  void prefetch_local(const K& key) const noexcept {
    __builtin_prefetch(core_.own().data() + place_of(key).offset, 1);
  }
  /// The share of the keys that were not inserted which this member's part takes for present.
  [[nodiscard]] double mistaken_share() const noexcept {
    double sum = 0;
    for (std::uint32_t word = 0; word < words_; ++word) {
      const auto bits = std::popcount(memory::load(word_at(std::uint64_t{word} * kWordBytes)));
      const double share = static_cast<double>(bits) / kWordBits;
      sum += share * share * share * share;
    }
    static_assert(kBits == 4);
    return sum / words_;
  }
  /// The member in whose part the key is; a HashMap has the key at that member, too.
  [[nodiscard]] Rank home_of(const K& key) const noexcept { return place_of(key).home; }

 private:
  [[nodiscard]] std::uint64_t& word_at(std::uint64_t offset) const noexcept {
    return *reinterpret_cast<std::uint64_t*>(core_.own().data() + offset);
  }
  static constexpr int kBits = 4;
  static constexpr std::uint64_t kWordBits = 64;
  struct Place {
    Rank home;
    std::uint64_t offset;
    std::uint64_t bits;
  };
  [[nodiscard]] Place place_of(const K& key) const noexcept {
    const std::uint64_t hash = container::hash_of(&key, sizeof(K));
    std::uint64_t rest = hash * 0x9e3779b97f4a7c15ULL, bits = 0;
    for (int i = 0; i < kBits; ++i, rest <<= 6) bits |= std::uint64_t{1} << (rest >> 58);
    return {container::scale(static_cast<std::uint32_t>(hash >> 32), core_.members()),
            std::uint64_t{container::scale(static_cast<std::uint32_t>(hash), words_)} * kWordBytes,
            bits};
  }
  std::uint32_t words_;
  container::WordsCore core_;
};

}  // namespace dunlin
