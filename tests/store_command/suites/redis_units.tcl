# Runs units of Redis's own tests, with Redis's own procedures, against a server that is there:
#
#   tclsh redis_units.tcl FOLDER-OF-REDIS PORT UNIT...
#
# Each test prints one line of a verdict (ok, failed, left_out) and `UNIT: NAME`; the lines of a failed test with its
# reason begin with a blank. Redis's runtest ends a unit at the first error outside of a test, and so at a parameter of
# CONFIG SET that the server does not have. Here parameters of the representation in memory are accepted and forgotten,
# and `left_out` tells what a unit has not run.

lassign $argv folder server_port
set units [lrange $argv 2 end]
cd $folder

# The procedures of test_helper.tcl, without the main program below them.
set helper [open tests/test_helper.tcl]
set text [read $helper]
close $helper
set main [string first "\n# parse arguments\n" $text]
if {$main < 0} {
    puts stderr "tests/test_helper.tcl has no line '# parse arguments': this is another version of Redis"
    exit 2
}
eval [string range $text 0 $main]

set ::external 1
set ::singledb 1
set ::durable 1
set ::numclients 1
set ::port $server_port
set ::ignoreencoding 1
set ::ignoredigest 1
set ::test_server_fd none
set ::denytags {needs:debug needs:repl needs:save needs:reset needs:pfdebug needs:config-maxmemory large-memory}

# Redis 7.0 writes a score with 17 digits; later versions, and this server, with as few as tell it from its neighbours.
set ::tcl_precision 0

# There are no blocking commands, so these would wait in vain, for 5 s each.
proc wait_for_blocked_client {args} { fail "no blocked clients" }
proc wait_for_blocked_clients_count {args} { fail "no blocked clients" }

proc one_line {text} {
    return [regsub -all {\s+} [string trim $text] " "]
}

# Several tests of a unit can have one name: from the second one on it gets a number.
proc verdict {what name} {
    set name [one_line $name]
    set number [incr ::occurrences($name)]
    if {$number > 1} { append name " #$number" }
    puts "$what $::unit: $name"
}

# In place of the socket to runtest's first process.
proc send_data_packet {fd status data {elapsed 0}} {
    switch $status {
        ok { verdict ok $data }
        err {
            # The first line names the test, those after it tell why.
            set lines [split $data "\n"]
            set name [one_line [lindex $lines 0]]
            set file " in $::curfile"
            if {[string match "*$file" $name]} {
                verdict failed [string range $name 0 end-[string length $file]]
            } else {
                verdict failed "(after '$::last_name')"
                puts "  $name"
            }
            foreach line [lrange $lines 1 3] { puts "  [string range [one_line $line] 0 300]" }
        }
        skip - ignore { verdict left_out $data }
        testing { set ::last_name [one_line $data] }
    }
    flush stdout
}

# What only tunes the representation in memory of Redis's own types.
proc is_representation {parameter} {
    return [regexp {^(hash|list|set|zset|stream|hll)-} $parameter]
}

rename ::redis::__dispatch__raw__ dispatch
proc ::redis::__dispatch__raw__ {id method argv} {
    set command [string tolower "$method [lindex $argv 0]"]
    if {!$::redis::deferred($id)} {
        if {$command in {"function flush" "debug log"}} { return OK }
        if {[llength $argv] >= 2 && [is_representation [lindex $argv 1]]} {
            if {$command eq "config get"} { return [list [lindex $argv 1] 0] }
            if {$command eq "config set"} { return OK }
        }
    }
    if {[catch {uplevel 1 [list dispatch $id $method $argv]} reply options]} {
        if {[regexp {unknown command '([^']*)'} $reply all name]} { set ::lacks([string toupper $name]) 1 }
    }
    return -options $options $reply
}

# A test that fails may leave its connection within a MULTI, or in RESP3.
rename test run_test
proc test {args} {
    set failed $::num_failed
    array unset ::lacks
    uplevel 1 [list run_test {*}$args]
    if {$::num_failed > $failed} {
        if {[array size ::lacks]} { puts "  lacks [lsort [array names ::lacks]]" }
        if {[llength $::servers]} { reconnect }
    }
}

foreach ::unit $units {
    set ::curfile tests/unit/$::unit.tcl
    set ::last_name start
    set ::tags {}
    set ::servers {}
    array unset ::occurrences
    set file [open $::curfile]
    set text [read $file]
    close $file
    # The unit `scripting` runs its tests with FCALL, which is not there, and then with EVAL.
    set text [string map {"foreach is_eval {0 1}" "foreach is_eval 1"} $text]
    if {[catch $text error]} {
        verdict failed "(after '$::last_name')"
        puts "  [string range [one_line $error] 0 300]"
    }
}
