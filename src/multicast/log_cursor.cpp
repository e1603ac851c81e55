#include "multicast/log_cursor.hpp"

#include <algorithm>
#include <utility>

namespace dunlin::multicast {

LogCursor::LogCursor(log::Log& log, LogPosition at, std::function<bool()> may_read,
                     std::shared_ptr<bool> waits)
    : may_read_(std::move(may_read)),
      waits_(std::move(waits)),
      number_(at.number),
      reader_(log, at.from),
      assembler_(log, at.view, std::move(at.members)) {}

LogCursor::Step LogCursor::begin_step() {
  if (!may_read_()) return Step::busy;
  return reader_.resume() ? Step::ready : Step::trimmed;
}

std::optional<Logged> LogCursor::next(std::uint64_t end, Budget& budget) {
  while (budget.left() && reader_.number() < end) {
    const std::uint64_t wanted = reader_.number();
    const std::optional<log::Record> record = reader_.next();
    if (!record) return std::nullopt;
    --budget.records;
    budget.bytes -= std::min(budget.bytes, record->payload.size());
    if (record->number < wanted) continue;
    under_way_ = true;
    const std::optional<Logged> message = assembler_.add(*record);
    if (message && record->number >= number_) return message;
  }
  return std::nullopt;
}

}  // namespace dunlin::multicast
