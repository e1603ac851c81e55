#include <algorithm>
#include <cstring>

#include <nanobind/stl/string.h>

#include "bytes.hpp"
#include "numbers.hpp"
#include "topic_type.hpp"

/// Objects of a TopicType as bytes: in the memory of a plain type, or as XCDR2 (pubsub/cdr.hpp).
namespace dunlin::python {
namespace {

using Kind = TopicNode::Kind;
using pubsub::cdr::Decoder;
using pubsub::cdr::Encoder;

/// A text may have bytes that are no UTF-8: they go into a str and back out of it.
constexpr const char* kOtherBytes = "surrogateescape";

[[nodiscard]] nb::handle helper(const char* name) {
  return nb::module_::import_("dunlin._types").attr(name).inc_ref();
}
/// The numbers of an object as one array of that dtype, whose elements lie one after the other.
[[nodiscard]] nb::object numbers_of(const TopicNode& node, nb::handle object) {
  static const nb::handle kAsNumbers = helper("as_numbers");
  return kAsNumbers(object, node.dtype, node.shape, node.name);
}
[[nodiscard]] nb::object empty_array(const TopicNode& node, std::size_t count) {
  static const nb::handle kEmptyNumbers = helper("empty_numbers");
  if (node.dimensions.empty()) return kEmptyNumbers(nb::make_tuple(count), node.dtype);
  return kEmptyNumbers(node.shape, node.dtype);
}

[[nodiscard]] nb::object member_of(nb::handle object, const TopicNode& parent, std::size_t i) {
  return nb::getattr(object, nb::borrow<nb::tuple>(parent.names)[i]);
}

/// The bytes of a str.
[[nodiscard]] nb::object utf8_of(const TopicNode& node, nb::handle object) {
  if (PyBytes_Check(object.ptr())) return nb::borrow(object);
  if (!PyUnicode_Check(object.ptr()))
    throw nb::type_error(
        (node.name + ": expected str, not " + nb::inst_name(object).c_str()).c_str());
  return nb::steal(
      nb::detail::raise_if_null(PyUnicode_AsEncodedString(object.ptr(), "utf-8", kOtherBytes)));
}
[[nodiscard]] nb::object str_of(const char* text, std::size_t bytes) {
  return nb::steal(nb::detail::raise_if_null(
      PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(bytes), kOtherBytes)));
}

[[nodiscard]] std::size_t length_of(const TopicNode& node, nb::handle object) {
  const Py_ssize_t length = PyObject_Length(object.ptr());
  if (length < 0) nb::raise_python_error();
  if (node.kind == Kind::array && static_cast<std::size_t>(length) != node.count)
    throw nb::value_error((node.name + ": expected " + std::to_string(node.count) +
                           " elements, not " + std::to_string(length))
                              .c_str());
  return static_cast<std::size_t>(length);
}

[[nodiscard]] nb::object made_number(const TopicNode& node, nb::object number) {
  return node.make.is_valid() ? node.make(number) : number;
}

/// The dataclass with these members.
[[nodiscard]] nb::object make_struct(const TopicNode& node,
                                     const std::vector<nb::object>& members) {
  std::vector<PyObject*> arguments;
  arguments.reserve(members.size());
  for (const nb::object& member : members) arguments.push_back(member.ptr());
  PyObject* const made =
      PyObject_Vectorcall(node.make.ptr(), arguments.data(), 0, node.names.ptr());
  return nb::steal(nb::detail::raise_if_null(made));
}

void check_text(const TopicNode& node, std::size_t bytes) {
  if (bytes > node.count)
    throw nb::value_error((node.name + ": a text of " + std::to_string(bytes) + " bytes; at most " +
                           std::to_string(node.count) + " fit")
                              .c_str());
}

}  // namespace

// --- the memory of a plain type ------------------------------------------------------------------

void store_plain(const TopicNode& node, nb::handle object, std::byte* at) {
  switch (node.kind) {
    case Kind::number:
      return with_number(node.number, [&]<class T>() {
        const T value = number_from<T>(object, node.name);
        std::memcpy(at, &value, sizeof value);
      });
    case Kind::text: {
      const nb::object text = utf8_of(node, object);
      const auto bytes = text_or_bytes(text, "str");
      check_text(node, bytes.size());
      if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
      return;
    }
    case Kind::numbers: {
      const nb::object array = numbers_of(node, object);
      const Memory memory(array, Memory::Access::read);
      std::memcpy(at, memory.span().data(), node.bytes);
      return;
    }
    case Kind::array:
      for (std::size_t i = 0, count = length_of(node, object); i < count; ++i)
        store_plain(node.inner[0], nb::object(object[i]), at + i * node.inner[0].bytes);
      return;
    default:
      for (std::size_t i = 0; i < node.inner.size(); ++i)
        store_plain(node.inner[i], member_of(object, node, i), at + node.inner[i].offset);
  }
}

nb::object load_plain(const TopicNode& node, const std::byte* at) {
  switch (node.kind) {
    case Kind::number:
      return made_number(node, with_number(node.number, [&]<class T>() {
                           T value;
                           std::memcpy(&value, at, sizeof value);
                           return number_to(value);
                         }));
    case Kind::text: {
      const char* const text = reinterpret_cast<const char*>(at);
      return str_of(text, strnlen(text, node.count));
    }
    case Kind::numbers: {
      nb::object array = empty_array(node, node.count);
      std::memcpy(Memory(array, Memory::Access::write).span().data(), at, node.bytes);
      return array;
    }
    case Kind::array: {
      nb::list elements;
      for (std::size_t i = 0; i < node.count; ++i)
        elements.append(load_plain(node.inner[0], at + i * node.inner[0].bytes));
      return elements;
    }
    default: {
      std::vector<nb::object> members;
      members.reserve(node.inner.size());
      for (const TopicNode& member : node.inner)
        members.push_back(load_plain(member, at + member.offset));
      return make_struct(node, members);
    }
  }
}

// --- XCDR2 ---------------------------------------------------------------------------------------

namespace {

void encode_elements(const TopicNode& node, nb::handle object, Encoder& to) {
  const TopicNode& element = node.inner[0];
  const std::size_t count = length_of(node, object);
  if (node.kind == Kind::sequence) to.number(static_cast<std::uint32_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    const nb::object one = object[i];
    if (node.kind == Kind::array && element.kind == Kind::array)
      encode_elements(element, one, to);  // an inner dimension has no delimiter
    else
      encode(element, one, to);
  }
}

void encode_numbers(const TopicNode& node, nb::handle object, Encoder& to) {
  const nb::object array = numbers_of(node, object);
  const Memory memory(array, Memory::Access::read);
  const std::span<std::byte> numbers = memory.span();
  if (node.dimensions.empty())
    to.number(static_cast<std::uint32_t>(numbers.size() / node.alignment));
  if (numbers.empty()) return;
  to.align(node.alignment);
  to.bytes(numbers);
}

void encode_text(const TopicNode& node, nb::handle object, Encoder& to) {
  const nb::object text = utf8_of(node, object);
  const auto bytes = text_or_bytes(text, "str");
  if (node.kind == Kind::string) {
    to.number(static_cast<std::uint32_t>(bytes.size() + 1));
    to.bytes(bytes);
    to.number(std::uint8_t{0});
    return;
  }
  check_text(node, bytes.size());
  to.bytes(bytes);
  const std::vector<std::byte> rest(node.count - bytes.size());
  to.bytes(rest);
}

}  // namespace

void encode(const TopicNode& node, nb::handle object, Encoder& to) {
  switch (node.kind) {
    case Kind::number:
      return with_number(node.number,
                         [&]<class T>() { to.number(number_from<T>(object, node.name)); });
    case Kind::string:
    case Kind::text:
      return encode_text(node, object, to);
    case Kind::bytes: {
      const Memory memory(object, Memory::Access::read);
      to.number(static_cast<std::uint32_t>(memory.span().size()));
      return to.bytes(memory.span());
    }
    case Kind::numbers:
      return encode_numbers(node, object, to);
    case Kind::array:
    case Kind::sequence: {
      if (is_bare(node)) return encode_elements(node, object, to);
      const std::size_t begin = to.begin_delimited();
      encode_elements(node, object, to);
      return to.end_delimited(begin);
    }
    case Kind::optional:
      to.number(!object.is_none());
      if (!object.is_none()) encode(node.inner[0], object, to);
      return;
    case Kind::structure: {
      const std::size_t begin = node.appendable ? to.begin_delimited() : 0;
      for (std::size_t i = 0; i < node.inner.size(); ++i)
        encode(node.inner[i], member_of(object, node, i), to);
      if (node.appendable) to.end_delimited(begin);
    }
  }
}

namespace {

/// The fewest bytes in which a value is encoded.
[[nodiscard]] std::size_t least_bytes(const TopicNode& node) {
  switch (node.kind) {
    case Kind::number:
    case Kind::text:
      return node.bytes;
    case Kind::numbers:
      return node.dimensions.empty() ? sizeof(std::uint32_t) : node.bytes;
    case Kind::string:
      return sizeof(std::uint32_t) + 1;
    case Kind::optional:
      return 1;
    case Kind::array:
      return node.count * least_bytes(node.inner[0]);
    case Kind::structure: {
      if (node.appendable) return sizeof(std::uint32_t);
      std::size_t bytes = 0;
      for (const TopicNode& member : node.inner) bytes += least_bytes(member);
      return bytes;
    }
    default:
      return sizeof(std::uint32_t);
  }
}

/// The value of a member that the sender's type does not have yet.
[[nodiscard]] nb::object absent_value(const TopicNode& node) {
  switch (node.kind) {
    case Kind::number:
      return made_number(node, with_number(node.number, []<class T>() { return number_to(T{}); }));
    case Kind::string:
    case Kind::text:
      return nb::str("");
    case Kind::bytes:
      return nb::bytes("", 0);
    case Kind::numbers: {
      nb::object array = empty_array(node, 0);
      const Memory memory(array, Memory::Access::write);
      if (!memory.span().empty()) std::memset(memory.span().data(), 0, memory.span().size());
      return array;
    }
    case Kind::array: {
      nb::list elements;
      for (std::size_t i = 0; i < node.count; ++i) elements.append(absent_value(node.inner[0]));
      return elements;
    }
    case Kind::sequence:
      return nb::list();
    case Kind::optional:
      return nb::none();
    default: {
      std::vector<nb::object> members;
      for (const TopicNode& member : node.inner) members.push_back(absent_value(member));
      return make_struct(node, members);
    }
  }
}

[[nodiscard]] nb::object decode_elements(const TopicNode& node, Decoder& from) {
  const TopicNode& element = node.inner[0];
  std::size_t count = node.count;
  if (node.kind == Kind::sequence) {
    count = from.number<std::uint32_t>();
    // A length that cannot be true must not allocate anything.
    if (!from.reserve(count, sizeof(PyObject*), std::max<std::size_t>(least_bytes(element), 1)))
      return {};
  }
  nb::list elements;
  for (std::size_t i = 0; i < count; ++i) {
    if (!from.good()) return {};
    nb::object one = node.kind == Kind::array && element.kind == Kind::array
                         ? decode_elements(element, from)
                         : decode(element, from);
    if (!one.is_valid()) return {};
    elements.append(one);
  }
  return elements;
}

[[nodiscard]] nb::object decode_numbers(const TopicNode& node, Decoder& from) {
  std::size_t count = node.count;
  if (node.dimensions.empty()) count = from.number<std::uint32_t>();
  if (count > from.left()) from.fail();
  if (!from.good()) return {};
  if (count > 0) from.align(node.alignment);
  const auto numbers = from.bytes(count * node.alignment);
  if (!from.good()) return {};
  const auto is_bool = [](std::byte byte) { return byte <= std::byte{1}; };
  if (node.number == EntryType::boolean && !std::ranges::all_of(numbers, is_bool)) {
    from.fail();
    return {};
  }
  nb::object array = empty_array(node, count);
  if (!numbers.empty())
    std::memcpy(Memory(array, Memory::Access::write).span().data(), numbers.data(), numbers.size());
  return array;
}

[[nodiscard]] nb::object decode_text(const TopicNode& node, Decoder& from) {
  if (node.kind == Kind::text) {
    const auto bytes = from.bytes(node.count);
    if (!from.good()) return {};
    const char* const text = reinterpret_cast<const char*>(bytes.data());
    return str_of(text, strnlen(text, bytes.size()));
  }
  const auto bytes = from.bytes(from.number<std::uint32_t>());
  if (!from.good() || bytes.empty() || bytes.back() != std::byte{}) {
    from.fail();
    return {};
  }
  return str_of(reinterpret_cast<const char*>(bytes.data()), bytes.size() - 1);
}

[[nodiscard]] nb::object decode_struct(const TopicNode& node, Decoder& from) {
  const std::size_t outer = node.appendable ? from.begin_delimited() : 0;
  std::vector<nb::object> members;
  members.reserve(node.inner.size());
  for (const TopicNode& member : node.inner) {
    members.push_back(node.appendable && from.at_end() ? absent_value(member)
                                                       : decode(member, from));
    if (!from.good() || !members.back().is_valid()) return {};
  }
  if (node.appendable) from.end_delimited(outer);
  return make_struct(node, members);
}

}  // namespace

nb::object decode(const TopicNode& node, Decoder& from) {
  switch (node.kind) {
    case Kind::number:
      return with_number(node.number, [&]<class T>() -> nb::object {
        const T value = from.number<T>();
        return from.good() ? made_number(node, number_to(value)) : nb::object();
      });
    case Kind::string:
    case Kind::text:
      return decode_text(node, from);
    case Kind::bytes: {
      const auto bytes = from.bytes(from.number<std::uint32_t>());
      return from.good() ? nb::object(nb::bytes(bytes.data(), bytes.size())) : nb::object();
    }
    case Kind::numbers:
      return decode_numbers(node, from);
    case Kind::array:
    case Kind::sequence: {
      if (is_bare(node)) return decode_elements(node, from);
      const std::size_t outer = from.begin_delimited();
      nb::object elements = decode_elements(node, from);
      if (elements.is_valid()) from.end_delimited(outer);
      return elements;
    }
    case Kind::optional:
      return from.number<bool>() ? decode(node.inner[0], from) : nb::object(nb::none());
    default:
      return decode_struct(node, from);
  }
}

}  // namespace dunlin::python
