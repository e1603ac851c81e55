#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dunlin/pubsub/cdr.hpp>
#include <dunlin/pubsub/type_shape.hpp>
#include <dunlin/pubsub/type_support.hpp>

/// A plain struct as the type of a topic, by reflection. Its members are numbers, enums, bools,
/// std::array, std::string, std::vector, std::optional, and structs of these.
///
///     struct Shape {
///       std::array<char, 16> color;
///       std::int32_t x, y;
///       using TopicKey = dunlin::pubsub::KeyOf<&Shape::color>;   // an instance a colour
///     };
///     struct Note {
///       std::string text;
///       static constexpr auto kExtensibility = dunlin::pubsub::Extensibility::appendable;
///     };
///
/// A struct of numbers, enums, bools and arrays of these travels as it is; others as XCDR2.
namespace dunlin::pubsub {

/// The members that tell the instances of a keyed topic apart.
template <auto... Members>
struct KeyOf {
  static constexpr bool kEmpty = sizeof...(Members) == 0;
};

namespace detail {

template <class T>
struct KeyOfType {
  using type = KeyOf<>;
};
template <class T>
requires requires { typename T::TopicKey; }
struct KeyOfType<T> {
  using type = typename T::TopicKey;
};

// --- the text ------------------------------------------------------------------------------------

template <class T>
constexpr std::string_view type_name() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  std::size_t begin = text.find("T = ") + 4;
  const std::size_t end = text.find_first_of(";]", begin);
  // The name must not depend on where in a file it is declared: {anonymous}::, (anonymous
  // namespace)::.
  if (const std::size_t hidden = text.rfind("}::", end); hidden != std::string_view::npos)
    begin = hidden + 3;
  if (const std::size_t hidden = text.rfind(")::", end);
      hidden != std::string_view::npos && hidden > begin)
    begin = hidden + 3;
  return text.substr(begin, end - begin);
}

template <class T>
void describe_value(std::string& to, const std::string& path, const std::string& note);

template <class T>
std::string struct_note() {
  return extensibility<T>() == Extensibility::appendable ? "appendable" : "final";
}

template <class T, auto... Keys>
bool is_key(const T& object, const void* member, KeyOf<Keys...>) {
  return ((static_cast<const void*>(&(object.*Keys)) == member) || ...);
}

template <class T>
void describe_members(std::string& to, const std::string& path) {
  const auto object = std::make_unique<T>();
  constexpr auto names = dunlin::detail::member_names<T>();
  std::apply(
      [&](const auto&... member) {
        std::size_t i = 0;
        (
            [&] {
              const void* const address = &member;
              std::string note;
              if constexpr (is_plain<T>())
                note = " @" + std::to_string(static_cast<const std::byte*>(address) -
                                             reinterpret_cast<const std::byte*>(object.get()));
              if (is_key(*object, address, typename KeyOfType<T>::type{})) note += " key";
              describe_value<std::remove_cvref_t<decltype(member)>>(
                  to, path + std::string(names[i++]), note);
            }(),
            ...);
      },
      tie_members(std::as_const(*object)));
}

template <class T>
void describe_value(std::string& to, const std::string& path, const std::string& note) {
  if constexpr (Number<T>) {
    to += path + " " + std::string(dunlin::describe(dunlin::detail::entry_type<T>())) + note + "\n";
  } else if constexpr (std::is_same_v<T, std::string>) {
    to += path + " string" + note + "\n";
  } else if constexpr (std::is_same_v<T, std::array<char, sizeof(T)>>) {
    to += path + " char*" + std::to_string(sizeof(T)) + note + "\n";
  } else if constexpr (Array<T>) {
    describe_value<typename ArrayTraits<T>::Element>(
        to, path + "[" + std::to_string(ArrayTraits<T>::kCount) + "]", note);
  } else if constexpr (Sequence<T>) {
    describe_value<typename SequenceTraits<T>::Element>(to, path + "[]", note);
  } else if constexpr (Optional<T>) {
    describe_value<typename OptionalTraits<T>::Value>(to, path + "?", note);
  } else {
    to += path + " " + std::string(type_name<T>()) + " " + struct_note<T>() + note + "\n";
    describe_members<T>(to, path + ".");
  }
}

template <class T>
std::string describe_type() {
  std::string text = std::string(type_name<T>()) + " " + struct_note<T>();
  if constexpr (is_plain<T>()) text += " plain " + std::to_string(sizeof(T));
  text += '\n';
  describe_members<T>(text, "");
  return text;
}

// --- keys ----------------------------------------------------------------------------------------

template <class T>
void append_key_value(const T& value, std::vector<std::byte>& to);

/// The key members in the order of their declaration, in which the type's text lists them, too.
template <class T, auto... Keys>
void append_keys(const T& object, std::vector<std::byte>& to, KeyOf<Keys...> keys) {
  const auto append = [&]<class M>(const M& member) {
    if constexpr ((std::is_same_v<M, std::remove_cvref_t<decltype(object.*Keys)>> || ...))
      if (is_key(object, &member, keys)) append_key_value(member, to);
  };
  std::apply([&](const auto&... member) { (append(member), ...); }, tie_members(object));
}

template <class T>
void append_key_value(const T& value, std::vector<std::byte>& to) {
  const auto append = [&to](const void* from, std::size_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(from);
    to.insert(to.end(), begin, begin + bytes);
  };
  if constexpr (Number<T>) {
    append(&value, sizeof value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    const std::size_t length = value.size();
    append(&length, sizeof length);
    append(value.data(), length);
  } else if constexpr (Array<T>) {
    for (const auto& element : value) append_key_value(element, to);
  } else if constexpr (Struct<T>) {
    if constexpr (KeyOfType<T>::type::kEmpty)
      std::apply([&](const auto&... m) { (append_key_value(m, to), ...); }, tie_members(value));
    else
      append_keys(value, to, typename KeyOfType<T>::type{});
  } else {
    static_assert(kAlwaysFalse<T>, "dunlin: a sequence or an optional cannot be part of a key.");
  }
}

// --- XCDR2 ---------------------------------------------------------------------------------------

template <class T>
void encode(cdr::Encoder& to, const T& value);
template <class T>
void decode(cdr::Decoder& from, T& value);

template <class T>
void encode_elements(cdr::Encoder& to, const T& elements) {
  if constexpr (Number<typename T::value_type>)
    return to.numbers(std::span<const typename T::value_type>(elements));
  for (const auto& element : elements) {
    if constexpr (Array<T> && Array<std::remove_cvref_t<decltype(element)>>)
      encode_elements(to, element);
    else
      encode(to, element);
  }
}

/// Whether a collection of such elements, and its inner dimensions, has no delimiter.
template <class T>
consteval bool is_bare_collection() {
  if constexpr (Array<T>)
    return Number<typename ArrayLeaf<T>::type>;
  else
    return Number<typename T::value_type>;
}

template <class T>
void encode(cdr::Encoder& to, const T& value) {
  if constexpr (Number<T>) {
    to.number(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    to.number(static_cast<std::uint32_t>(value.size() + 1));
    to.bytes(std::as_bytes(std::span(value.c_str(), value.size() + 1)));
  } else if constexpr (Array<T> || Sequence<T>) {
    const auto all = [&] {
      if constexpr (Sequence<T>) to.number(static_cast<std::uint32_t>(value.size()));
      encode_elements(to, value);
    };
    if constexpr (is_bare_collection<T>()) {
      all();
    } else {
      const std::size_t begin = to.begin_delimited();
      all();
      to.end_delimited(begin);
    }
  } else if constexpr (Optional<T>) {
    to.number(value.has_value());
    if (value) encode(to, *value);
  } else {
    const auto members = [&] {
      std::apply([&](const auto&... m) { (encode(to, m), ...); }, tie_members(value));
    };
    if constexpr (extensibility<T>() == Extensibility::appendable) {
      const std::size_t begin = to.begin_delimited();
      members();
      to.end_delimited(begin);
    } else {
      members();
    }
  }
}

/// Whether XCDR2 and memory have equal bytes for the elements of a sequence that is the last member
/// of a final struct: then the elements can be built in the ring.
template <class T>
consteval bool ends_with_sequence() {
  if constexpr (Struct<T> && extensibility<T>() == Extensibility::final_) {
    using Members = decltype(tie_members(std::declval<T&>()));
    using Last = std::remove_cvref_t<std::tuple_element_t<std::tuple_size_v<Members> - 1, Members>>;
    if constexpr (Sequence<Last>)
      return Number<typename Last::value_type> &&
             sizeof(typename Last::value_type) <= cdr::kMostAlignment;
    else
      return false;
  } else {
    return false;
  }
}
/// Encodes the sequence's elements.
template <class T>
struct LastElement {
  using Members = decltype(tie_members(std::declval<T&>()));
  using type = typename std::remove_cvref_t<
      std::tuple_element_t<std::tuple_size_v<Members> - 1, Members>>::value_type;
};
/// Encodes all members but the last sequence's elements.
template <class T>
void encode_head(cdr::Encoder& to, const T& value, std::size_t elements) {
  const auto members = tie_members(value);
  [&]<std::size_t... I>(std::index_sequence<I...>) { (encode(to, std::get<I>(members)), ...); }
  (std::make_index_sequence<std::tuple_size_v<decltype(members)> - 1>());
  to.number(static_cast<std::uint32_t>(elements));
}

/// The fewest bytes in which a value of the type is encoded.
template <class T>
consteval std::size_t least_encoded_bytes() {
  if constexpr (Number<T>) {
    return sizeof(T);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return sizeof(std::uint32_t) + 1;
  } else if constexpr (Array<T>) {
    return ArrayTraits<T>::kCount * least_encoded_bytes<typename ArrayTraits<T>::Element>();
  } else if constexpr (Optional<T>) {
    return 1;
  } else if constexpr (Sequence<T> || extensibility<T>() == Extensibility::appendable) {
    return sizeof(std::uint32_t);
  } else {
    using Members = decltype(tie_members(std::declval<T&>()));
    return []<class... M>(std::tuple<M&...>*) {
      return (least_encoded_bytes<M>() + ...);
    }(static_cast<Members*>(nullptr));
  }
}

template <class T>
void decode_elements(cdr::Decoder& from, T& value) {
  if constexpr (Sequence<T>) {
    using Element = typename SequenceTraits<T>::Element;
    constexpr std::size_t kLeast = std::max<std::size_t>(least_encoded_bytes<Element>(), 1);
    const std::uint32_t count = from.number<std::uint32_t>();
    // A length that cannot be true must not allocate anything.
    if (!from.reserve(count, sizeof(Element), kLeast)) return;
    value.resize(count);
  }
  using Value = typename T::value_type;
  if constexpr (Number<Value> && !std::is_same_v<Value, bool>)
    return from.numbers(std::span<Value>(value));
  for (auto& element : value) {
    if (!from.good()) return;
    if constexpr (Array<T> && Array<std::remove_cvref_t<decltype(element)>>)
      decode_elements(from, element);
    else
      decode(from, element);
  }
}

template <class T>
void decode(cdr::Decoder& from, T& value) {
  if constexpr (Number<T>) {
    value = from.number<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    const auto bytes = from.bytes(from.number<std::uint32_t>());
    if (bytes.empty() || bytes.back() != std::byte{}) return from.fail();
    value.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size() - 1);
  } else if constexpr (Array<T> || Sequence<T>) {
    if constexpr (is_bare_collection<T>()) {
      decode_elements(from, value);
    } else {
      const std::size_t outer = from.begin_delimited();
      decode_elements(from, value);
      from.end_delimited(outer);
    }
  } else if constexpr (Optional<T>) {
    value.reset();
    if (from.number<bool>()) decode(from, value.emplace());
  } else if constexpr (extensibility<T>() == Extensibility::appendable) {
    const std::size_t outer = from.begin_delimited();
    const auto member = [&from](auto& m) {
      // The sender's type does not have this member yet.
      if (from.at_end())
        m = {};
      else
        decode(from, m);
    };
    std::apply([&](auto&... m) { (member(m), ...); }, tie_members(value));
    from.end_delimited(outer);
  } else {
    std::apply([&](auto&... m) { (decode(from, m), ...); }, tie_members(value));
  }
}

template <class T>
TypeSupport make_type_support() {
  static_assert(check_topic_type<T>());
  static_assert(alignof(T) <= kWordBytes,
                "dunlin: a sample lies at a multiple of 8 bytes: its type cannot be aligned to "
                "more.");
  TypeSupport type{.name = std::string(type_name<T>()),
                   .text = describe_type<T>(),
                   .extensibility = extensibility<T>(),
                   .plain = is_plain<T>(),
                   .keyed = !KeyOfType<T>::type::kEmpty,
                   .bytes = sizeof(T)};
  type.make = []() -> void* { return new T{}; };
  type.destroy = [](void* object) noexcept { delete static_cast<T*>(object); };
  type.copy = [](void* to, const void* from) {
    *static_cast<T*>(to) = *static_cast<const T*>(from);
  };
  if constexpr (!KeyOfType<T>::type::kEmpty)
    type.append_key = [](const void* object, std::vector<std::byte>& to) {
      append_keys(*static_cast<const T*>(object), to, typename KeyOfType<T>::type{});
    };
  if constexpr (is_plain<T>()) {
    if constexpr (has_bool<T>())
      type.valid = [](const void* bytes) noexcept {
        return bools_are_valid(*static_cast<const T*>(bytes));
      };
  } else {
    type.encode = [](const void* object, std::vector<std::byte>& to) {
      constexpr bool kDelimited = extensibility<T>() == Extensibility::appendable;
      cdr::Encoder encoder(to, kDelimited);
      detail::encode(encoder, *static_cast<const T*>(object));
      encoder.finish();
    };
    if constexpr (ends_with_sequence<T>()) {
      type.element_bytes = sizeof(typename LastElement<T>::type);
      type.encode_head = [](const void* object, std::size_t elements, std::vector<std::byte>& to) {
        cdr::Encoder encoder(to, false);
        detail::encode_head(encoder, *static_cast<const T*>(object), elements);
      };
    }
    type.decode = [](std::span<const std::byte> from, void* object) {
      cdr::Decoder decoder(from);
      if (decoder.delimited() != (extensibility<T>() == Extensibility::appendable)) return false;
      detail::decode(decoder, *static_cast<T*>(object));
      return decoder.good();
    };
  }
  return type;
}

}  // namespace detail

template <class T>
[[nodiscard]] std::shared_ptr<const TypeSupport> type_support() {
  static const auto type = std::make_shared<const TypeSupport>(detail::make_type_support<T>());
  return type;
}

}  // namespace dunlin::pubsub
