#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dunlin/limits.hpp>

/// The members of a plain struct, with their names, without a macro: members are counted by
/// brace-initialisation of the struct, reached by structured bindings, and named by the compiler's
/// text of a pointer to them. (The technique is Antony Polukhin's, of Boost.PFR.)
namespace dunlin::detail {

struct AnyMember {
  template <class U>
  constexpr operator U() const noexcept;
};
template <std::size_t>
using Member = AnyMember;

template <class Row, std::size_t... I>
consteval bool takes_members(std::index_sequence<I...>) {
  return requires { Row{Member<I>{}...}; };
}
template <class Row, std::size_t N = 0>
consteval std::size_t member_count() {
  if constexpr (N > kMaxColumns || !takes_members<Row>(std::make_index_sequence<N + 1>{})) {
    return N;
  } else {
    return member_count<Row, N + 1>();
  }
}

template <class Row, std::size_t... Before, std::size_t... After>
consteval bool is_c_array(std::index_sequence<Before...>, std::index_sequence<After...>) {
  if constexpr (requires { Row{Member<Before>{}..., {AnyMember{}, AnyMember{}}}; }) {
    return !requires { Row{Member<Before>{}..., {AnyMember{}, AnyMember{}}, Member<After>{}...}; };
  }
  return false;
}
/// Whether a member is a C array. Brace elision counts its elements as members: with its own
/// braces, it leaves fewer initialisers for the members after it.
template <class Row, std::size_t... I>
consteval bool has_c_array(std::index_sequence<I...>) {
  return (is_c_array<Row>(std::make_index_sequence<I>{},
                          std::make_index_sequence<sizeof...(I) - I - 1>{}) ||
          ...);
}

template <class Row>
struct AnyBase {
  template <class U>
  requires(std::is_base_of_v<U, Row> && !std::is_same_v<U, Row>) constexpr operator U()
      const noexcept;
};
/// Whether a struct inherits: an initialiser for its base comes first.
template <class Row>
consteval bool has_base() {
  return requires { Row{AnyBase<Row>{}}; };
}

/// A tuple of references to the members of `row`.
// clang-format off
template <class Row>
constexpr auto tie_members(Row& row) noexcept {  // NOLINT(readability-function-size)
  constexpr std::size_t kCount = member_count<std::remove_const_t<Row>>();
  if constexpr (kCount == 1) {
    auto& [m0] = row;
    return std::tie(m0);
  } else if constexpr (kCount == 2) {
    auto& [m0, m1] = row;
    return std::tie(m0, m1);
  } else if constexpr (kCount == 3) {
    auto& [m0, m1, m2] = row;
    return std::tie(m0, m1, m2);
  } else if constexpr (kCount == 4) {
    auto& [m0, m1, m2, m3] = row;
    return std::tie(m0, m1, m2, m3);
  } else if constexpr (kCount == 5) {
    auto& [m0, m1, m2, m3, m4] = row;
    return std::tie(m0, m1, m2, m3, m4);
  } else if constexpr (kCount == 6) {
    auto& [m0, m1, m2, m3, m4, m5] = row;
    return std::tie(m0, m1, m2, m3, m4, m5);
  } else if constexpr (kCount == 7) {
    auto& [m0, m1, m2, m3, m4, m5, m6] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6);
  } else if constexpr (kCount == 8) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7);
  } else if constexpr (kCount == 9) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8);
  } else if constexpr (kCount == 10) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9);
  } else if constexpr (kCount == 11) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10);
  } else if constexpr (kCount == 12) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11);
  } else if constexpr (kCount == 13) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12);
  } else if constexpr (kCount == 14) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13);
  } else if constexpr (kCount == 15) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14);
  } else if constexpr (kCount == 16) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15);
  } else if constexpr (kCount == 17) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16);
  } else if constexpr (kCount == 18) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17);
  } else if constexpr (kCount == 19) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18);
  } else if constexpr (kCount == 20) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19);
  } else if constexpr (kCount == 21) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20);
  } else if constexpr (kCount == 22) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21);
  } else if constexpr (kCount == 23) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22);
  } else if constexpr (kCount == 24) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23);
  } else if constexpr (kCount == 25) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24);
  } else if constexpr (kCount == 26) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25);
  } else if constexpr (kCount == 27) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26);
  } else if constexpr (kCount == 28) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27);
  } else if constexpr (kCount == 29) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28);
  } else if constexpr (kCount == 30) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29);
  } else if constexpr (kCount == 31) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30);
  } else if constexpr (kCount == 32) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31] = row;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31);
  }
}
// clang-format on

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif

/// Declares an object that exists only by its address.
template <class Row>
struct Nowhere {
  Row row;
};
template <class Row>
extern const Nowhere<Row> kNowhere;

template <class M>
struct MemberAddress {
  const M* at;
};

template <auto Address>
consteval std::string_view printed() {
  return __PRETTY_FUNCTION__;
}
template <class M, MemberAddress<M> Address>
consteval std::string_view member_name() {
  // "... (& kNowhere<Row>.Nowhere<Row>::row.Row::NAME)} ..." or "{&kNowhere.row.NAME} ...", where
  // Row may have braces of its own: "{anonymous}::Row".
  constexpr std::string_view text = printed<Address>();
  constexpr std::size_t end = text.find_last_not_of(")}", text.rfind('}')) + 1;
  constexpr std::size_t begin = text.find_last_of(":.", end) + 1;
  return text.substr(begin, end - begin);
}

template <class Row, std::size_t... I>
consteval auto member_names(std::index_sequence<I...>) {
  constexpr auto members = tie_members(kNowhere<Row>.row);
  return std::array<std::string_view, sizeof...(I)>{
      member_name<std::remove_cvref_t<decltype(std::get<I>(members))>,
                  MemberAddress<std::remove_cvref_t<decltype(std::get<I>(members))>>{
                      std::addressof(std::get<I>(members))}>()...};
}
/// The names of the members, in order of declaration.
template <class Row>
consteval auto member_names() {
  return member_names<Row>(std::make_index_sequence<member_count<Row>()>{});
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

}  // namespace dunlin::detail
