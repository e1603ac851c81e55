#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <nanobind/nanobind.h>

/// Keys, values and buffers as Python gives them. All functions require the GIL, but for span().
namespace dunlin::python {

namespace nb = nanobind;

/// The bytes of a str (as UTF-8) or of bytes, which belong to the object. Throws TypeError for
/// others; `what` says what they should be.
[[nodiscard]] std::span<const std::byte> text_or_bytes(nb::handle object, const char* what);

/// The memory of a Python object: of its buffer, else of its DLPack tensor on the CPU. The object
/// can neither be resized nor freed as long as this exists. It is destroyed with the GIL.
class Memory {
 public:
  enum class Access : std::uint8_t { read, write };
  /// Throws TypeError for an object that has no such memory, and BufferError if its elements do not
  /// lie one after the other.
  Memory(nb::handle object, Access access);
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&&) = delete;
  ~Memory();
  [[nodiscard]] std::span<std::byte> span() const noexcept { return {begin_, bytes_}; }

 private:
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
  nb::object owner_;
  std::unique_ptr<Py_buffer> buffer_;
  std::shared_ptr<void> tensor_;
};

/// A bytes object with a copy of this; a long one is copied without the GIL.
[[nodiscard]] nb::bytes bytes_object(std::span<const std::byte> from);
[[nodiscard]] nb::bytes bytes_object(const std::string& from);

/// A time in seconds, in nanoseconds. None: `otherwise`. Throws ValueError for a negative one.
[[nodiscard]] std::uint64_t nanoseconds(std::optional<double> seconds, std::uint64_t otherwise);

}  // namespace dunlin::python
