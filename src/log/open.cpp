#include <algorithm>
#include <array>
#include <string_view>

#include <dunlin/error.hpp>

#include "log/log.hpp"

/// Opening a log: reads its files, decides whether they can be trusted, and removes the remains of
/// a crash.
namespace dunlin::log {
namespace {

constexpr const char* kMarkName = "mark";
constexpr std::string_view kNewSuffix = ".new";
}  // namespace

/// To empty the log does not help: it may be the one with most records (docs/multicast.md, MC-L6).
std::string Log::what_to_do() const {
  const std::string path = "'" + directory_->path() + "'";
  return "; restore the directory, or copy that of another member, which must be stopped: rm -r " +
         path + " && cp -r ITS_DIRECTORY " + path +
         ". Do not just empty it: then the members refuse to begin, unless one of them says that "
         "this log is lost (dunlin multicast --log-given-up, MulticastOptions::log_given_up)";
}

void Log::open() {
  const bool marked = read_mark();
  set_ = mark_.set;
  const std::vector<std::uint64_t> firsts = find_segments();
  if (options_.read_only && !marked && firsts.empty())
    refuse("'" + directory_->path() + "' has neither a mark nor segments: it is no log");
  if (!marked && !firsts.empty())
    refuse("'" + directory_->path() + "/" + kMarkName +
           "' is missing, which says how many records were synced" + what_to_do());
  if (!marked) return make_log();
  find_snapshot();
  const bool begun = firsts.empty() && mark_.first == 1 && mark_.synced == 1;
  if (begun && !options_.read_only) return make_segment();
  const std::uint64_t lowest = firsts.empty() ? mark_.synced : firsts.front();
  if (firsts.empty() || lowest > mark_.first)
    refuse("'" + directory_->path() + "/" + name_of_segment(mark_.first) + "' is missing, with " +
           range(mark_.first, std::max(lowest, mark_.first + 1)) + what_to_do());
  next_ = lowest;
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    read_header(firsts[i]);
    const bool last = i + 1 == firsts.size();
    const std::uint64_t trusted =
        std::max(options_.trust_below, snapshot_ ? snapshot_->from : std::uint64_t{0});
    if (!last && firsts[i + 1] <= trusted)
      pass_over(firsts[i + 1]);
    else
      scan(last);
  }
  check_snapshot();
  if (options_.read_only) return;
  clear_away();
  secure_tail();
}

/// Removes only files of this log, and none that another program may have put there.
void Log::clear_away() {
  for (const std::string& name : directory_->names()) {
    const std::optional<std::uint64_t> first = first_of_segment(name, set_);
    if (first && *first < mark_.first) directory_->remove(name);  // trimmed
    if (!name.ends_with(kNewSuffix)) continue;
    const std::string whole_name = name.substr(0, name.size() - kNewSuffix.size());
    if (first_of_segment(whole_name, set_) || number_of_snapshot(whole_name, set_))
      directory_->remove(name);  // a crash came before the file had its name
  }
  remove_snapshots_but(snapshot_ ? snapshot_->number : 0);
  remove_all(opposite(set_));
}

/// Removes half a copy, or the log that a copy has replaced.
void Log::remove_all(FileSet set) {
  for (const std::string& name : directory_->names()) {
    const std::string whole_name =
        name.ends_with(kNewSuffix) ? name.substr(0, name.size() - kNewSuffix.size()) : name;
    if (first_of_segment(whole_name, set) || number_of_snapshot(whole_name, set))
      directory_->remove(name);
  }
}

/// Leaves out segments that were trimmed, which may still be there.
std::vector<std::uint64_t> Log::find_segments() {
  std::vector<std::uint64_t> firsts;
  for (const std::string& name : directory_->names()) {
    const std::optional<std::uint64_t> first = first_of_segment(name, set_);
    if (first && *first >= mark_.first) firsts.push_back(*first);
  }
  std::ranges::sort(firsts);
  return firsts;
}

void Log::make_log() {
  mark_.salt = directory_->draw_salt();
  make_mark();
  make_segment();
}

/// The file is complete before it has its name.
void Log::make_segment() {
  const std::string name = name_of_segment(next_);
  const std::string new_name = name + std::string(kNewSuffix);
  std::array<std::byte, SegmentHeader::kBytes> header{};
  SegmentHeader{.first = next_, .chain = chain_, .name = options_.name}.write(header);
  last_ = directory_->create(new_name);
  last_->write(0, header);
  last_->sync();
  directory_->rename(new_name, name);
  directory_->sync();
  last_ = directory_->open(name);
  segments_.push_back({.first = next_, .chain = chain_});
}

void Log::make_mark() {
  const std::string name = kMarkName;
  const std::string new_name = name + std::string(kNewSuffix);
  mark_file_ = directory_->create(new_name);
  for (std::size_t i = 0; i < Mark::kPlaces; ++i) write_mark(true);
  directory_->rename(new_name, name);
  directory_->sync();
  mark_file_ = directory_->open(name);
}

bool Log::read_mark() {
  if (std::ranges::count(directory_->names(), kMarkName) == 0) return false;
  mark_file_ = directory_->open(kMarkName);
  std::optional<std::uint64_t> damaged;
  std::optional<std::uint32_t> newer;
  bool found = false;
  for (std::size_t i = 0; i < Mark::kPlaces; ++i) {
    std::array<std::byte, Mark::kBytes> bytes{};
    mark_file_->read(i * Mark::kStride, bytes);
    const std::optional<Mark> mark = Mark::read(bytes, name_sum_);
    if (!mark) damaged = i * Mark::kStride;
    if (const auto version = Mark::newer_version(bytes)) newer = version;
    if (mark && (!found || mark->revision > mark_.revision)) mark_ = *mark;
    found |= mark.has_value();
  }
  const std::string where = "'" + directory_->path() + "/" + kMarkName + "' at offset " +
                            std::to_string(damaged.value_or(0));
  if (!found) {
    refuse_anothers();
    if (newer)
      refuse("'" + directory_->path() + "/" + kMarkName + "' is of version " +
             std::to_string(*newer) + "; this program reads versions 1 to " +
             std::to_string(Mark::kVersion) + ": use a newer one (or the file is damaged)");
    refuse(where + ": both copies of what was synced are damaged, or those of another log" +
           what_to_do());
  }
  if (damaged)
    notices_.push_back(where + ": a copy of what was synced is damaged; the other is used");
  return true;
}

/// For a reader that does not know the log's name.
void Log::take_name_of_first_segment() {
  std::vector<std::string> names = directory_->names();
  std::ranges::sort(names);
  const auto name =
      std::ranges::find_if(names, [](const std::string& one) { return is_segment(one); });
  if (name == names.end())
    refuse("'" + directory_->path() + "' has no segments: it is no log, or an empty one");
  std::array<std::byte, SegmentHeader::kBytes> bytes{};
  std::string fault = "is cut off within its header";
  std::optional<SegmentHeader> header;
  if (directory_->open(*name)->read(0, bytes) == bytes.size())
    header = SegmentHeader::read(bytes, fault);
  if (!header) refuse("'" + directory_->path() + "/" + *name + "' " + fault);
  options_.name = header->name;
}

/// Another program's good log must not be taken for a damaged one of ours.
void Log::refuse_anothers() {
  for (const std::string& name : directory_->names()) {
    if (!is_segment(name)) continue;
    std::array<std::byte, SegmentHeader::kBytes> bytes{};
    std::string fault;
    if (directory_->open(name)->read(0, bytes) < bytes.size()) continue;
    const std::optional<SegmentHeader> header = SegmentHeader::read(bytes, fault);
    if (header) refuse_if_anothers(name, *header);
  }
}

void Log::refuse_if_anothers(const std::string& file, const SegmentHeader& header) const {
  if (header.name != options_.name)
    refuse("'" + directory_->path() + "/" + file + "' belongs to the log '" + header.name +
           "': give each log a directory of its own");
}

void Log::read_header(std::uint64_t first) {
  last_ = directory_->open(name_of_segment(first));
  std::array<std::byte, SegmentHeader::kBytes> bytes{};
  const std::string file = "'" + directory_->path() + "/" + name_of_segment(first) + "' ";
  if (last_->read(0, bytes) < bytes.size())
    refuse(file + "is cut off within its header (offset " + std::to_string(last_->bytes()) + ")" +
           what_to_do());
  std::string fault;
  const std::optional<SegmentHeader> header = SegmentHeader::read(bytes, fault);
  if (!header) refuse(file + fault + what_to_do());
  refuse_if_anothers(name_of_segment(first), *header);
  if (header->first != first)
    refuse(file + "begins with record " + std::to_string(header->first) +
           ": files of this log have been renamed" + what_to_do());
  check_against_before(first, *header);
  passed_over_ = false;
  segments_.push_back({.first = first, .chain = header->chain});
  chain_ = header->chain;
}

void Log::check_against_before(std::uint64_t first, const SegmentHeader& header) const {
  if (segments_.empty()) return;
  if (first > next_)
    refuse(place(segments_.back(), segments_.back().bytes) + ": the file ends there, with " +
           range(next_, first) + " missing, with the end of it or with '" + name_of_segment(next_) +
           "'" + what_to_do());
  if (passed_over_) return;
  if (first < next_ || header.chain != chain_)
    refuse("'" + directory_->path() + "/" + name_of_segment(first) +
           "' does not continue the segment before it: it is of another history of this log" +
           what_to_do());
}

/// Takes a segment as it is, without reading its records: they end where the next segment begins.
void Log::pass_over(std::uint64_t next_first) {
  segments_.back().bytes = last_->bytes();
  next_ = next_first;
  passed_over_ = true;
}

void Log::scan(bool last) {
  Segment& segment = segments_.back();
  SegmentCursor cursor(*last_, check_seed(), segment.first, segment.chain);
  std::uint64_t chain = cursor.chain();
  while (const std::optional<Record> record = cursor.next()) {
    if (options_.on_record) options_.on_record(*record, chain);
    chain = cursor.chain();
  }
  segment.bytes = cursor.offset();
  next_ = cursor.number();
  chain_ = cursor.chain();
  if (!cursor.at_end()) judge(cursor, last);
  if (last && next_ < mark_.synced)
    refuse(place(segment, segment.bytes) + ": the file ends there, though " +
           range(next_, mark_.synced) + " had been synced" + what_to_do());
}

/// The next record is not whole: refuses the log if that is damage, and cuts off what a crash left.
void Log::judge(SegmentCursor& cursor, bool last) {
  const std::string where = place(segments_.back(), cursor.offset()) + ": ";
  const std::string record = "record " + std::to_string(next_);
  const std::optional<std::uint64_t> later = cursor.find_later_commit();
  if (!last || next_ < mark_.synced || later)
    refuse(where + record + " is damaged, though it had been synced" +
           (later ? ": the record at offset " + std::to_string(*later) + " came after it" : "") +
           what_to_do());
  const std::string rest = std::to_string(cursor.file_bytes() - cursor.offset()) + " bytes ";
  if (options_.read_only) {
    notices_.push_back(where + record +
                       " is not complete: a commit is under way, or a crash came; " + rest +
                       "do not count");
    return;
  }
  notices_.push_back(where + record +
                     " was not complete when a crash came, and had not been synced; " + rest +
                     "are cut off");
  last_->truncate(cursor.offset());
}

/// Records behind the mark may only look written: a sync of them may have failed before this
/// process opened the log. So they are written again.
void Log::secure_tail() {
  Segment& last = segments_.back();
  SegmentCursor cursor(*last_, check_seed(), last.first, last.chain);
  while (cursor.number() < mark_.synced && cursor.next()) {
  }
  if (cursor.number() < next_ || !notices_.empty()) {
    Window window(*last_);
    std::uint64_t at = cursor.offset();
    while (at < last.bytes) {
      const auto piece = window.view(at, std::size_t{1} << 20);
      if (piece.empty()) refuse(place(last, at) + ": somebody cuts it off while it is read");
      last_->write(at, piece);
      at += piece.size();
    }
    last_->sync();
  }
  if (mark_.synced < next_) {
    mark_.synced = next_;
    write_mark(false);
  }
}

}  // namespace dunlin::log
