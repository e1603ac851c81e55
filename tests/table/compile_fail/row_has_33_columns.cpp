// must say: dunlin: a row has at most 32 columns
#include <dunlin/table/layout.hpp>

struct Row {
  dunlin::Cell<int> a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17,
      a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31;
#ifdef MISTAKE
  dunlin::Cell<int> one_too_many;
#endif
};

dunlin::Layout layout() { return dunlin::layout_of<Row>(); }
