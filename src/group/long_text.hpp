#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <dunlin/fabric.hpp>

/// A long control message: its receiver reads it from its sender's memory, window by window, as
/// MPI's rendezvous protocol does. docs/formats/group-control.md gives the messages for it.
namespace dunlin::group {

/// Longer texts are read; up to this size, fragments are quicker than memory for the text.
inline constexpr std::size_t kLongTextBytes = std::size_t{1} << 16;
/// The memory that the sender has for a text; a longer text takes several windows.
inline constexpr std::size_t kWindowBytes = std::size_t{1} << 19;

/// What sender and receiver tell each other: a small message that begins with eight zero bytes.
struct LongTextMessage {
  enum class Kind : std::uint64_t {
    ready = 1,   // from the sender: so many bytes of it can be read, or have been
    taken = 2,   // from the receiver: so many bytes of it have been read
    refused = 3  // from the receiver: it cannot read it, and wants it in fragments
  };
  std::uint64_t no_fragment = 0;
  Kind kind = Kind::ready;
  std::uint64_t generation = 0;  // the generation of the sender's region
  std::uint64_t bytes = 0;
  std::uint64_t total = 0;  // length of the text; in `ready` only
};

/// Whether a message offers a text, and is valid.
[[nodiscard]] bool is_offer(const LongTextMessage& message) noexcept;

/// A long text at its sender.
class OfferedText {
 public:
  /// Throws Error, or std::bad_alloc, if there is no memory for the window. `text` must outlive
  /// this object.
  OfferedText(Fabric& fabric, std::uint32_t channel, Rank to, std::span<const std::byte> text);
  OfferedText(const OfferedText&) = delete;
  OfferedText& operator=(const OfferedText&) = delete;

  /// Sends the next message, if there is one and room for it; returns whether it did.
  bool poll();
  void receive(const LongTextMessage& message);
  /// Whether its receiver has all of the text.
  [[nodiscard]] bool taken() const noexcept { return taken_ == text_.size(); }
  /// Whether it waits for room for a message, and not for a message of its receiver.
  [[nodiscard]] bool owes_message() const noexcept { return owes_message_; }
  /// Whether its receiver wants the text in fragments.
  [[nodiscard]] bool refused() const noexcept { return refused_; }

 private:
  void fill();

  Fabric& fabric_;
  std::uint32_t channel_;
  Rank to_;
  std::span<const std::byte> text_;
  Region window_;
  std::size_t ready_ = 0;  // how much of the text the window reaches
  std::size_t taken_ = 0;
  bool owes_message_ = true;
  bool refused_ = false;
};

/// A long text at its receiver.
class FetchedText {
 public:
  FetchedText(Fabric& fabric, std::uint32_t channel, Rank from, const LongTextMessage& offer);
  ~FetchedText();
  FetchedText(const FetchedText&) = delete;
  FetchedText& operator=(const FetchedText&) = delete;

  /// Reads, and tells the sender; returns whether it must be polled again at once.
  bool poll();
  void receive(const LongTextMessage& message);
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
  /// Whether nothing is left to do: the text is complete, refused, or lost with its sender.
  [[nodiscard]] bool over() const noexcept { return over_; }
  /// Takes the text, once; none if it was refused or lost.
  [[nodiscard]] std::optional<std::vector<std::byte>> text();

 private:
  void begin();
  void refuse() noexcept;
  bool read();

  Fabric& fabric_;
  std::uint32_t channel_;
  Rank from_;
  std::uint64_t generation_;
  std::size_t total_;
  Region own_;  // has the sender's name, to reach its region
  std::vector<std::byte> text_;
  std::size_t ready_ = 0;
  std::size_t reading_ = 0;  // bytes under way
  std::size_t read_ = 0;
  std::size_t told_ = 0;  // bytes that the sender was told have been read
  bool begun_ = false;
  bool was_connected_ = false;
  Completion completion_;
  LongTextMessage::Kind owes_ = LongTextMessage::Kind::taken;
  bool owes_message_ = false;
  bool over_ = false;
};

}  // namespace dunlin::group
