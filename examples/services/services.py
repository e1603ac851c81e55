#!/usr/bin/env python3
"""Runs the services with real processes, some of which are stopped or killed.

usage: services.py monitoring|checkpointing|reconfiguration|caching|selecting PROGRAM
"""
import http.client
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading


class Process:
    def __init__(self, program, *words):
        self.process = subprocess.Popen([program, *map(str, words)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)

    def type(self, line):
        self.process.stdin.write(line + "\n")

    def read(self, lines=1):
        """What it prints next; waits for it."""
        return [self.process.stdout.readline().rstrip("\n") for _ in range(lines)]

    def read_until(self, pattern):
        """All that it prints up to a line that matches."""
        lines = []
        for line in self.process.stdout:
            lines.append(line.rstrip("\n"))
            if re.search(pattern, line):
                return lines
        sys.exit(f"there was no '{pattern}' in {lines}")

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def leave(self):
        """Ends it by the end of its input; what it still printed."""
        self.process.stdin.close()
        rest = self.process.stdout.read().splitlines()
        demand(self.process.wait() == 0, f"exit status {self.process.returncode}")
        return rest


def demand(holds, what):
    if not holds:
        sys.exit(f"not as it should be: {what}")


def start(program, count, last=()):
    group = f"services-{os.getpid()}"
    return [Process(program, group, count, rank, *(last if rank == count - 1 else ()))
            for rank in range(count)]


def sample(observer, members):
    """What an observer reads: the figures of each member, or None."""
    observer.type("show")
    found = []
    for line in observer.read(members):
        match = re.fullmatch(r"member \d+: process (\d+), sample (\d+), cpu (\d+) ms, resident "
                             r"(\d+) KB, host load ([\d.]+), free (\d+) KB", line)
        found.append([float(word) for word in match.groups()] if match else None)
    return found


def check_monitoring(program):
    observer, stopped, burning = processes = start(program, 3, ["burn"])
    while True:  # until the one that burns has used more than the others by far
        loads = sample(observer, 3)
        demand(all(loads), loads)
        if loads[2][2] > 10 * max(loads[0][2], loads[1][2], 10):
            break
    demand([int(load[0]) for load in loads] == [p.process.pid for p in processes], loads)
    demand(all(load[3] > 500 and load[5] > 0 for load in loads), loads)
    # Who is stopped answers nothing, and is read as before.
    stopped.signal(signal.SIGSTOP)
    first, second = sample(observer, 3), sample(observer, 3)
    demand(first[1] and second[1] and first[1][1] == second[1][1], (first, second))
    stopped.signal(signal.SIGCONT)
    burning.kill()
    while sample(observer, 3)[2] is not None:
        pass  # until the members agree that it is gone
    demand(all(sample(observer, 3)[:2]), "the others go on")
    return [observer, stopped]


def check_checkpointing(program):
    keeper, first, second, third = start(program, 4)
    third.read_until("epoch 50")
    third.kill()
    lines = first.read_until("epoch 150")
    demand(sum(line.startswith("restart") for line in lines) == 2, lines)
    first.kill()
    lines = second.read_until("result")
    demand(sum(line.startswith("restart") for line in lines) >= 2, lines)
    demand("as of one process" in lines[-1], lines[-1])
    print(lines[-1])
    return [keeper, second]


def check_reconfiguration(program):
    holder, survivor, doomed = start(program, 3, [5])
    printed = []
    # Each turn of the load needs some moves, so the doomed one comes to its fifth.
    turn = 0
    while doomed.process.poll() is None:
        holder.type(f"load {turn % 3} 900")
        holder.type(f"load {(turn + 1) % 3} 100")
        holder.type(f"load {(turn + 2) % 3} 100")
        turn += 1
        holder.type("show")
        holder.read()
    printed += doomed.process.stdout.read().splitlines()
    dying = [line for line in printed if line.startswith("dies while")]
    demand(len(dying) == 1, printed)
    server = dying[0].split()[-1]
    printed += survivor.read_until(f"ends the move of server {server}, whose balancer died")
    while True:
        holder.type("show")
        words = holder.read()[0].replace(",", "").split()
        owned, moving, moves = [int(w) for w in words[:3]], int(words[4]), int(words[6])
        if moving == 0 and max(owned) > 6:
            break
    demand(sum(owned) == 12, owned)
    printed += survivor.leave()
    found = re.findall(r"move (\d+) of server (\d+)", "\n".join(printed))
    demand(len(found) == len(set(found)), "two balancers made the same move")
    demand(len(found) >= moves, (len(found), moves))
    return [holder]


def request(port, path, body=None):
    """Version and body of an answer, and how long the cache took to check its copy."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET" if body is None else "POST", path, body)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    demand(answer.status == 200, f"{path}: status {answer.status}")
    return int(answer.headers["X-Version"]), text, float(answer.headers["X-Check-Us"] or 0)


def check_copies(origin, caches, rounds):
    """While one thread changes the page, no client gets one that is older than its request."""
    posted = [0]

    def change():
        for i in range(rounds):
            posted[0] = request(origin, "/page", f"page {i}")[0]

    writer = threading.Thread(target=change)
    writer.start()
    while writer.is_alive():
        for port in caches:
            for path in ("/page", "/by-tcp"):
                before = posted[0]
                version = request(port, path)[0]
                demand(version >= before, f"{path}: version {version} after {before}")
    writer.join()
    for port in caches:
        version, text, _ = request(port, "/page")
        demand((version, text) == (posted[0], f"page {rounds - 1}"), (version, text, posted))


def check_caching(program):
    for threads in (0, 4):
        group = f"services-{os.getpid()}-{threads}"
        sites = [Process(program, group, 3, 0, threads)]
        sites += [Process(program, group, 3, rank) for rank in (1, 2)]
        origin, *caches = [int(site.read()[0].split()[1]) for site in sites]
        check_copies(origin, caches, 30)
        for path, how in (("/page", "one read"), ("/by-tcp", "by TCP request")):
            took = [request(caches[0], path)[2] for _ in range(50)]
            print(f"{threads} computing threads: a check takes {statistics.median(took):.0f} us {how}")
        for site in sites[::-1]:
            site.leave()
    return []


def check_selecting(program):
    for records in (1_000, 10_000):
        group = f"services-{os.getpid()}-{records}"
        with tempfile.TemporaryDirectory() as directory:
            database = os.path.join(directory, "files.db")
            members = [Process(program, group, 3, rank, records, database) for rank in range(3)]
            for member in members[1:]:  # each has compared all its answers with SQLite's
                line = member.read()[0]
                match = re.fullmatch(rf"of {records} records, (\d+) files of \d+ bytes: .*", line)
                demand(match and 0 < int(match.group(1)) < records, line)
                print(line)
            for member in members:
                member.leave()
    return []


def main():
    which, program = sys.argv[1:]
    check = {"monitoring": check_monitoring, "checkpointing": check_checkpointing,
             "reconfiguration": check_reconfiguration, "caching": check_caching,
             "selecting": check_selecting}[which]
    for process in check(program):
        process.leave()


if __name__ == "__main__":
    main()
