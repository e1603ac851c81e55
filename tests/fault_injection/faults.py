#!/usr/bin/env python3
"""Faults of the real code, for audits to find: docs/testing.md, "Fault injection".

Each LAYER.toml beside this file lists the typical bugs of a layer, as `code` of one source and what takes its place:
`faulty`, in which INJECTED is whether this fault is switched on. White space does not count. A fault in several places
has a `change` for each. The sources themselves know nothing of it.

    faults.py check FILE...                 each code is there, once
    faults.py sources FILE...               the sources that have faults, for CMake
    faults.py write FOLDER FILE...          these sources with their faults, and injected_faults.hpp
    faults.py tests PROGRAM FILE...         for CMake: a test for each fault that PROGRAM finds
"""

import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKEN = re.compile(r"\w+|[^\w\s]")
KNOWN = {"what", "breaks", "source", "code", "faulty", "change", "program", "tests", "says", "seeds", "found", "agreement", "also"}


class Mistake(Exception):
    pass


class Fault:
    def __init__(self, file, name, defaults, entry):
        unknown = set(entry) - KNOWN
        if unknown:
            raise Mistake(f"{file}: [{name}] has '{unknown.pop()}', which means nothing; known are {', '.join(sorted(KNOWN))}")
        self.file, self.name = file, name
        self.layer = pathlib.Path(file).stem
        entry = {**defaults, **entry}
        self.__dict__.update({key: entry.get(key, "") for key in ("what", "breaks", "program", "tests", "says", "seeds", "agreement", "also")})
        self.is_found = entry.get("found", True)
        self.changes = entry.get("change", [entry])


def load(files):
    faults = []
    for file in files:
        entries = tomllib.loads(pathlib.Path(file).read_text())
        defaults = {key: value for key, value in entries.items() if not isinstance(value, dict)}
        faults += [Fault(file, name, defaults, entry) for name, entry in entries.items() if isinstance(entry, dict)]
    return faults


def place(fault, change, text):
    """Where the change's code is in its source."""
    pattern = r"\s*".join(re.escape(token) for token in TOKEN.findall(change["code"]))
    found = list(re.finditer(pattern, text))
    if len(found) != 1:
        times = "not there" if not found else f"there {len(found)} times"
        raise Mistake(f"{fault.file}: [{fault.name}]: its code is {times} in {change['source']}: {change['code'].strip()}")
    return found[0].span()


def replacements(faults):
    """For each source: what takes the place of what, from its end to its beginning."""
    found = {}
    for fault in faults:
        for change in fault.changes:
            text = (ROOT / change["source"]).read_text()
            faulty = re.sub(r"\bINJECTED\b", f"is_injected(InjectedFault::{fault.name})", change["faulty"].strip())
            found.setdefault(change["source"], []).append((*place(fault, change, text), faulty, fault.name))
    for source, places in found.items():
        places.sort(reverse=True)
        for (begin, _, _, later), (_, end, _, earlier) in zip(places, places[1:]):
            if end > begin:
                raise Mistake(f"{source}: [{earlier}] and [{later}] change the same code")
    return found


def check(faults):
    """All that is wrong, not the first mistake alone."""
    mistakes = []
    for some in [*([fault] for fault in faults), faults]:
        try:
            replacements(some)
        except Mistake as mistake:
            mistakes.append(f"{mistake}")
    if mistakes:
        raise Mistake("\n".join(dict.fromkeys(mistakes)))


def update(path, text):
    """A file that stays as it is lets nothing be compiled again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def header(faults):
    lines = ["#pragma once", "", "namespace dunlin {", "", "enum class InjectedFault {", "  none,"]
    lines += [f"  {fault.name}," for fault in faults]
    lines += ["};", "inline InjectedFault injected_fault = InjectedFault::none;",
              "[[nodiscard]] inline bool is_injected(InjectedFault fault) noexcept { return fault == injected_fault; }", "",
              "struct NamedFault {", "  InjectedFault fault;", "  const char* name;", "  const char* breaks;", "};",
              "inline constexpr NamedFault kInjectedFaults[] = {"]
    lines += [f'    {{InjectedFault::{fault.name}, "{fault.name}", "{fault.breaks}"}},' for fault in faults]
    return "\n".join([*lines, "};", "", "}  // namespace dunlin", ""])


def write(folder, files):
    faults = load(files)
    update(pathlib.Path(folder) / "injected_faults.hpp", header(faults))
    for source, places in replacements(faults).items():
        text = (ROOT / source).read_text()
        for begin, end, faulty, _ in places:
            text = text[:begin] + faulty + text[end:]
        update(pathlib.Path(folder) / source, f'#include "injected_faults.hpp"\n#line 1 "{ROOT / source}"\n{text}')


def tests(program, files):
    for fault in load(files):
        name, says = f"fault_injection.{fault.layer}.{fault.name}", fault.says
        if program == "views_with_fault":
            if not fault.agreement:
                continue
            name, says, arguments = f"fault_injection.views.{fault.name}", rf"Expected.*\n{fault.agreement}\n", ""
        elif fault.program != program or not fault.is_found or not (fault.tests or fault.seeds):
            continue
        elif fault.tests:
            arguments = f'"--gtest_filter={fault.tests}"'
        else:
            arguments = f"sim multicast --seeds {fault.seeds.replace(' ', '..')}"
        if not says:
            raise Mistake(f"{fault.file}: [{fault.name}] lacks `says`: by what the output shows that it is found")
        if fault.also and program == fault.program:
            print(f'add_test(NAME {name}.also COMMAND {program} {fault.name} "--gtest_filter={fault.also}")')
            print(f'set_tests_properties({name}.also PROPERTIES TIMEOUT 300 PASS_REGULAR_EXPRESSION "{says}")')
        print(f"add_test(NAME {name} COMMAND {program} {fault.name} {arguments})")
        environment = f' ENVIRONMENT "DUNLIN_SEEDS={fault.seeds}"' if fault.tests and fault.seeds else ""
        print(f'set_tests_properties({name} PROPERTIES TIMEOUT 300 PASS_REGULAR_EXPRESSION "{says}"{environment})')


def main():
    verb, arguments = sys.argv[1], sys.argv[2:]
    try:
        if verb == "check":
            check(load(arguments))
        elif verb == "sources":
            print(";".join(sorted({change["source"] for fault in load(arguments) for change in fault.changes})), end="")
        elif verb == "write":
            write(arguments[0], arguments[1:])
        elif verb == "tests":
            tests(arguments[0], arguments[1:])
        else:
            sys.exit(__doc__)
    except Mistake as mistake:
        sys.exit(f"{mistake}")


main()
