#!/usr/bin/env python3
"""Checks the names of invariants, such as GRP-C5.

usage: check_invariants.py ROOT

CONTRIBUTING.md says what a name is and where it is defined: in a numbered comment of a source
(`///  MC-R1  A position ...`), in a list item of a page (`- **GRP-C5** When all ...`), or in one of
each, of which the page says why it holds. A name that is defined twice in sources, or twice in
pages, is an error; so is a name that is cited and defined nowhere, and a prefix that
CONTRIBUTING.md does not list.

An invariant of a page of docs/ is held by an assertion whose sentence begins with its name, or by
a test that names it. EXCEPTIONS lists those that neither holds, with the reason.
"""
import pathlib
import re
import sys

PREFIX = re.compile(r"^\| `([A-Z]{2,3})` \|", re.MULTILINE)
IN_SOURCE = re.compile(r"^\s*//[/!]?  +([A-Z]{2,3}-[A-Z]?[0-9]+)  +\S")
IN_PAGE = re.compile(r"^\s*- \*\*([A-Z]{2,3}-[A-Z]?[0-9]+)\*\*")
NAME = re.compile(r"(?<![-\w])([A-Z]{2,3})-([A-Z]?)[0-9]+(?!\w)")
FOLDERS = ("apps", "bench", "docs", "examples", "include", "src", "tests", "tools")
SOURCES = {".cpp", ".hpp"}
OTHERS = {".md", ".pml", ".cmake", ".toml", ".txt", ".sh"}
ASSERTED = re.compile(
    r'\bDUNLIN_ASSERT(?:_ALWAYS)?\([^;]*?"([A-Z]{2,3}-[A-Z]?[0-9]+): ', re.DOTALL
)

# Invariants that no assertion and no test names: (why, which). A name goes as soon as one does.
EXCEPTIONS = (
    (
        "It is a rule for the code, whose breach shows in the promises that are tested.",
        "CON-K4 CON-S2 CON-S3 CON-V1 DMN-R1 DMN-R2 FAB-M4 MC-B3 MIX-H2 STO-M11",
    ),
    (
        "It is about a network whose devices or library the test does not see into.",
        "OFI-T1 OFI-T2 OFI-T3 OFI-T4 OFI-T5 OFI-T6 VRB-Q2 VRB-V1 VRB-V3 VRB-V4 VRB-V5",
    ),
    (
        "No test is known yet that fails if it does not hold.",
        "BCH-H1 BCH-H2 BCH-H4 CON-G4 GRP-D8 GRP-V4 MC-Q4 MC-Q7"
        " MIX-B2 REM-10 SEG-5 SEG-6 STO-V2 STR-J2 TCP-C3 TCP-E1",
    ),
)


def files_of(root):
    files = [*root.glob("*.md")]
    for folder in FOLDERS:
        files += (f for f in (root / folder).rglob("*") if f.suffix in SOURCES | OTHERS)
    return sorted(files)


def problems_of(texts, prefixes):
    """texts: (name of a file, its lines)."""
    defined = {}
    cited = {}
    for file, lines in texts:
        is_source = pathlib.PurePath(file).suffix in SOURCES
        definition = IN_SOURCE if is_source else IN_PAGE if file.endswith(".md") else None
        for number, line in enumerate(lines, 1):
            place = f"{file}:{number}"
            found = definition.match(line) if definition else None
            if found:
                before = defined.setdefault(found.group(1), {}).setdefault(is_source, place)
                if before != place:
                    yield f"{place}: {found.group(1)} is defined at {before}, too"
            for name in NAME.finditer(line):
                # Without a letter it may be another's name, such as CRC-32.
                if name.group(2) or name.group(1) in prefixes or found:
                    cited.setdefault(name.group(0), place)
    for name, place in sorted(cited.items()):
        if name.split("-")[0] not in prefixes:
            yield f"{place}: {name} has a prefix that CONTRIBUTING.md does not list"
        elif name not in defined:
            yield f"{place}: {name} is cited, and defined nowhere"


def unheld_in(texts, exceptions):
    """Invariants of pages of docs/ that nothing holds, and exceptions that are none any more."""
    defined = {}
    held = {}
    for file, lines in texts:
        if file.startswith("docs/"):
            for number, line in enumerate(lines, 1):
                if found := IN_PAGE.match(line):
                    defined.setdefault(found.group(1), f"{file}:{number}")
        elif file.startswith("tests/"):
            for line in lines:
                for name in NAME.finditer(line):
                    held.setdefault(name.group(0), file)
        elif file.startswith("src/") and file.endswith(".cpp"):
            for name in ASSERTED.findall("\n".join(lines)):
                held.setdefault(name, file)
    excepted = {name for _, names in exceptions for name in names.split()}
    for name, place in sorted(defined.items()):
        if name not in held and name not in excepted:
            yield (
                f"{place}: {name} is held by nothing: let an assertion or the test that checks it"
                " name it, or list it in EXCEPTIONS of tools/check_invariants.py"
            )
    for name in sorted(excepted):
        if name not in defined:
            yield f"EXCEPTIONS: {name} is defined in no page of docs/"
        elif name in held:
            yield f"EXCEPTIONS: {name} is held by {held[name]}: it is no exception any more"


def main(root):
    prefixes = set(PREFIX.findall((root / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    texts = [
        (f.relative_to(root).as_posix(), f.read_text(encoding="utf-8").splitlines())
        for f in files_of(root)
    ]
    return [*problems_of(texts, prefixes), *unheld_in(texts, EXCEPTIONS)]


if __name__ == "__main__":
    problems = main(pathlib.Path(sys.argv[1]))
    sys.exit("\n".join(problems) or None)
