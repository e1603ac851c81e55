#!/usr/bin/env python3
"""Checks that a mistake is refused by the compiler, in the words that its author promised.

usage: must_not_compile.py FILE -- COMPILER FLAGS...

The file compiles as it is. Compiled with -DMISTAKE it must not, and the compiler's output must
contain the text of every line of the file that starts with "// must say: ".
"""
import subprocess
import sys


def compile_with(command, path, *flags):
    result = subprocess.run([*command, "-fsyntax-only", *flags, path],
                            capture_output=True, text=True)
    return result.returncode == 0, result.stderr


def complaint(path, command):
    with open(path, encoding="utf-8") as file:
        promised = [line.split("// must say: ", 1)[1].strip()
                    for line in file if line.startswith("// must say: ")]
    if not promised:
        return "there is no '// must say: ' line"
    compiles, output = compile_with(command, path)
    if not compiles:
        return "does not compile even without -DMISTAKE:\n" + output
    compiles, output = compile_with(command, path, "-DMISTAKE")
    if compiles:
        return "compiles with -DMISTAKE"
    missing = [text for text in promised if text not in output]
    if missing:
        return f"is refused, but not with {missing}:\n" + output
    return None


def main():
    path, separator, *command = sys.argv[1:]
    if separator != "--":
        sys.exit(__doc__)
    problem = complaint(path, command)
    if problem:
        sys.exit(f"{path}: {problem}")


if __name__ == "__main__":
    main()
