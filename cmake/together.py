"""Prints which of a folder's sources can be one translation unit: a line of numbers for each unit.

usage: together.py MOST SOURCE...

At most MOST in one unit, and no two of them that declare one name at namespace scope (which clang-format
puts at the beginning of a line), or look names up in different namespaces.
"""
import re
import sys

NOT_DECLARATIONS = re.compile(r"(template|namespace|public|private|protected|extern|return|static_assert|\}|//|"
                              r"[A-Z][A-Z_0-9]+\()")


def names_of(path):
    """(what it declares, what it has from elsewhere by using declarations, its using directives)"""
    declared, used, directives = set(), set(), set()
    with open(path, encoding="utf-8") as file:
        for line in file:
            if using := re.match(r"using namespace ([\w:]+);", line):
                directives.add(using[1])
            elif using := re.match(r"using [\w:]*::(\w+);", line):
                used.add(using[1])
            elif macro := re.match(r"#define (\w+)", line):
                declared.add(macro[1])
            elif re.match(r"\w", line) and not NOT_DECLARATIONS.match(line):
                # Up to the parameters, the value or the body; "T Class::member(" declares nothing new.
                head = re.split(r"[({=;\[]|(?<!:):(?!:)", line, maxsplit=1)[0].rstrip()
                if name := re.search(r"(?<!::)\b(\w+)$", head):
                    declared.add(name[1])
    return declared, used, directives


def units(most, paths):
    """Lists of numbers of `paths`: a list for each unit."""
    found = []  # (numbers, declared, used, directives)
    for number, path in enumerate(paths):
        declared, used, directives = names_of(path)
        for numbers, others_declared, others_used, others_directives in found:
            if (len(numbers) < most and directives == others_directives
                    and not declared & (others_declared | others_used) and not used & others_declared):
                numbers.append(number)
                others_declared |= declared
                others_used |= used
                break
        else:
            found.append(([number], declared, used, directives))
    return [numbers for numbers, *_ in found]


def main():
    for numbers in units(int(sys.argv[1]), sys.argv[2:]):
        print(*numbers)


if __name__ == "__main__":
    main()
