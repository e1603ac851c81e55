#!/usr/bin/env python3
"""Checks that a mistake is refused by the compiler, in the words that its author promised.

usage: must_not_compile.py FILE -- COMPILER FLAGS...
       must_not_compile.py --without-mistakes FILE... -- COMPILER FLAGS...

The file compiles as it is; since most of the time goes into headers, all files are compiled so
together, each in a namespace. Compiled with -DMISTAKE a file must not, and the compiler's output
must contain the text of every line of the file that starts with "// must say: ".
"""
import subprocess
import sys


def compile_with(command, *flags, text=None):
    result = subprocess.run([*command, "-fsyntax-only", *flags], input=text,
                            capture_output=True, text=True)
    return result.returncode == 0, result.stderr


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def is_include(line):
    return line.startswith("#include ")


def complaint(path, command):
    promised = [line.split("// must say: ", 1)[1].strip()
                for line in read(path) if line.startswith("// must say: ")]
    if not promised:
        return "there is no '// must say: ' line"
    compiles, output = compile_with(command, "-DMISTAKE", path)
    if compiles:
        return "compiles with -DMISTAKE"
    missing = [text for text in promised if text not in output]
    if missing:
        return f"is refused, but not with {missing}:\n" + output
    return None


def complaint_without_mistakes(paths, command):
    includes = {line: None for path in paths for line in read(path) if is_include(line)}
    text = list(includes)
    for number, path in enumerate(paths):
        text += [f"namespace file_{number} {{", f'#line 1 "{path}"',
                 *("" if is_include(line) else line for line in read(path)), "}"]
    compiles, output = compile_with(command, "-x", "c++", "-", text="\n".join(text) + "\n")
    return None if compiles else "not all compile without -DMISTAKE:\n" + output


def main():
    arguments, command = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, command = arguments[:at], arguments[at + 1:]
    if len(arguments) > 1 and command and arguments[0] == "--without-mistakes":
        problem = complaint_without_mistakes(arguments[1:], command)
    elif len(arguments) == 1 and command:
        problem = complaint(arguments[0], command)
        problem = problem and f"{arguments[0]}: {problem}"
    else:
        sys.exit(__doc__)
    if problem:
        sys.exit(problem)


if __name__ == "__main__":
    main()
