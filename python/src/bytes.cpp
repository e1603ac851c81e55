#include "bytes.hpp"

#include <cmath>
#include <cstring>
#include <utility>

#include <nanobind/ndarray.h>

namespace dunlin::python {
namespace {

// A shorter copy takes less time than to give the GIL away and to get it back.
constexpr std::size_t kLongCopyBytes = 64 << 10;

[[noreturn]] void throw_type_error(nb::handle object, const char* expected) {
  throw nb::type_error(
      (std::string("expected ") + expected + ", not " + nb::inst_name(object).c_str()).c_str());
}

}  // namespace

std::span<const std::byte> text_or_bytes(nb::handle object, const char* what) {
  if (PyUnicode_Check(object.ptr())) {
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
    if (text == nullptr) nb::raise_python_error();
    return std::as_bytes(std::span(text, static_cast<std::size_t>(size)));
  }
  if (PyBytes_Check(object.ptr())) {
    char* bytes = nullptr;
    Py_ssize_t size = 0;
    PyBytes_AsStringAndSize(object.ptr(), &bytes, &size);
    return std::as_bytes(std::span(bytes, static_cast<std::size_t>(size)));
  }
  throw_type_error(object, what);
}

Memory::Memory(nb::handle object, Access access) : owner_(nb::borrow(object)) {
  if (access == Access::read && PyBytes_Check(object.ptr())) {
    char* bytes = nullptr;
    Py_ssize_t size = 0;
    PyBytes_AsStringAndSize(object.ptr(), &bytes, &size);
    begin_ = reinterpret_cast<std::byte*>(bytes);
    bytes_ = static_cast<std::size_t>(size);
    return;
  }
  if (PyObject_CheckBuffer(object.ptr())) {
    auto buffer = std::make_unique<Py_buffer>();
    const int flags =
        access == Access::write ? PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE : PyBUF_C_CONTIGUOUS;
    if (PyObject_GetBuffer(object.ptr(), buffer.get(), flags) != 0) nb::raise_python_error();
    begin_ = static_cast<std::byte*>(buffer->buf);
    bytes_ = static_cast<std::size_t>(buffer->len);
    buffer_ = std::move(buffer);
    return;
  }
  using Tensor = nb::ndarray<nb::c_contig, nb::device::cpu>;
  using ConstTensor = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
  const auto adopt = [&](auto tensor) {
    begin_ = static_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(tensor.data())));
    bytes_ = tensor.nbytes();
    tensor_ = std::make_shared<decltype(tensor)>(std::move(tensor));
  };
  if (access == Access::write) {
    if (Tensor tensor; nb::try_cast(object, tensor, false)) {
      adopt(std::move(tensor));
      return;
    }
    throw_type_error(object,
                     "a writable buffer or tensor, whose elements lie one after the other in "
                     "the memory of the CPU");
  }
  if (ConstTensor tensor; nb::try_cast(object, tensor, false)) {
    adopt(std::move(tensor));
    return;
  }
  throw_type_error(object,
                   "bytes, or a buffer or tensor whose elements lie one after the other in "
                   "the memory of the CPU");
}

Memory::Memory(Memory&& other) noexcept
    : begin_(other.begin_),
      bytes_(other.bytes_),
      owner_(std::move(other.owner_)),
      buffer_(std::move(other.buffer_)),
      tensor_(std::move(other.tensor_)) {}

Memory::~Memory() {
  if (buffer_) PyBuffer_Release(buffer_.get());
}

nb::bytes bytes_object(std::span<const std::byte> from) {
  if (from.size() < kLongCopyBytes) return nb::bytes(from.data(), from.size());
  PyObject* const made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(from.size()));
  if (made == nullptr) nb::raise_python_error();
  char* const to = PyBytes_AsString(made);
  {
    const nb::gil_scoped_release others_run;
    std::memcpy(to, from.data(), from.size());
  }
  return nb::steal<nb::bytes>(made);
}
nb::bytes bytes_object(const std::string& from) {
  return bytes_object(std::as_bytes(std::span(from)));
}

std::uint64_t nanoseconds(std::optional<double> seconds, std::uint64_t otherwise) {
  constexpr double kNsPerSecond = 1e9, kMost = 9e18;
  if (!seconds || std::isinf(*seconds)) return otherwise;
  if (!(*seconds >= 0)) throw nb::value_error("a time is a number of seconds, and not negative");
  const double ns = *seconds * kNsPerSecond;
  return ns >= kMost ? otherwise : static_cast<std::uint64_t>(ns);
}

}  // namespace dunlin::python
