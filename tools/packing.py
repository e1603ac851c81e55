"""Which sources can be one text for clang-tidy, and that text.

The text begins with the #includes of all sources. Two sources are not in one text if

- they declare one name in one namespace (clang-format puts such declarations at the beginning of a line), unless
  both are functions with other parameters, and neither source uses the name as a value;
- one mentions a name that it does not declare itself, and would find the other's;
- they have other using directives.

Programs have a namespace each, so they can always be one text.

cmake/together.py asks much the same of the compiler's units, and is more careful: a unit that is refused stops the
build, where tools/tidy.py goes on with parts.
"""
import dataclasses
import re

NOT_DECLARATIONS = re.compile(r"(template|public|private|protected|extern (?!.C. \w)|return|static_assert|//|"
                              r"[A-Z][A-Z_0-9]+\()")
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)
NO_CODE = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"')
INCLUDE = re.compile(r"^#include [^\n]*", re.MULTILINE)
NAMESPACE = re.compile(r"(?:inline )?namespace ?([\w:]*) ?\{")
# A type, a constant, or what is called; but no member, and nothing that names its namespace.
MENTIONED = re.compile(r"(?<![\w.:])(?<!->)(?:([A-Z]\w*|k[A-Z]\w*)|([a-z]\w*)(?=\())")
VALUE = re.compile(r"(?<![\w.:])(?<!->)([a-z]\w*)\b(?![\w(])")


@dataclasses.dataclass
class Names:
    """A name has the namespace before it: `dunlin::store::name`."""
    functions: dict = dataclasses.field(default_factory=dict)  # name: the parameters of each
    others: set = dataclasses.field(default_factory=set)
    hidden: set = dataclasses.field(default_factory=set)  # those of both that have no name outside the source
    used: set = dataclasses.field(default_factory=set)  # by using declarations
    directives: set = dataclasses.field(default_factory=set)
    mentioned: set = dataclasses.field(default_factory=set)  # in each namespace where it could be found
    values: set = dataclasses.field(default_factory=set)  # likewise

    def declared(self):
        return self.functions.keys() | self.others | self.used

    def collide(self, other):
        return self.disturbs(other) or other.disturbs(self)

    def disturbs(self, other):
        return bool(self.others & other.declared() or self.used & other.functions.keys()
                    or any(parameters & other.functions.get(name, set()) or name in self.values | other.values
                           for name, parameters in self.functions.items() if name in other.functions)
                    or self.hidden & other.mentioned - other.declared())


def types_of(parameters):
    """The text between a function's parentheses without the names of the parameters."""
    words = (re.sub(r"\s*=.*", "", word.strip(), flags=re.DOTALL) for word in parameters.split(","))
    return " ".join(",".join(re.sub(r"\s+\w+$", "", word) for word in words).split())


def names_of(source):
    text = RAW_STRING.sub('""', source)
    names, here, within, at, nameless = Names(), [], {""}, 0, False
    for line in text.splitlines(keepends=True):
        place = "".join(f"{part}::" for part in here)
        if namespace := NAMESPACE.match(line):
            parts = namespace[1].split("::")
            within |= {place + "".join(f"{part}::" for part in parts[:length + 1])
                       for length in range(len(parts)) if namespace[1]}
            if "}" not in line and namespace[1]:
                here += parts
            nameless = nameless or not namespace[1]
        elif re.match(r"\}  // namespace$", line):
            nameless = False
        elif ended := re.match(r"\}  // namespace ([\w:]+)", line):
            del here[-len(ended[1].split("::")):]
        elif using := re.match(r"using namespace ([\w:]+);", line):
            names.directives.add(using[1])
        elif using := re.match(r"using [\w:]*::(\w+);", line):
            names.used.add(place + using[1])
        elif macro := re.match(r"#define (\w+)", line):
            names.others.add(macro[1])
        elif re.match(r"\w", line) and not NOT_DECLARATIONS.match(line):
            # Up to the parameters, the value or the body; "T Class::member(" declares nothing new.
            head = re.split(r"[({=;\[]|(?<!:):(?!:)", line, maxsplit=1)[0]
            if name := re.search(r"(?<!::)\b(\w+)$", re.sub(r"\s+final$", "", head.rstrip())):
                if line[len(head):].startswith("("):
                    rest = text[at + len(head) + 1:].split(")", 1)[0]
                    names.functions.setdefault(place + name[1], set()).add(types_of(rest))
                else:
                    names.others.add(place + name[1])
                if nameless or not here:
                    names.hidden.add(place + name[1])
        at += len(line)
    code = NO_CODE.sub("", text)
    mentioned = {word for words in MENTIONED.findall(code) for word in words if word}
    names.mentioned = {place + word for place in within for word in mentioned}
    names.values = {place + word for place in within for word in set(VALUE.findall(code))}
    return names


def is_program(source):
    return "\nint main(" in source and "\nnamespace dunlin" not in source


def units(most, sources):
    """Lists of numbers of `sources`, which are texts: a list for each unit. Few units, of about one size."""
    names = [Names() if is_program(source) else names_of(source) for source in sources]
    alike = {}
    for number, those in enumerate(names):
        alike.setdefault(frozenset(those.directives), []).append(number)
    return sorted(unit for numbers in alike.values() for unit in spread(most, numbers, names))


def spread(most, numbers, names):
    apart = {number: {other for other in numbers if other != number and names[number].collide(names[other])}
             for number in numbers}
    found = [[] for _ in range(-(-len(numbers) // most))]
    # What collides with many chooses while all units have room.
    for number in sorted(numbers, key=lambda number: -len(apart[number])):
        fitting = [unit for unit in found if len(unit) < most and apart[number].isdisjoint(unit)]
        if fitting:
            min(fitting, key=len).append(number)
        else:
            found.append([number])
    return [sorted(unit) for unit in found]


def parts_of_text(sources):
    """The #includes at its beginning, and what it has of each source."""
    includes, bodies = {}, []
    for number, source in enumerate(sources):
        if "\n#if" not in source:
            includes |= dict.fromkeys(INCLUDE.findall(source))
            source = INCLUDE.sub("", source)
        bodies.append(f"namespace program_{number} {{\n{source}\n}}" if is_program(source) else source)
    return [*includes], bodies


def one_text(sources):
    includes, bodies = parts_of_text(sources)
    return "\n".join([*includes, *bodies]) + "\n"


def source_of_line(sources, line):
    """Which of the sources, by number, has this line of their text, from 1; None if it is an #include of several."""
    includes, bodies = parts_of_text(sources)
    if line <= len(includes):
        having = [number for number, source in enumerate(sources) if includes[line - 1] in source.splitlines()]
        return having[0] if len(having) == 1 else None
    line -= len(includes)
    for number, body in enumerate(bodies):
        line -= body.count("\n") + 1
        if line < 1:
            return number
    return None
