#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <dunlin/container/containers.hpp>
#include <dunlin/container/hash_map.hpp>
#include <dunlin/container/slot.hpp>
#include <dunlin/fabric/memory.hpp>

/// Containers of plain words, which need no protocol: arrays, counters, and Bloom filters. Each
/// call is one read, write or atomic of the fabric, but for a Bloom filter's insert.
namespace dunlin {

namespace container {

struct WordsState;

/// An equal number of bytes in the memory of each member.
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
  [[nodiscard]] std::uint32_t members() const noexcept { return containers().fabric().size(); }
  /// This member's own bytes; others may be writing them (dunlin/fabric/memory.hpp).
  [[nodiscard]] std::span<std::byte> own() const noexcept;

 private:
  friend class WordsOperation;
  std::unique_ptr<WordsState> state_;
};

class WordsOperation : public ContainerOperation {
 public:
  /// The word before an add or set_bits changed it.
  [[nodiscard]] std::uint64_t before() const noexcept { return before_; }

 protected:
  explicit WordsOperation(WordsCore& words) noexcept;
  /// Begins a read. `memory` and `offset` must agree modulo 8.
  void begin_read(Rank home, std::uint64_t offset, void* memory, std::size_t bytes) noexcept;
  void begin_write(Rank home, std::uint64_t offset, const void* memory, std::size_t bytes) noexcept;
  void begin_add(Rank home, std::uint64_t offset, std::uint64_t add) noexcept;
  void begin_set_bits(Rank home, std::uint64_t offset, std::uint64_t bits) noexcept;
  /// Reads one word of each member, into an array with a place for each.
  void begin_read_all(std::uint64_t offset, std::uint64_t* words) noexcept;

 private:
  enum class Kind : std::uint8_t { read, write, add, set_bits, read_all };
  void begin(Kind kind, Rank home, std::uint64_t offset) noexcept;
  void advance() noexcept override;
  void clean_up() noexcept override {}
  void replied(remote::Status, bool, std::span<const std::byte>) noexcept override {}
  [[nodiscard]] bool post(const Operation& operation) noexcept;
  [[nodiscard]] Operation next_operation() noexcept;
  /// Whether all operations have been posted, and are done.
  [[nodiscard]] bool complete() noexcept;

  WordsState& words_;
  Kind kind_ = Kind::read;
  bool waits_ = false;  // whether it waits for the operations posted
  Rank home_ = 0;
  std::uint64_t offset_ = 0;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t operand_ = 0;
  std::uint64_t expected_ = 0;
  std::uint64_t before_ = 0;
};

}  // namespace container

struct ArrayOptions {
  std::string name;        // the same at all members
  std::uint64_t size = 0;  // elements of all members together
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

 public:
  class Operation final : public container::WordsOperation {
   public:
    explicit Operation(Array& array) noexcept : WordsOperation(array.core_), array_(array) {}
    ~Operation() override { abandon(); }
    Operation& outcome(std::uint64_t timeout_ns = remote::kForever) {
      wait(timeout_ns);
      return *this;
    }
    /// The element that a get has read.
    [[nodiscard]] T value() const noexcept {
      T value;
      std::memcpy(&value, element_.data(), sizeof(T));
      return value;
    }
    Operation& await_resume() noexcept { return *this; }

    // Requires index < size().
    void get(std::uint64_t index) noexcept {
      begin_read(array_.home_of(index), array_.offset_of(index), element_.data(), sizeof(T));
    }
    void put(std::uint64_t index, const T& value) noexcept {
      abandon();
      std::memcpy(element_.data(), &value, sizeof(T));
      begin_write(array_.home_of(index), array_.offset_of(index), element_.data(), sizeof(T));
    }
    void add(std::uint64_t index, std::uint64_t value) noexcept {
      static_assert(std::is_integral_v<T> && sizeof(T) == 8, "the fabric adds to 64-bit words");
      begin_add(array_.home_of(index), array_.offset_of(index), value);
    }

   private:
    Array& array_;
    alignas(kWordBytes) std::array<std::byte, kStride> element_;
  };

  Array(Containers& containers, const ArrayOptions& options)
      : size_(options.size),
        block_((options.size + containers.fabric().size() - 1) / containers.fabric().size()),
        core_(containers, "array", options.name, block_ * kStride,
              "element " + std::to_string(sizeof(T)) + "\nsize " + std::to_string(options.size),
              block_) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t block() const noexcept { return block_; }
  [[nodiscard]] Rank home_of(std::uint64_t index) const noexcept {
    return static_cast<Rank>(index / block_);
  }
  [[nodiscard]] Operation operation() { return Operation(*this); }

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
///     auto op = done.operation();
///     op.add(1);
class Counter {
 public:
  class Operation final : public container::WordsOperation {
   public:
    explicit Operation(Counter& counter);
    ~Operation() override { abandon(); }
    Operation& outcome(std::uint64_t timeout_ns = remote::kForever) {
      wait(timeout_ns);
      return *this;
    }
    void add(std::uint64_t value) noexcept;
    void read() noexcept;
    /// The result of a read; for a sharded counter, the sum of words that were read one by one.
    [[nodiscard]] std::uint64_t value() const noexcept;
    Operation& await_resume() noexcept { return *this; }

   private:
    Counter& counter_;
    std::vector<std::uint64_t> words_;
  };

  Counter(Containers& containers, const CounterOptions& options);
  [[nodiscard]] Operation operation() { return Operation(*this); }

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
  class Operation final : public container::WordsOperation {
   public:
    explicit Operation(BloomFilter& filter) noexcept
        : WordsOperation(filter.core_), filter_(filter) {}
    ~Operation() override { abandon(); }
    Operation& outcome(std::uint64_t timeout_ns = remote::kForever) {
      wait(timeout_ns);
      return *this;
    }
    /// Inserts the key; found() says whether it may have been there before.
    void insert(const K& key) noexcept {
      const Place place = filter_.place_of(key);
      bits_ = place.bits;
      reads_ = false;
      begin_set_bits(place.home, place.offset, bits_);
    }
    void contains(const K& key) noexcept {
      const Place place = filter_.place_of(key);
      bits_ = place.bits;
      read_ = 0;
      reads_ = true;
      begin_read(place.home, place.offset, &read_, sizeof read_);
    }
    [[nodiscard]] bool found() const noexcept {
      return ok() && ((reads_ ? read_ : before()) & bits_) == bits_;
    }
    Operation& await_resume() noexcept { return *this; }

   private:
    BloomFilter& filter_;
    bool reads_ = false;
    std::uint64_t bits_ = 0;
    std::uint64_t read_ = 0;
  };

  BloomFilter(Containers& containers, const BloomFilterOptions& options)
      : words_(options.words),
        core_(containers, "bloom", options.name, std::uint64_t{options.words} * kWordBytes,
              "key " + std::to_string(sizeof(K)) + "\nwords " + std::to_string(options.words),
              std::uint64_t{options.words} * kWordBits) {}

  [[nodiscard]] Operation operation() { return Operation(*this); }
  /// Inserts a key of this member's own part at once; returns whether it may have been there
  /// before. As long as this is used, all inserts must be made by it, unless the fabric's atomics
  /// and the processor's exclude each other (Properties::atomics_coherent_with_cpu).
  bool insert_local(const K& key) noexcept {
    const Place place = place_of(key);
    std::byte* const word = core_.own().data() + place.offset;
    const std::uint64_t before = memory::load(*reinterpret_cast<const std::uint64_t*>(word));
    if ((before & place.bits) == place.bits) return true;
    return (memory::fetch_or(word, place.bits) & place.bits) == place.bits;
  }
  /// The member in whose part the key is; a HashMap has the key at that member, too.
  [[nodiscard]] Rank home_of(const K& key) const noexcept { return place_of(key).home; }

 private:
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
