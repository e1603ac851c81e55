#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <dunlin/container/cost.hpp>
#include <dunlin/container/limits.hpp>
#include <dunlin/error.hpp>

namespace dunlin {
namespace {

/// A map that is filled beyond this would have no expected number of probes.
constexpr double kMostLoad = 0.98;
/// Slots of half a line that the first read of a search covers, on average.
constexpr double kFirstSlots = 1.5;

/// The chance that the first read of a search does not decide it: that of so many full slots in a
/// row, by linear probing, where full slots cluster.
double more_reads(double load, double slot_bytes, bool is_there) {
  const double a = std::clamp(load, 0.0, kMostLoad);
  const double first = slot_bytes < 64 ? kFirstSlots : 1.0;
  const double probes = is_there ? 0.5 * (1 + 1 / (1 - a)) : 0.5 * (1 + 1 / ((1 - a) * (1 - a)));
  // Of a search of `probes` slots on average, geometric: how often it is longer than the first
  // read.
  return probes <= 1 ? 0 : std::pow(1 - 1 / probes, first);
}

/// The cost of the reads of a full table's window, and their number.
struct WindowReads {
  double count;
  double bytes;  // of each
};
WindowReads window_reads(double slot_bytes) {
  const double slots = std::max(std::floor(kProbeBytes / std::max(slot_bytes, 1.0)), 1.0);
  const double count = std::ceil(kTableWindow / slots);
  return {count, kTableWindow / count * slot_bytes};
}

template <class Add>
void add_if_known(const char* name, const std::array<double, kCalls>& costs, Call call,
                  const Add& add) {
  const double ns = costs.at(static_cast<std::size_t>(call));
  if (ns > 0) add(name, 1, ns);
}

/// Adds (component, count, nanoseconds each) of one call.
template <class Add>
void add_one_sided(const ComponentCosts& costs, Call call, const Situation& at, const Add& add) {
  const double extra = std::max(at.bytes - 8, 0.0) * costs.byte_ns;
  const double read = costs.read_ns + extra, write = costs.write_ns + extra;
  const double shared = (at.clients - 1) * costs.shared_word_ns;
  const double taken = std::clamp(at.load, 0.0, kMostLoad);
  const bool phasal = at.promise == Promise::writes || at.promise == Promise::local;
  const bool takes_head = at.promise == Promise::reads || at.promise == Promise::local;
  add_if_known("computing", costs.computing_ns, call, add);
  if (!at.used_lately) add_if_known("a slot in no cache", costs.far_ns, call, add);
  if (at.tables > 1 && call != Call::push && call != Call::pop) {
    const WindowReads window = window_reads(at.bytes);
    add("reads of full tables", (at.tables - 1) * window.count,
        costs.read_ns + (window.bytes - 8) * costs.byte_ns);
    if (call == Call::insert) call = Call::assign;  // which begins with a look, too
  }
  switch (call) {
    case Call::insert:
      add("compare-and-swap", 1 + taken, costs.compare_swap_ns);
      add("read", taken * (1 + more_reads(at.load, at.bytes, false)), read);
      add("write", 1, write);
      if (!phasal) add("second write of the batch", 1, costs.batched_ns);
      return;
    case Call::assign:
      add("read", 1 + more_reads(at.load, at.bytes, true), read);
      add("compare-and-swap", 1, costs.compare_swap_ns);
      add("write", 1, write);
      add("second write of the batch", 1, costs.batched_ns);
      return;
    case Call::find:
      add("read", 1 + more_reads(at.load, at.bytes, true), read);
      return;
    case Call::erase:
      add("read", 1 + more_reads(at.load, at.bytes, true), read);
      add("compare-and-swap", 1, costs.compare_swap_ns);
      return;
    case Call::push:
      add("fetch-and-add on one word", 1, costs.fetch_add_ns + shared);
      add("write", 1, write);
      return;
    case Call::pop:
      if (takes_head) {
        add("fetch-and-add on one word", 1, costs.fetch_add_ns + shared);
        add("read", 1, read);
        return;
      }
      // Of clients that pop at once one succeeds; the others swap again, and the read has brought
      // both ends and what is ahead.
      add("read", 1, read);
      if (at.clients > 1) add("second read of the batch", 1, costs.batched_ns);
      add("compare-and-swap on one word", (at.clients + 1) / 2, costs.compare_swap_ns + shared);
      return;
  }
}

template <class Add>
void add_message(const ComponentCosts& costs, Call call, const Situation& at, const Add& add) {
  const double extra = std::max(at.bytes - 8, 0.0) * costs.message_byte_ns;
  add("request and reply", 1, costs.message_ns + extra);
  if (!at.used_lately) add_if_known("a slot in no cache", costs.far_ns, call, add);
  if (at.wait_ns > 0) add("until the target polls", 1, at.wait_ns);
  if (at.clients > 1) add("requests of other clients", (at.clients - 1) / 2, costs.message_ns / 2);
}

template <class Add>
void add_terms(const ComponentCosts& costs, Call call, Style style, const Situation& at,
               const Add& add) {
  if (style == Style::automatic) style = cheaper_style(costs, call, at);
  if (style == Style::message) return add_message(costs, call, at, add);
  add_one_sided(costs, call, at, add);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return result + '"';
}

}  // namespace

std::string_view name_of(Call call) noexcept {
  static constexpr std::array<std::string_view, kCalls> kNames{"insert", "assign", "find",
                                                               "erase",  "push",   "pop"};
  const auto place = static_cast<std::size_t>(call);
  return place < kNames.size() ? kNames[place] : "unknown";
}

double predict_ns(const ComponentCosts& costs, Call call, Style style,
                  const Situation& situation) noexcept {
  double sum = 0;
  add_terms(costs, call, style, situation,
            [&](const char*, double count, double each_ns) { sum += count * each_ns; });
  return sum;
}

std::vector<CostTerm> explain(const ComponentCosts& costs, Call call, Style style,
                              const Situation& situation) {
  std::vector<CostTerm> terms;
  add_terms(costs, call, style, situation, [&](const char* name, double count, double each_ns) {
    terms.push_back({name, count, each_ns});
  });
  return terms;
}

double longest_wait_ns(const ComponentCosts& costs, Call call, Situation situation) noexcept {
  if (!costs.measured()) return 0;
  situation.wait_ns = 0;
  return predict_ns(costs, call, Style::one_sided, situation) -
         predict_ns(costs, call, Style::message, situation);
}

Style cheaper_style(const ComponentCosts& costs, Call call, const Situation& situation) noexcept {
  return situation.wait_ns < longest_wait_ns(costs, call, situation) ? Style::message
                                                                     : Style::one_sided;
}

// --- the file ------------------------------------------------------------------------------------

std::string text_of(const ComponentCosts& costs, const std::string& measured_on) {
  std::ostringstream out;
  out << "{\n  \"format\": \"dunlin component costs 2\",\n  \"measured_on\": "
      << quoted(measured_on);
  for_each_cost(costs, [&](const std::string& name, const std::string&, double ns) {
    out << ",\n  \"" << name << "\": " << ns;
  });
  out << "\n}\n";
  return out.str();
}

/// Only what text_of() writes: a flat object of numbers.
ComponentCosts load_costs(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw Error("component costs: cannot read '" + file + "'");
  std::ostringstream all;
  all << in.rdbuf();
  const std::string text = all.str();
  if (text.find("\"dunlin component costs 2\"") == std::string::npos)
    throw Error("component costs: '" + file + "' is no file of this version's `dunlin calibrate`");
  ComponentCosts costs;
  for_each_cost(costs, [&](const std::string& name, const std::string&, double& cost) {
    const std::string label = "\"" + name + "\":";
    const std::size_t at = text.find(label);
    if (at == std::string::npos) throw Error("component costs: '" + file + "' has no " + name);
    const char* const begin = text.c_str() + at + label.size();
    char* end = nullptr;
    const double value = std::strtod(begin, &end);
    if (end == begin || !std::isfinite(value) || value < 0)
      throw Error("component costs: " + name + " of '" + file + "' is no number of nanoseconds");
    cost = value;
  });
  return costs;
}

}  // namespace dunlin
