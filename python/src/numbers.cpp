#include "numbers.hpp"

#include <array>

namespace dunlin::python {

EntryType number_named(const std::string& name) {
  for (int type = 0; type <= static_cast<int>(EntryType::f64); ++type)
    if (describe(static_cast<EntryType>(type)) == name) return static_cast<EntryType>(type);
  throw nb::value_error(("there is no type of numbers '" + name + "'").c_str());
}

std::size_t number_bytes(EntryType type) {
  return with_number(type, []<class T>() { return sizeof(T); });
}

void throw_no_number(nb::handle object, EntryType type, const std::string& what) {
  const bool is_none = PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_TypeError) != 0;
  PyErr_Clear();
  const std::string text =
      what + ": " + nb::repr(object).c_str() + " is no " + std::string(describe(type));
  PyErr_SetString(is_none ? PyExc_TypeError : PyExc_OverflowError, text.c_str());
  throw nb::python_error();
}

}  // namespace dunlin::python
