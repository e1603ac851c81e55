#pragma once

#include <string_view>

#include "store/job.hpp"

namespace dunlin::app::resp {

/// The words of HSCAN and ZSCAN behind the key. Their replies have all elements, and the cursor 0.
struct ElementScan {
  bool is_first = true;  // the cursor is 0; a scan that goes on finds nothing more
  std::string_view pattern = "*";
  bool names_only = false;
};

/// Returns an error, or null.
[[nodiscard]] const char* parse_element_scan(const Job& job, ElementScan& scan);
/// The reply of any scan; `elements` are `count` replies.
inline Replied reply_scan(std::string_view cursor, std::size_t count, std::string_view elements,
                          Reply& reply) {
  reply.array(2);
  reply.bulk(cursor);
  reply.array(count);
  return reply.raw(elements);
}
/// The cursor of a scan, which may be any number.
[[nodiscard]] bool parse_cursor(std::string_view text, std::uint64_t& cursor) noexcept;

}  // namespace dunlin::app::resp
