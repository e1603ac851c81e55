#include "command.hpp"

#include <bit>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <dunlin/group.hpp>
#include <dunlin/limits.hpp>

#include "multicast/enter.hpp"
#include "multicast/member.hpp"
#include "multicast/place.hpp"
#include "standard_output.hpp"
#include "value_option.hpp"

namespace dunlin::app {
namespace {

using cast::Course;
using cast::Member;
using cast::Place;
using cast::PlaceOptions;

constexpr const char* kDescription =
    "Be a member of a group whose messages all deliver in one order, and print what all must "
    "agree\n"
    "on: the views, and a digest of the messages so far.";

/// It is made to be stopped and killed, and others shall go on soon.
constexpr std::uint32_t kSilenceMs = 1'000;

constexpr const char* kFooter = R"(
Each member is one such process. The founders, --members, wait for each other; others --join at any
time, and get the digest with the place in the order to which it belongs. Kill one, or stop one: the
others go on, and their digests stay equal. A signal (Ctrl-C) lets a member leave.

Lines printed begin with the member's name:
  a: view 2: b, c; without a         who is in the group now
  a: digest 20000 58f1c2d3e4a5b697   of the first 20000 messages; the same at all members
  a: 3.0 s, 9000 messages, digest ...   every --interval: so far; how many a second; how long until
                                     own messages came back; how often there was no room for one

Exit status: 0 it has left the group, or a signal came before it was in a view; 2 wrong input; 3 it
could not run, or the group had to stop, since too few members were left.

Examples:
  dunlin multicast --group g --members a,b,c --name a          # and as b, and as c
  dunlin multicast --group g --join --name d --lines
  dunlin multicast --group g --members a,b,c --name a --log logs/a
  dunlin multicast --group g --members a,b --name a --fabric tcp --secret-file secret
                   --rendezvous 10.0.0.1:7700 --listen 10.0.0.1:7701
  dunlin multicast --group g --join --name c --fabric tcp --secret-file secret
                   --listen 10.0.0.3:7701 --contacts 10.0.0.1:7701,10.0.0.2:7701)";

struct Options {
  PlaceOptions place;
  Course course;
};

void check(const CLI::App& command, const Course& course) {
  if (course.lines)
    for (const char* option : {"--bytes", "--rate", "--count"})
      if (command.count(option) > 0)
        throw BadInput(fmt::format("{}: with --lines, standard input says what is sent", option));
  if (course.bytes == 0 || course.bytes > kMaxCastBytes)
    throw BadInput(fmt::format("--bytes {}: 1 to {} are possible (kMaxCastBytes)", course.bytes,
                               kMaxCastBytes));
  if (!std::has_single_bit(course.ring_bytes) || course.ring_bytes < kMinRingBytes ||
      course.ring_bytes > kMaxRingBytes)
    throw BadInput(fmt::format("--ring-bytes {}: must be a power of two from {} to {}",
                               course.ring_bytes, kMinRingBytes, kMaxRingBytes));
  if (course.digest_every == 0) throw BadInput("--digest-every 0: must be at least 1");
  if (course.log.empty() && !course.log_given_up.empty())
    throw BadInput("--log-given-up: only durable messages have logs; use it with --log");
  if (course.log.empty() && course.log_trim_bytes > 0)
    throw BadInput("--log-trim: only durable messages have logs; use it with --log");
  if (course.log.empty() && course.log_quorum)
    throw BadInput("--log-quorum: only durable messages have logs; use it with --log");
  cast::check_member_names("--log-given-up", course.log_given_up);
}

void run_multicast(const CLI::App& command, const Options& options) {
  check(command, options.course);
  const Place place(options.place);
  const std::string& name = options.place.name;
  say(fmt::format("{}: process {}\n", name, getpid()));
  const GroupOptions group_options{.subgroups = {{.name = cast::kSubgroup}},
                                   .rendezvous = place.rendezvous()};
  SignalGuard signals;
  const cast::Entered entered = cast::enter(place, group_options, signals);
  Course course = options.course;
  course.tells_ways = options.place.fabric.network == "auto";
  if (entered.group) Member(*entered.group, name, course).run(signals);
}

void add_course_options(CLI::App& command, Course& course) {
  command.add_flag("--lines", course.lines, "Send the lines of standard input; leave at its end");
  add_number(command, "--bytes", course.bytes, "N", "Otherwise: send messages of so many")
      ->capture_default_str();
  add_number(command, "--rate", course.rate, "R",
             "So many a second; 0: as many as there is room for",
             number_between(0, 1e9, "messages a second"))
      ->capture_default_str();
  add_number(command, "--count", course.count, "N",
             "So many in all; then deliver only (default: no end)");
  add_number(command, "--ring-bytes", course.ring_bytes, "BYTES",
             "Memory for each member's messages at each member; a power of two, the same for all.\n"
             "So N members take N x N x BYTES of their hosts")
      ->capture_default_str();
  add_number(command, "--until", course.until, "N", "Leave when so many have been delivered");
  add_number(command, "--seconds", course.seconds, "S", "Leave after so long", seconds());
  add_text(command, "--log", course.log, "DIRECTORY",
           "Durable: deliver what the logs of all members have on their disks. This is the\n"
           "directory of this member's log; each member gives one of its own");
  add_list(command, "--log-given-up", course.log_given_up, "name",
           "Members whose logs are lost: go on without what only these logs had. Start all\n"
           "other members first")
      ->type_name("NAME,...");
  add_number(command, "--log-trim", course.log_trim_bytes, "BYTES",
             "Each time that about so many bytes are in the log, the digest so far comes\n"
             "instead of them; 0: never")
      ->capture_default_str();
  command.add_flag(
      "--log-quorum", course.log_quorum,
      "Begin again, and go on, with a quorum of the last members, and stop without one;\n"
      "else all of them are needed to begin again. The same at all members");
  add_number(command, "--digest-every", course.digest_every, "N",
             "Print the digest at each Nth message")
      ->capture_default_str();
  add_number(command, "--interval", course.interval_s, "S", "Seconds between reports; 0: none",
             seconds())
      ->capture_default_str();
}

}  // namespace

void add_multicast(CLI::App& program) {
  CLI::App* const command = program.add_subcommand("multicast", kDescription);
  command->footer(kFooter);
  const auto options = std::make_shared<Options>();
  options->place.silence_ms = kSilenceMs;
  add_place_options(*command, options->place);
  add_course_options(*command, options->course);
  command->callback([command, options] { run_multicast(*command, *options); });
}

}  // namespace dunlin::app
