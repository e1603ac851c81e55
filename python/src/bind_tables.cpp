#include <algorithm>
#include <bit>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "calls.hpp"
#include "conditions.hpp"
#include "handles.hpp"

namespace dunlin::python {
namespace {

using Kind = TopicNode::Kind;

// --- the row -------------------------------------------------------------------------------------

/// The column of a field, as layout_of() makes it for a plain member of a C++ struct.
[[nodiscard]] Column column_of(const TopicNode& field) {
  Column column{};
  column.name = field.name;
  column.type = field.number;
  column.count = field.count;
  const TopicNode* leaf = &field;
  while (leaf->kind == Kind::array) leaf = &leaf->inner[0];
  if (leaf->kind == Kind::text) {
    if (leaf->bytes > kMaxEntryBytes)
      throw nb::value_error((field.name + ": a text of a row has at most " +
                             std::to_string(kMaxEntryBytes) + " bytes (kMaxEntryBytes)")
                                .c_str());
    column.type = EntryType::text;
    column.count = field.bytes / leaf->bytes;
    column.entry_bytes = leaf->bytes;
  } else if ((leaf->kind == Kind::number || leaf->kind == Kind::numbers) && leaf == &field) {
    column.entry_bytes = number_bytes(field.number);
  } else {
    throw nb::type_error((field.name + ": a row of a table has numbers, dunlin.Text and arrays of "
                                       "these, all of a fixed length")
                             .c_str());
  }
  if (column.entry_bytes <= kWordBytes) {
    column.stride_bytes = std::bit_ceil(column.entry_bytes);
  } else {
    constexpr std::size_t kPayloadBytes = kCacheLineBytes - 2 * sizeof(std::uint32_t);
    column.kind = ColumnKind::stamped;
    column.stride_bytes =
        2 * kCacheLineBytes * ((column.entry_bytes + kPayloadBytes - 1) / kPayloadBytes);
  }
  column.bytes = column.count * column.stride_bytes;
  return column;
}

[[nodiscard]] RowLayout layout_of_struct(const TopicNode& root) {
  RowLayout row;
  row.bytes = root.bytes;
  std::size_t alignment = 1;
  for (const TopicNode& field : root.inner) {
    Column column = column_of(field);
    const std::size_t its = column.kind == ColumnKind::word ? column.stride_bytes : kCacheLineBytes;
    alignment = std::max(alignment, its);
    column.offset = round_up(row.cells.row_bytes, its);
    row.cells.row_bytes = column.offset + column.bytes;
    row.offsets.push_back(field.offset);
    row.same &= column.offset == field.offset && column.stride_bytes == column.entry_bytes;
    row.cells.columns.push_back(std::move(column));
  }
  row.cells.row_bytes = round_up(row.cells.row_bytes, alignment);
  row.cells.check();
  return row;
}

/// The row of a table, made of a dataclass.
struct RowType {
  explicit RowType(nb::handle its)
      : description(nb::borrow(its)), topic(its), layout(layout_of_struct(topic.root())) {}
  [[nodiscard]] const TopicNode& root() const noexcept { return topic.root(); }
  nb::object description;
  TopicType topic;
  RowLayout layout;
  mutable nb::object dtype = nb::none();  // of a snapshot, once one was asked for its rows
};

}  // namespace

struct PyTable {
  std::shared_ptr<NodeState> state;
  RawTableHandle handle;
  std::shared_ptr<const RowType> type;
  std::string name;
};

namespace {

// --- copies --------------------------------------------------------------------------------------

struct Snapshot {
  std::shared_ptr<TableCopy> copy;
  std::shared_ptr<const RowType> type;
};
int fill_buffer(PyObject* self, Py_buffer* view, int flags) {
  TableCopy& copy = *nb::inst_ptr<Snapshot>(self)->copy;
  const auto bytes = static_cast<Py_ssize_t>(copy.members.size() * copy.stride_bytes);
  return PyBuffer_FillInfo(view, self, copy.rows.data(), bytes, 0, flags);
}
PyType_Slot snapshot_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(fill_buffer)},
                                {0, nullptr}};

[[nodiscard]] nb::object snapshot_of(std::shared_ptr<const RowType> type, TableCopy copy) {
  return nb::cast(Snapshot{std::make_shared<TableCopy>(std::move(copy)), std::move(type)});
}

void bind_snapshot(nb::module_& module) {
  nb::class_<Snapshot>(
      module, "Snapshot", nb::type_slots(snapshot_slots),
      "A copy of all rows of a table; each entry is whole, as it was at some moment "
      "of the copying. snapshot[\"load\"] is a column, a numpy array with a value of "
      "each row, and snapshot[3] the row of that number.")
      .def_prop_ro(
          "members", [](const Snapshot& its) { return its.copy->members; },
          "The members' names, in the order of the rows.")
      .def_prop_ro(
          "alive", [](const Snapshot& its) { return its.copy->alive; },
          "For each row, whether its member has not failed.")
      .def_prop_ro(
          "my_row", [](const Snapshot& its) { return its.copy->my_row; },
          "The number of the own row.")
      .def_prop_ro(
          "view", [](const Snapshot& its) { return its.copy->view; },
          "The number of the view whose members have the rows.")
      .def_prop_ro("_description", [](const Snapshot& its) { return its.type->description; })
      .def_prop_rw(
          "_dtype", [](const Snapshot& its) { return its.type->dtype; },
          [](const Snapshot& its, nb::object dtype) { its.type->dtype = std::move(dtype); })
      .def_prop_ro("_stride", [](const Snapshot& its) { return its.copy->stride_bytes; })
      .def("__len__", [](const Snapshot& its) { return its.copy->members.size(); })
      .def("__repr__", [](const Snapshot& its) {
        return "<dunlin.Snapshot of " + std::to_string(its.copy->members.size()) +
               " rows in view " + std::to_string(its.copy->view) + ">";
      });
}

// --- the table -----------------------------------------------------------------------------------

constexpr auto kNone = [](std::monostate) -> nb::object { return nb::none(); };

/// Publishes columns: `names` and the values for them, in this order.
void publish(PyTable& table, const std::vector<std::string>& names, nb::list values) {
  const TopicNode& root = table.type->root();
  std::vector<std::byte> bytes(root.bytes);
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto field = std::ranges::find(root.inner, names[i], &TopicNode::name);
    if (field == root.inner.end())
      throw nb::type_error((root.type + " has no field '" + names[i] + "'").c_str());
    columns.push_back(static_cast<std::size_t>(field - root.inner.begin()));
    store_plain(*field, nb::object(values[i]), bytes.data() + field->offset);
  }
  while_running(*table.state, [&] { table.handle.publish(columns, bytes); });
}

[[nodiscard]] nb::object row_of(PyTable& table, std::optional<std::ptrdiff_t> index) {
  const std::vector<std::byte> values = while_running(*table.state, [&] {
    return table.handle.look([&](TableObject& its) {
      const auto rows = static_cast<std::ptrdiff_t>(its.core().size());
      const auto mine = static_cast<std::ptrdiff_t>(its.core().my_row());
      const std::ptrdiff_t row = index ? (*index < 0 ? *index + rows : *index) : mine;
      if (row < 0 || row >= rows) return std::vector<std::byte>();
      return its.values_of(static_cast<std::size_t>(row));
    });
  });
  if (values.empty()) throw nb::index_error("the table has no such row");
  return load_plain(table.type->root(), values.data());
}

void bind_waits(BoundHandle<PyTable>& bound) {
  bound.timed_call(
      "_wait_until",
      [](PyTable& table, nb::handle condition) {
        TableTruth truth = truth_of(table.type->layout.cells, condition);
        return Begun{begin_without_gil([&] { return table.handle.until(std::move(truth)); }),
                     kNone};
      },
      "self, condition: Any", "None", std::nullopt, "", nb::arg("condition"));
  bound.timed_call(
      "next_change",
      [](PyTable& table, std::optional<Snapshot> since) {
        std::shared_ptr<const TableCopy> copy;
        if (since) copy = since->copy;
        return Begun{
            begin_without_gil([&] { return table.handle.changed_since(std::move(copy)); }),
            [type = table.type](TableCopy next) { return snapshot_of(type, std::move(next)); }};
      },
      "self, since: Snapshot | None = None", "Snapshot", std::nullopt,
      "Waits until the table differs from a snapshot, and returns the next one. Changes that come "
      "close together are one change. None: returns at once. Raises CallTimeoutError after "
      "`timeout` "
      "seconds.",
      nb::arg("since").none() = nb::none());
}

void bind_table_rows(nb::class_<PyTable>& its_class) {
  its_class.def("_publish", &publish, nb::arg("names"), nb::arg("values"))
      .def(
          "snapshot",
          [](PyTable& table) {
            TableCopy copy = while_running(*table.state, [&] {
              return table.handle.look([](TableObject& its) { return its.copy(); });
            });
            return snapshot_of(table.type, std::move(copy));
          },
          nb::sig("def snapshot(self) -> Snapshot"), "Copies all rows, once, and without the GIL.")
      .def(
          "__getitem__", [](PyTable& table, std::ptrdiff_t row) { return row_of(table, row); },
          nb::sig("def __getitem__(self, row: int, /) -> Any"),
          "The row of that number, as an object of the table's class.")
      .def_prop_ro(
          "mine", [](PyTable& table) { return row_of(table, std::nullopt); },
          "The own row as it was published last, as an object of the table's class. A change of "
          "that "
          "object changes nothing in the table: see update().",
          nb::sig("def mine(self) -> Any"))
      .def("__len__",
           [](PyTable& table) {
             return while_running(*table.state, [&] {
               return table.handle.look([](TableObject& its) { return its.core().size(); });
             });
           })
      .def("__bool__", [](PyTable&) { return true; })
      .def_prop_ro(
          "my_row",
          [](PyTable& table) {
            return while_running(*table.state, [&] {
              return table.handle.look([](TableObject& its) { return its.core().my_row(); });
            });
          },
          "The number of the own row in the view at hand.")
      .def_prop_ro(
          "name", [](PyTable& table) { return table.name; }, "The table's name in the group.")
      .def_prop_ro(
          "layout_text", [](PyTable& table) { return table.type->layout.cells.text(); },
          "The row as members compare it: a line for each column.")
      .def("__repr__", [](PyTable& table) {
        return "<dunlin.Table '" + table.name + "' of " + table.type->root().type + " in group '" +
               table.state->group() + "'>";
      });
}

}  // namespace

void bind_tables(nb::module_& module) {
  bind_snapshot(module);
  BoundHandle<PyTable> bound(
      module, "Table",
      "A table with a row of each member, which writes only its own, and reads all in its own "
      "memory. Each view has a table of its own: its rows are the members in the view's order, and "
      "the own row goes on with what it had.");
  bind_waits(bound);
  bind_table_rows(bound.waits);
  module.def(
      "make_table",
      [](PyNode& node, const std::string& name, nb::handle description, nb::object initial) {
        auto type = std::make_shared<const RowType>(description);
        std::vector<std::byte> values(type->root().bytes);
        if (!initial.is_none()) store_plain(type->root(), initial, values.data());
        return begin_without_gil([&] {
          return PyTable{
              node.state,
              RawTableHandle(node.state->engine(), name, type->layout, std::move(values)), type,
              name};
        });
      },
      nb::arg("node"), nb::arg("name"), nb::arg("description"), nb::arg("initial").none());
}

}  // namespace dunlin::python
