#include "errors.hpp"

#include <array>
#include <cstddef>

namespace dunlin::python {
namespace {

using remote::Status;

// In the order of remote::Status; dunlin/errors.py knows a class for each.
constexpr std::array kStatusNames{
    "under_way", "ok",         "abandoned",    "timed_out",    "busy",           "lost",
    "stopped",   "no_room",    "half_written", "out_of_range", "misaligned",     "unknown",
    "released",  "name_taken", "not_allowed",  "not_held",     "already_held",   "full",
    "empty",     "refused",    "over_quota",   "not_kept",     "broken_promise", "too_long",
    "conflict",  "no_memory",  "changed",      "threw",        "overloaded"};
static_assert(kStatusNames.size() == static_cast<std::size_t>(Status::overloaded) + 1);

void set_error(const char* status, const char* text) {
  const nb::object error = nb::module_::import_("dunlin.errors").attr("make")(status, text);
  PyErr_SetObject(error.type().ptr(), error.ptr());
}

const char* name_of(Status status) noexcept {
  return kStatusNames.at(static_cast<std::size_t>(status));
}

}  // namespace

nb::object exception_of(const Failure& failure) {
  return nb::module_::import_("dunlin.errors")
      .attr("make")(name_of(failure.status), failure.text.c_str());
}

void bind_errors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const CallFailed& error) {
      set_error(name_of(error.failure().status), error.what());
    } catch (const Error& error) {
      set_error("", error.what());
    }
  });
}

}  // namespace dunlin::python
