#!/usr/bin/env python3
"""Runs the programs of the tutorial: founders, one that is killed, one that comes later.

usage: replicated.py map|poll_driven_counter|poll_driven_map PROGRAM
"""
import os
import subprocess
import sys

FOUNDERS = ["a", "b", "c"]


class Member:
    def __init__(self, program, group, *words):
        self.process = subprocess.Popen([program, group, *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)

    def type(self, line):
        self.process.stdin.write(line + "\n")

    def read(self, lines=1):
        """What it prints next; waits for it."""
        return [self.process.stdout.readline().rstrip("\n") for _ in range(lines)]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def leave(self):
        self.process.stdin.close()
        return self.process.wait()


def demand(found, expected):
    if found != expected:
        sys.exit(f"found {found}, not {expected}")


def demand_same(members, lines):
    """The lines that all of them print next."""
    first, *others = [member.read(lines) for member in members]
    for other in others:
        demand(other, first)
    return first


def found(program):
    group = f"tutorial-{os.getpid()}"
    members = [Member(program, group, name, *FOUNDERS) for name in FOUNDERS]
    demand(demand_same(members, 1), ["view 1: a, b, c"])
    return group, members


def replace_one(program, group, members):
    """Kills the eldest, and lets another one in."""
    members.pop(0).kill()
    demand(demand_same(members, 1), ["view 2: b, c; without a"])
    members.append(Member(program, group, "d"))
    demand(demand_same(members, 1), ["view 3: b, c, d; with d"])


def check_map_of_nodes(program):
    """Members that found the group in any order, and are named by its rank."""
    group = f"tutorial-{os.getpid()}"
    members = [Member(program, group) for _ in FOUNDERS]
    views = [member.read()[0] for member in members]
    demand(views, ["view 1: 0, 1, 2"] * len(members))
    for number, member in enumerate(members, 1):
        member.type(f"put own{number} some words")
        demand(member.read(), ["some words"])
    members[-1].type("put common last")
    demand(members[-1].read(), ["last"])
    members.pop(0).kill()
    late = Member(program, group)
    demand(late.read()[0].startswith("view 3: "), True)
    members.append(late)
    for command, answer in [("peek common", "last"), ("peek own1", "some words"), ("erase own1", "(erased)"),
                            ("peek own1", "(nothing)")]:
        late.type(command)
        demand(late.read(), [answer])
    members[0].type("erase own1")
    demand(members[0].read(), ["(nothing)"])
    return members


def check_counter(program):
    group, members = found(program)
    for number, member in enumerate(members, 1):
        member.type(str(number))
    demand(demand_same(members, 3)[-1].split()[0], "6")
    replace_one(program, group, members)
    members[-1].type("100")
    demand(demand_same(members, 1), ["106 after d"])
    return members


def check_map(program):
    group, members = found(program)
    for number, member in enumerate(members, 1):
        member.type(f"put common {number}")
        member.type(f"put own{number} some words")
    order = demand_same(members, 6)
    last = [line for line in order if "common" in line][-1].split()[-1]
    replace_one(program, group, members)
    late = members[-1]
    for command in ["peek common", "get own1", "erase own1", "get own1"]:
        late.type(command)
    demand(late.read(), [last])
    demand(demand_same(members, 3), ["d: get own1: some words", "d: erase own1: (nothing)",
                                     "d: get own1: (nothing)"])
    return members


def main():
    which, program = sys.argv[1:]
    checks = {"map": check_map_of_nodes, "poll_driven_counter": check_counter, "poll_driven_map": check_map}
    members = checks[which](program)
    for member in members:
        demand(member.leave(), 0)


if __name__ == "__main__":
    main()
