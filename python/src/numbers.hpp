#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <nanobind/nanobind.h>

#include <dunlin/table/entry_type.hpp>

/// Numbers of the library's types, from Python and to Python. All functions require the GIL.
namespace dunlin::python {

namespace nb = nanobind;

/// Calls `use.template operator()<T>()` with the type of numbers.
template <class Use>
decltype(auto) with_number(EntryType type, Use&& use) {
  switch (type) {
    case EntryType::boolean:
      return use.template operator()<bool>();
    case EntryType::i8:
      return use.template operator()<std::int8_t>();
    case EntryType::i16:
      return use.template operator()<std::int16_t>();
    case EntryType::i32:
      return use.template operator()<std::int32_t>();
    case EntryType::i64:
      return use.template operator()<std::int64_t>();
    case EntryType::u8:
      return use.template operator()<std::uint8_t>();
    case EntryType::u16:
      return use.template operator()<std::uint16_t>();
    case EntryType::u32:
      return use.template operator()<std::uint32_t>();
    case EntryType::u64:
      return use.template operator()<std::uint64_t>();
    case EntryType::f32:
      return use.template operator()<float>();
    default:
      return use.template operator()<double>();
  }
}

/// The type of that name, such as "i32". Throws ValueError.
[[nodiscard]] EntryType number_named(const std::string& name);
[[nodiscard]] std::size_t number_bytes(EntryType type);

[[noreturn]] void throw_no_number(nb::handle object, EntryType type, const std::string& what);

/// The number in a Python object: of Python's types, or a scalar of numpy. Throws TypeError or
/// OverflowError, which names `what`.
template <class T>
[[nodiscard]] T number_from(nb::handle object, const std::string& what) {
  constexpr EntryType kType = dunlin::detail::entry_type<T>();
  if constexpr (std::is_same_v<T, bool>) {
    const int truth = PyObject_IsTrue(object.ptr());
    if (truth < 0) nb::raise_python_error();
    return truth == 1;
  } else if constexpr (std::floating_point<T>) {
    const double value = PyFloat_AsDouble(object.ptr());
    if (value == -1.0 && PyErr_Occurred() != nullptr) throw_no_number(object, kType, what);
    return static_cast<T>(value);
  } else {
    const nb::object index = nb::steal(PyNumber_Index(object.ptr()));
    if (!index.is_valid()) throw_no_number(object, kType, what);
    using Wide = std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>;
    const Wide value = [&] {
      if constexpr (std::is_signed_v<T>)
        return PyLong_AsLongLong(index.ptr());
      else
        return PyLong_AsUnsignedLongLong(index.ptr());
    }();
    const bool is_out = value == static_cast<Wide>(-1) && PyErr_Occurred() != nullptr;
    if (is_out || value < static_cast<Wide>(std::numeric_limits<T>::lowest()) ||
        value > static_cast<Wide>(std::numeric_limits<T>::max()))
      throw_no_number(object, kType, what);
    return static_cast<T>(value);
  }
}

template <class T>
[[nodiscard]] nb::object number_to(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return nb::bool_(value);
  else if constexpr (std::floating_point<T>)
    return nb::float_(static_cast<double>(value));
  else if constexpr (std::is_signed_v<T>)
    return nb::steal(PyLong_FromLongLong(value));
  else
    return nb::steal(PyLong_FromUnsignedLongLong(value));
}

}  // namespace dunlin::python
