#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/table/layout.hpp>

namespace dunlin {

struct OuterRow {
  Cell<int> in_a_named_namespace;
};

namespace {

enum class Mode : std::uint8_t { off, on };
enum Old : std::int16_t { some };

struct AllTypes {
  Cell<bool> boolean;
  Cell<std::int8_t> i8;
  Cell<std::int16_t> i16;
  Cell<std::int32_t> i32;
  Cell<std::int64_t> i64;
  Cell<std::uint8_t> u8;
  Cell<std::uint16_t> u16;
  Cell<std::uint32_t> u32;
  Cell<std::uint64_t> u64;
  Cell<float> f32;
  Cell<double> f64;
  Cell<std::array<char, 8>> short_text;
  Cell<std::array<char, 40>> text;
  Cell<Mode> mode;
  Cell<Old> old;
  Cell<std::timespec> when;
  Cell<long double> precise;
};

struct Shapes {
  Cell<int> one;
  std::array<Cell<int>, 5> five;
  std::array<std::array<Cell<double>, 3>, 2> six;
  Cell<std::array<std::uint8_t, 3>> three_bytes;
  Cell<std::array<std::uint8_t, 64>> line;
  std::array<Cell<std::timespec>, 2> stamps;
  Versioned<std::array<double, 30>> config;
  std::array<Versioned<int>, 4> versions;
  List<std::uint16_t, 10> events;
};

Layout shapes() { return layout_of<Shapes>(); }

std::vector<std::string> names(const Layout& layout) {
  std::vector<std::string> all;
  for (const Column& c : layout.columns) all.push_back(c.name);
  return all;
}

TEST(Layout, NamesTheMembers) {
  EXPECT_EQ(names(shapes()), (std::vector<std::string>{"one", "five", "six", "three_bytes", "line",
                                                       "stamps", "config", "versions", "events"}));
}

TEST(Layout, KnowsWhereTheMembersAre) {
  const Layout layout = shapes();
  const Shapes row;
  const auto* begin = reinterpret_cast<const std::byte*>(&row);
  const std::array<const void*, 9> members{&row.one,         &row.five,     &row.six,
                                           &row.three_bytes, &row.line,     &row.stamps,
                                           &row.config,      &row.versions, &row.events};
  for (std::size_t i = 0; i < members.size(); ++i) {
    EXPECT_EQ(begin + layout.columns[i].offset, members[i]) << layout.columns[i].name;
  }
  EXPECT_EQ(layout.row_bytes, sizeof(Shapes));
  EXPECT_NO_THROW(layout.check());
}

TEST(Layout, SaysHowAColumnLies) {
  const Layout layout = shapes();
  const Column one{"one", ColumnKind::word, EntryType::i32, 0, 1, 4, 4, 4};
  EXPECT_EQ(layout.columns[0], one);
  const Column five{"five", ColumnKind::word, EntryType::i32, 4, 5, 4, 4, 20};
  EXPECT_EQ(layout.columns[1], five);
  const Column six{"six", ColumnKind::word, EntryType::f64, 24, 6, 8, 8, 48};
  EXPECT_EQ(layout.columns[2], six);
  const Column three{"three_bytes", ColumnKind::word, EntryType::bytes, 72, 1, 3, 4, 4, "u8*3"};
  EXPECT_EQ(layout.columns[3], three);
  const Column line{"line", ColumnKind::stamped, EntryType::bytes, 128, 1, 64, 256, 256, "u8*64"};
  EXPECT_EQ(layout.columns[4], line);
  const Column stamps{"stamps", ColumnKind::stamped, EntryType::bytes, 384, 2, 16, 128, 256,
                      "i64*2"};
  EXPECT_EQ(layout.columns[5], stamps);
  const Column config{"config", ColumnKind::stamped, EntryType::bytes, 640, 1, 240, 640, 640,
                      "f64*30"};
  EXPECT_EQ(layout.columns[6], config);
  const Column versions{"versions", ColumnKind::stamped, EntryType::i32, 1280, 4, 4, 128, 512};
  EXPECT_EQ(layout.columns[7], versions);
  const Column events{"events", ColumnKind::list, EntryType::u16, 1792, 10, 2, 8, 192};
  EXPECT_EQ(layout.columns[8], events);
}

TEST(Layout, NamesTheTypes) {
  std::vector<std::string> types;
  for (const Column& c : layout_of<AllTypes>().columns) types.emplace_back(describe(c.type));
  EXPECT_EQ(types, (std::vector<std::string>{"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32",
                                             "u64", "f32", "f64", "text", "text", "u8", "i16",
                                             "bytes", "bytes"}));
}

/// Types of all kinds, but none that the compiler could not be asked about.
struct Mixed {
  int count;
  std::array<float, 3> position;
  Mode mode;
  struct {
    char letter[4];
    bool flag;
  } inner;
  long double precise;
};
struct BitFields {
  unsigned low : 3;
  unsigned high : 5;
  std::int64_t rest;
};
struct Opaque {
  Opaque() = default;
  explicit Opaque(int v) : value(v) {}
  int value = 0;
  int more = 0;
  int and_more = 0;
};
union Either {
  double number;
  std::uint64_t bits;
};
struct Long {
  std::array<std::array<std::int32_t, 2>, 20> pairs;
};

TEST(Layout, SaysWhatValuesConsistOf) {
  struct Values {
    Cell<std::array<int, 4>> ints;
    Cell<std::array<float, 4>> floats;
    Cell<std::timespec> when;
    Versioned<std::array<std::timespec, 40>> times;
    List<Mixed, 3> mixed;
    Cell<BitFields> bit_fields;
    Cell<Opaque> opaque;
    Cell<Either> either;
    Versioned<Long> many;
    Cell<long double> precise;
    Cell<int> number;
    Cell<std::array<char, 9>> text;
  };
  const Layout layout = layout_of<Values>();
  std::vector<std::string> fields;
  for (const Column& c : layout.columns) fields.push_back(c.fields);
  EXPECT_EQ(fields, (std::vector<std::string>{"i32*4", "f32*4", "i64*2", "(i64*2)*40",
                                              "i32,f32*3,u8,i8*4,bool,bytes", "u32*2,i64", "", "",
                                              "i32*32,...", "", "", ""}));
  EXPECT_EQ(Layout::parse(layout.text()), layout);
}

template <class T>
struct Generic {
  Cell<T> value;
  struct Inner {
    Cell<T> inner_value;
    List<T, 3> inner_list;
  };
};

TEST(Layout, NamesMembersWhereverTheStructIs) {
  struct Local {
    Cell<int> in_a_function;
    Cell<int> _1;
  };
  EXPECT_EQ(names(layout_of<Local>()), (std::vector<std::string>{"in_a_function", "_1"}));
  EXPECT_EQ(names(layout_of<OuterRow>()), (std::vector<std::string>{"in_a_named_namespace"}));
  EXPECT_EQ(names(layout_of<Generic<double>>()), (std::vector<std::string>{"value"}));
  EXPECT_EQ(names(layout_of<Generic<int>::Inner>()),
            (std::vector<std::string>{"inner_value", "inner_list"}));
  const auto lambda = [] {
    struct InALambda {
      Cell<char> c;
    };
    return layout_of<InALambda>();
  };
  EXPECT_EQ(names(lambda()), (std::vector<std::string>{"c"}));
}

TEST(Layout, HasUpTo32Columns) {
  struct Wide {
    Cell<int> a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18,
        a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31;
  };
  const Layout layout = layout_of<Wide>();
  ASSERT_EQ(layout.columns.size(), kMaxColumns);
  for (std::size_t i = 0; i < kMaxColumns; ++i) {
    EXPECT_EQ(layout.columns[i].name, "a" + std::to_string(i));
    EXPECT_EQ(layout.columns[i].offset, 4 * i);
  }
}

TEST(Layout, DiffersInItsHashWhereverItDiffers) {
  const Layout original = shapes();
  const auto changed = [&](auto change) {
    Layout other = original;
    change(other);
    return other.hash();
  };
  EXPECT_EQ(changed([](Layout&) {}), original.hash());
  EXPECT_NE(changed([](Layout& l) { l.columns[1].name = "fife"; }), original.hash());
  EXPECT_NE(changed([](Layout& l) { l.columns[1].type = EntryType::u32; }), original.hash());
  EXPECT_NE(changed([](Layout& l) { l.columns[1].kind = ColumnKind::list; }), original.hash());
  EXPECT_NE(changed([](Layout& l) { ++l.columns[1].offset; }), original.hash());
  EXPECT_NE(changed([](Layout& l) { ++l.columns[1].count; }), original.hash());
  EXPECT_NE(changed([](Layout& l) { ++l.columns[1].entry_bytes; }), original.hash());
  EXPECT_NE(changed([](Layout& l) { ++l.columns[1].stride_bytes; }), original.hash());
  EXPECT_NE(changed([](Layout& l) { ++l.columns[1].bytes; }), original.hash());
  EXPECT_NE(changed([](Layout& l) { ++l.row_bytes; }), original.hash());
  EXPECT_NE(changed([](Layout& l) { l.columns[5].fields = "i32,f32"; }), original.hash());
  EXPECT_NE(changed([](Layout& l) { l.columns.pop_back(); }), original.hash());
  EXPECT_NE(changed([](Layout& l) { std::swap(l.columns[0], l.columns[1]); }), original.hash());
}

}  // namespace
}  // namespace dunlin
