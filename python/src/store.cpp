#include <algorithm>
#include <deque>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bytes.hpp"
#include "calls.hpp"
#include "handles.hpp"

namespace dunlin::python {
namespace {

constexpr double kSecondsPerNs = 1e-9;
/// So many calls of get_many() and put_many() are under way at once.
constexpr std::size_t kManyAtOnce = 256;

struct Entry {
  nb::bytes value;
  std::uint64_t version;
  std::optional<double> ttl;
};

StoreKey key_of(nb::handle key) { return text_or_bytes(key, "a key of str or bytes"); }

/// The bytes as the text that the library takes.
[[nodiscard]] std::string_view text_of(const Memory& memory) {
  return {reinterpret_cast<const char*>(memory.span().data()), memory.span().size()};
}

nb::object version_of(const StoreChange& change) { return nb::cast(change.version); }
nb::object changed(const StoreChange& change) { return nb::bool_(change.changed); }

constexpr auto kGet = [](Store& store, nb::handle key, nb::object otherwise) {
  const StoreKey its_key = key_of(key);
  return Begun{begin_without_gil([&] { return store.handle.get(its_key); }),
               [otherwise = std::move(otherwise)](std::optional<StoreValue> value) -> nb::object {
                 if (!value) return otherwise;
                 return bytes_object(value->bytes);
               }};
};

/// Begins a change with a value: `change(handle, key, value)`. The call copies the value, or has
/// used it when it returns.
template <class Change, class Convert>
auto begin_change(Store& store, nb::handle key, nb::handle value, const Change& change,
                  const Convert& convert) {
  const StoreKey its_key = key_of(key);
  const Memory memory(value, Memory::Access::read);
  return Begun{begin_without_gil([&] { return change(store.handle, its_key, text_of(memory)); }),
               convert};
}

constexpr auto kPut = [](Store& store, nb::handle key, nb::handle value,
                         std::optional<double> ttl) {
  const std::uint64_t ttl_ns = nanoseconds(ttl, kNoExpiry);
  return begin_change(
      store, key, value,
      [ttl_ns](StoreHandle& handle, StoreKey k, std::string_view v) {
        return handle.put(k, v, ttl_ns);
      },
      &version_of);
};

void bind_reads(BoundHandle<Store>& bound) {
  bound.call("get", kGet, "self, key: str | bytes, default: Any = None", "bytes | Any",
             nb::arg("key"), nb::arg("default") = nb::none(),
             "A copy of the key's value; `default` if the key is absent.");
  bound.call(
      "entry",
      [](Store& store, nb::handle key) {
        const StoreKey its_key = key_of(key);
        return Begun{
            begin_without_gil([&] { return store.handle.get(its_key); }),
            [](std::optional<StoreValue> value) -> nb::object {
              if (!value) return nb::none();
              return nb::cast(Entry{bytes_object(value->bytes), value->version,
                                    value->ttl_ns == kNoExpiry
                                        ? std::optional<double>()
                                        : static_cast<double>(value->ttl_ns) * kSecondsPerNs});
            }};
      },
      "self, key: str | bytes", "Entry | None", nb::arg("key"),
      "The key's value with its version and time to live; None if the key is absent.");
  bound.call(
      "get_into",
      [](Store& store, nb::handle key, nb::handle buffer) {
        const StoreKey its_key = key_of(key);
        auto memory = std::make_unique<Memory>(buffer, Memory::Access::write);
        const std::span<std::byte> to = memory->span();
        return Begun{begin_without_gil([&] { return store.handle.get_into(its_key, to); }),
                     [memory = std::move(memory)](std::optional<std::size_t> bytes) -> nb::object {
                       if (!bytes) return nb::none();
                       return nb::cast(*bytes);
                     }};
      },
      "self, key: str | bytes, buffer: Buffer", "int | None", nb::arg("key"), nb::arg("buffer"),
      "Copies the value into a writable buffer or tensor (numpy, torch, bytearray, ...), and "
      "returns the "
      "value's size in bytes, of which the buffer has what fits. None, and an unchanged buffer, if "
      "the key "
      "is absent. The buffer belongs to the call until the call has ended.");
  bound.call(
      "count",
      [](Store& store) {
        return Begun{begin_without_gil([&] { return store.handle.count(); }),
                     [](std::uint64_t keys) -> nb::object { return nb::cast(keys); }};
      },
      "self", "int", "How many keys all members have.");
  bound.call(
      "scan",
      [](Store& store, std::uint64_t cursor, bool values) {
        return Begun{
            begin_without_gil([&] { return store.handle.scan(cursor, {.values = values}); }),
            [values](const StorePiece& piece) -> nb::object {
              nb::list entries;
              for (const StorePiece::Entry& entry : piece.entries)
                entries.append(
                    nb::make_tuple(bytes_object(entry.key),
                                   values ? nb::object(bytes_object(entry.value)) : nb::none()));
              return nb::make_tuple(piece.next, entries);
            }};
      },
      "self, cursor: int = 0, values: bool = True", "tuple[int, list[tuple[bytes, bytes | None]]]",
      nb::arg("cursor") = 0, nb::arg("values") = true,
      "A piece of a scan over the keys of all members, and the cursor of the next piece: 0 begins, "
      "and comes "
      "back with the last piece. A key that is there during the whole scan is in it exactly once.");
}

void bind_changes(BoundHandle<Store>& bound) {
  constexpr const char* kArguments =
      "self, key: str | bytes, value: Buffer, ttl: float | None = None";
  const auto key = nb::arg("key"), value = nb::arg("value");
  const auto ttl = nb::arg("ttl") = nb::none();
  bound.call("put", kPut, kArguments, "int", key, value, ttl,
             "Gives the key a value (bytes, or the memory of any buffer or tensor; at most 1 MB), "
             "and returns "
             "the key's new version. `ttl`: after so many seconds, the key is absent.");
  bound.call("put_from", kPut, "self, key: str | bytes, array: Buffer, ttl: float | None = None",
             "int", key, nb::arg("array"), ttl,
             "put(), under the name that belongs to get_into().");
  bound.call(
      "insert",
      [](Store& store, nb::handle k, nb::handle v, std::optional<double> seconds) {
        const std::uint64_t ttl_ns = nanoseconds(seconds, kNoExpiry);
        return begin_change(
            store, k, v,
            [ttl_ns](StoreHandle& handle, StoreKey its_key, std::string_view its_value) {
              return handle.insert(its_key, its_value, ttl_ns);
            },
            &changed);
      },
      kArguments, "bool", key, value, ttl, "Puts only if the key is absent; says whether it was.");
  bound.call(
      "replace",
      [](Store& store, nb::handle k, nb::handle v, std::optional<double> seconds) {
        const std::uint64_t ttl_ns = nanoseconds(seconds, kNoExpiry);
        return begin_change(
            store, k, v,
            [ttl_ns](StoreHandle& handle, StoreKey its_key, std::string_view its_value) {
              return handle.replace(its_key, its_value, ttl_ns);
            },
            &changed);
      },
      kArguments, "bool", key, value, ttl, "Puts only if the key is present; says whether it was.");
  bound.call(
      "compare_and_set",
      [](Store& store, nb::handle k, std::uint64_t version, nb::handle v,
         std::optional<double> seconds) {
        const std::uint64_t ttl_ns = nanoseconds(seconds, kNoExpiry);
        return begin_change(
            store, k, v,
            [=](StoreHandle& handle, StoreKey its_key, std::string_view its_value) {
              return handle.compare_and_set(its_key, version, its_value, ttl_ns);
            },
            [](const StoreChange& change) -> nb::object {
              return change.changed ? nb::object(nb::int_(change.version)) : nb::none();
            });
      },
      "self, key: str | bytes, version: int, value: Buffer, ttl: float | None = None", "int | None",
      key, nb::arg("version"), value, ttl,
      "Puts only if the key has this version (0: is absent). The new version, or None: nothing has "
      "changed.");
  bound.call(
      "erase",
      [](Store& store, nb::handle k) {
        const StoreKey its_key = key_of(k);
        return Begun{begin_without_gil([&] { return store.handle.erase(its_key); }), &changed};
      },
      "self, key: str | bytes", "bool", key, "Erases the key; says whether it was present.");
  bound.call(
      "expire",
      [](Store& store, nb::handle k, std::optional<double> seconds) {
        const StoreKey its_key = key_of(k);
        const std::uint64_t ttl_ns = nanoseconds(seconds, kNoExpiry);
        return Begun{begin_without_gil([&] { return store.handle.expire(its_key, ttl_ns); }),
                     &changed};
      },
      "self, key: str | bytes, ttl: float | None", "bool", key, nb::arg("ttl").none(),
      "Gives the key so many seconds to live, None: for ever. Says whether the key is present.");
}

/// Begins a call for each element with `begin(i)`, many at once, and ends each with `end(i,
/// value)`, in order.
template <class T, class Begin, class End>
void call_many(std::size_t count, const Begin& begin, const End& end) {
  std::deque<Future<T>> under_way;
  std::size_t ended = 0;
  const auto end_first = [&] {
    Future<T> first = std::move(under_way.front());
    under_way.pop_front();
    if (!first.ready())
      wait_without_gil([&](std::uint64_t ns) { return first.wait_for(ns); },
                       [&] { first.cancel(); });
    Result<T> result = first.result();
    if (!result) throw CallFailed(result.error());
    end(ended++, std::move(*result));
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (under_way.size() == kManyAtOnce) end_first();
    under_way.push_back(begin(i));
  }
  while (!under_way.empty()) end_first();
}

void bind_many(nb::class_<Store>& its_class) {
  its_class.def(
      "get_many",
      [](Store& store, nb::iterable keys) {
        const nb::list all(keys);
        nb::list values;
        call_many<std::optional<StoreValue>>(
            all.size(),
            [&](std::size_t i) {
              const nb::object its_key = all[i];
              const StoreKey key = key_of(its_key);
              return begin_without_gil([&] { return store.handle.get(key); });
            },
            [&](std::size_t, std::optional<StoreValue> value) {
              values.append(value ? nb::object(bytes_object(value->bytes)) : nb::none());
            });
        return values;
      },
      nb::arg("keys"),
      nb::sig("def get_many(self, keys: Iterable[str | bytes]) -> list[bytes | None]"),
      "The values of these keys, in their order; None for a key that is absent. Many gets are "
      "under way at once.");
  its_class.def(
      "_put_many",
      [](Store& store, nb::list keys, nb::list values, std::optional<double> ttl) {
        const std::uint64_t ttl_ns = nanoseconds(ttl, kNoExpiry);
        call_many<StoreChange>(
            keys.size(),
            [&](std::size_t i) {
              const nb::object its_key = keys[i], its_value = values[i];
              const StoreKey key = key_of(its_key);
              const Memory memory(its_value, Memory::Access::read);
              return begin_without_gil([&] {
                return store.handle.put(key, std::span<const std::byte>(memory.span()), ttl_ns);
              });
            },
            [](std::size_t, const StoreChange&) {});
      },
      nb::arg("keys"), nb::arg("values"), nb::arg("ttl") = nb::none());
}

void bind_dictionary(nb::class_<Store>& its_class) {
  its_class
      .def(
          "__getitem__",
          [](Store& store, nb::handle key) {
            nb::object value = wait_for(kGet(store, key, nb::none()));
            if (value.is_none()) {
              PyErr_SetObject(PyExc_KeyError, key.ptr());
              throw nb::python_error();
            }
            return value;
          },
          nb::sig("def __getitem__(self, key: str | bytes, /) -> bytes"))
      .def(
          "__setitem__",
          [](Store& store, nb::handle key, nb::handle value) {
            wait_for(kPut(store, key, value, std::nullopt));
          },
          nb::sig("def __setitem__(self, key: str | bytes, value: Buffer, /) -> None"))
      .def(
          "__delitem__",
          [](Store& store, nb::handle key) {
            const StoreKey its_key = key_of(key);
            const nb::object was_there = wait_for(
                Begun{begin_without_gil([&] { return store.handle.erase(its_key); }), &changed});
            if (nb::cast<bool>(was_there)) return;
            PyErr_SetObject(PyExc_KeyError, key.ptr());
            throw nb::python_error();
          },
          nb::sig("def __delitem__(self, key: str | bytes, /) -> None"))
      .def(
          "__contains__",
          [](Store& store, nb::handle key) {
            return !wait_for(kGet(store, key, nb::none())).is_none();
          },
          nb::sig("def __contains__(self, key: str | bytes, /) -> bool"))
      .def("__len__",
           [](Store& store) {
             return nb::cast<std::size_t>(
                 wait_for(Begun{begin_without_gil([&] { return store.handle.count(); }),
                                [](std::uint64_t keys) -> nb::object { return nb::cast(keys); }}));
           })
      .def("__bool__", [](Store&) { return true; })
      .def_prop_ro(
          "name", [](Store& store) { return store.name; }, "The store's name in the group.")
      .def("__repr__", [](Store& store) {
        return "<dunlin.Store '" + store.name + "' of group '" + store.state->group() +
               (store.state->node().ended() ? "': ended>" : "'>");
      });
}

// --- transactions --------------------------------------------------------------------------------

/// The transaction of a call of transact(), which is over when the call has ended.
struct PyTransaction {
  StoreHandle::Transaction* its = nullptr;
  [[nodiscard]] StoreHandle::Transaction& open() const {
    if (its != nullptr) return *its;
    throw Error("store: transact: this transaction has ended; use it in the function only");
  }
};

/// Ends the wait of a transaction if a signal's handler throws.
void handle_signals() {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

/// Calls the function with a transaction, and commits it; returns what the last call returned.
nb::object transact(Store& store, nb::callable function, std::uint32_t attempts) {
  nb::object returned = nb::none();
  const auto call = [&](StoreHandle::Transaction& transaction) {
    const nb::gil_scoped_acquire gil;
    const nb::object open = nb::cast(PyTransaction{&transaction});
    const auto close = [&] { nb::inst_ptr<PyTransaction>(open)->its = nullptr; };
    try {
      returned = function(open);
    } catch (...) {
      close();
      throw;
    }
    close();
  };
  const Result<void> result =
      begin_without_gil([&] { return store.handle.transact(call, attempts, &handle_signals); });
  if (!result) throw CallFailed(result.error());
  return returned;
}

/// A method that gives a key a value by put() or insert() of the transaction.
[[nodiscard]] auto change_of(void (StoreHandle::Transaction::*change)(StoreKey, std::string_view,
                                                                      std::uint64_t)) {
  return [change](PyTransaction& its, nb::handle key, nb::handle value, std::optional<double> ttl) {
    const std::uint64_t ttl_ns = nanoseconds(ttl, kNoExpiry);
    const Memory memory(value, Memory::Access::read);
    const StoreKey its_key = key_of(key);
    StoreHandle::Transaction& open = its.open();
    begin_without_gil([&] { (open.*change)(its_key, text_of(memory), ttl_ns); });
  };
}

void bind_transactions(nb::module_& module, nb::class_<Store>& its_class) {
  const auto key = nb::arg("key");
  nb::class_<PyTransaction>(
      module, "Transaction",
      "Reads and changes several keys of a Store as one: see Store.transact().")
      .def(
          "get",
          [](PyTransaction& its, nb::handle k, nb::object otherwise) {
            const StoreKey its_key = key_of(k);
            StoreHandle::Transaction& open = its.open();
            const auto value = begin_without_gil([&] { return open.get(its_key); });
            return value ? nb::object(bytes_object(*value)) : otherwise;
          },
          key, nb::arg("default") = nb::none(),
          nb::sig("def get(self, key: str | bytes, default: Any = None) -> bytes | Any"),
          "Waits for a copy of the key's value, which may be one of this transaction; `default` if "
          "the key is absent.")
      .def("put", change_of(&StoreHandle::Transaction::put), key, nb::arg("value"),
           nb::arg("ttl") = nb::none(),
           nb::sig(
               "def put(self, key: str | bytes, value: Buffer, ttl: float | None = None) -> None"),
           "Gives the key this value when the transaction commits.")
      .def("insert", change_of(&StoreHandle::Transaction::insert), key, nb::arg("value"),
           nb::arg("ttl") = nb::none(),
           nb::sig("def insert(self, key: str | bytes, value: Buffer, ttl: float | None = None) -> "
                   "None"),
           "Inserts the key when the transaction commits. If the key is there then, nothing of the "
           "transaction happens, and transact() raises ExistsError.")
      .def(
          "erase",
          [](PyTransaction& its, nb::handle k) {
            const StoreKey its_key = key_of(k);
            StoreHandle::Transaction& open = its.open();
            begin_without_gil([&] { open.erase(its_key); });
          },
          key, nb::sig("def erase(self, key: str | bytes) -> None"),
          "Erases the key when the transaction commits.")
      .def(
          "cancel", [](PyTransaction& its) { its.open().cancel(); },
          "Nothing of the transaction happens: transact() raises AbandonedError.");
  its_class.def(
      "transact", &transact, nb::arg("function"), nb::arg("attempts") = 1000,
      nb::sig("def transact(self, function: Callable[[Transaction], Any], attempts: int = 1000) -> "
              "Any"),
      "Calls `function(transaction)`, commits what it has put, inserted and erased as one step, "
      "and "
      "returns what it returned. If another member has changed a key that the transaction has "
      "read, "
      "this thread calls the function again, `attempts` times at most; then it raises "
      "ConflictError. "
      "So the function has no other effects. If it raises, nothing happens. Values that it reads "
      "may "
      "never have existed together; then it does not commit. At most 64 gets, and 16 changed keys "
      "(TooLongError).");
}

}  // namespace

void bind_store(nb::module_& module) {
  nb::class_<Entry>(module, "Entry", "A value of a Store with what belongs to it.")
      .def_ro("value", &Entry::value, "A copy of the value.", nb::sig("def value(self) -> bytes"))
      .def_ro("version", &Entry::version, "Grows with each change of the key.")
      .def_ro("ttl", &Entry::ttl, "The seconds that the key has to live; None: it lives for ever.")
      .def("__repr__", [](const Entry& entry) {
        return "<dunlin.Entry: " + std::to_string(entry.value.size()) + " bytes, version " +
               std::to_string(entry.version) + ">";
      });
  BoundHandle<Store> bound(module, "Store",
                           "A key-value store in the memory of the group's members, used like a "
                           "dict. Keys are str (as UTF-8) or "
                           "bytes of at most 255 bytes, values bytes of at most 1 MB. Calls on one "
                           "key are linearizable. They raise "
                           "LostError if the key's members have died, NoRoomError, TooLongError, "
                           "and EndedError once the node has "
                           "ended.");
  bind_reads(bound);
  bind_changes(bound);
  bind_many(bound.waits);
  bind_dictionary(bound.waits);
  bind_transactions(module, bound.waits);
}

}  // namespace dunlin::python
