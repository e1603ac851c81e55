"""Prints which sources can be one translation unit: a line of numbers for each unit.

usage: together.py MOST SOURCE...

At most MOST in one unit, most of them of one folder, and no two that declare one name at namespace scope (which
clang-format puts at the beginning of a line), or look names up in different namespaces.
"""
import dataclasses
import os
import re
import sys

NOT_DECLARATIONS = re.compile(r"(template|namespace|public|private|protected|extern|return|static_assert|\}|//|"
                              r"[A-Z][A-Z_0-9]+\()")


MENTIONED = re.compile(r"(?<![\w.:])(?<!->)(?:([A-Z]\w*|k[A-Z]\w*)|([a-z]\w*)(?=\())")
NO_CODE = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"')


@dataclasses.dataclass
class Unit:
    numbers: list
    declared: set = dataclasses.field(default_factory=set)
    hidden: set = dataclasses.field(default_factory=set)  # what is declared in namespaces without a name
    used: dict = dataclasses.field(default_factory=dict)  # what it has by using declarations, and from where
    directives: set = dataclasses.field(default_factory=set)
    mentioned: set = dataclasses.field(default_factory=set)  # types, constants and functions that it does not declare

    def can_have(self, other, most):
        return (len(self.numbers) + len(other.numbers) <= most and self.directives == other.directives
                and not self.declared & (other.declared | other.used.keys())
                and not self.used.keys() & other.declared
                and all(other.used.get(name, place) == place for name, place in self.used.items()))

    def hides_what_is_mentioned(self, other):
        return bool(self.hidden & other.mentioned or other.hidden & self.mentioned)

    def take(self, other):
        self.numbers += other.numbers
        self.declared |= other.declared
        self.hidden |= other.hidden
        self.used |= other.used
        self.mentioned |= other.mentioned


def unit_of(number, path):
    unit, nameless = Unit([number]), False
    with open(path, encoding="utf-8") as file:
        lines = file.readlines()
    for line in lines:
        if re.match(r"namespace \{", line):
            nameless = True
        elif re.match(r"\}  // namespace$", line):
            nameless = False
        elif using := re.match(r"using namespace ([\w:]+);", line):
            unit.directives.add(using[1])
        elif using := re.match(r"using ([\w:]*::(\w+));", line):
            unit.used[using[2]] = using[1]
        elif macro := re.match(r"#define (\w+)", line):
            unit.declared.add(macro[1])
        elif re.match(r"\w", line) and not NOT_DECLARATIONS.match(line):
            # Up to the parameters, the value or the body; "T Class::member(" declares nothing new.
            head = re.split(r"[({=;\[]|(?<!:):(?!:)", line, maxsplit=1)[0].rstrip()
            if name := re.search(r"(?<!::)\b(\w+)$", head):
                unit.declared.add(name[1])
                if nameless:
                    unit.hidden.add(name[1])
    code = NO_CODE.sub("", "".join(lines))
    unit.mentioned = {word for words in MENTIONED.findall(code) for word in words if word} - unit.declared
    return unit


def fitted(units, fits):
    """Each unit joins the first of those before it that it fits."""
    found = []
    for unit in units:
        for other in found:
            if fits(other, unit):
                other.take(unit)
                break
        else:
            found.append(unit)
    return found


def units(most, paths):
    """Lists of numbers of `paths`: a list for each unit. First within each folder, then what is left of several.

    Of one folder, somebody who writes the one source has the other in mind; of several, none may hide what another
    mentions.
    """
    folders = {}
    for number, path in enumerate(paths):
        folders.setdefault(os.path.dirname(path), []).append(unit_of(number, path))
    within = [unit for units in folders.values()
              for unit in fitted(units, lambda one, other: one.can_have(other, most))]
    within.sort(key=lambda unit: -len(unit.numbers))
    return [unit.numbers for unit in fitted(
        within, lambda one, other: one.can_have(other, most) and not one.hides_what_is_mentioned(other))]


def main():
    for numbers in units(int(sys.argv[1]), sys.argv[2:]):
        print(*numbers)


if __name__ == "__main__":
    main()
