#!/usr/bin/env python3
"""Checks that mistakes are refused by the compiler, in the words that their authors promised.

usage: must_not_compile.py FILE... -- COMPILER FLAGS...
       must_not_compile.py --without-mistakes FILE... -- COMPILER FLAGS...

The files compile as they are. Compiled with -DMISTAKE a file must not, and the compiler's output must contain the
text of every line of the file that starts with "// must say: ".

Since most of the time goes into headers, all files are compiled together, each in a namespace. Then an error counts
for the files that it names, also in the compiler's remarks on how it came about. A compiler mentions some errors only
once (an instantiation that two files need), so a file that lacks a promised one is compiled once more, alone.
"""
import re
import subprocess
import sys

EVERY_ERROR = ("-fmax-errors=0", "-ferror-limit=0")  # in g++'s words, and in clang's
CONTEXT = re.compile(r"In file included from |\s+from |[^ ]+: In |[^ ]+: At |[^ ]+:   required ")


def compile_with(command, *flags, text=None):
    result = subprocess.run([*command, "-fsyntax-only", *flags], input=text,
                            capture_output=True, text=True)
    return result.returncode == 0, result.stderr


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def is_include(line):
    return line.startswith("#include ")


def promises(path):
    return [line.split("// must say: ", 1)[1].strip()
            for line in read(path) if line.startswith("// must say: ")]


def complaint(path, command):
    """What is wrong with one file that is compiled alone, or None."""
    promised = promises(path)
    if not promised:
        return "there is no '// must say: ' line"
    compiles, output = compile_with(command, "-DMISTAKE", path)
    if compiles:
        return "compiles with -DMISTAKE"
    missing = [text for text in promised if text not in output]
    if missing:
        return f"is refused, but not with {missing}:\n" + output
    return None


def errors_of(output):
    """The compiler's errors, each with what it says before and after on how it came about."""
    errors, context, last_file, last_context = [], "", "", ""
    for line in output.splitlines(keepends=True):
        if re.search(r": (fatal )?error: ", line):
            # g++ says it once for the errors that follow each other in one instantiation.
            file = line.split(":", 1)[0]
            context = context or (last_context if file == last_file else "")
            last_file, last_context = file, context
            errors.append(context + line)
        elif CONTEXT.match(line):
            context += line
            continue
        elif errors:
            errors[-1] += context + line
        context = ""
    return errors


def complaints(paths, command):
    """What is wrong with the files, each with its path."""
    every_error = EVERY_ERROR[next((1 for word in command if "clang" in word), 0)]
    compiles, output = compile_with(command, "-DMISTAKE", every_error, "-x", "c++", "-", text=together(paths))
    errors = [] if compiles else errors_of(output)
    result = []
    for path in paths:
        said = "".join(error for error in errors if f"{path}:" in error)
        promised = promises(path)
        if not promised or not all(text in said for text in promised):
            problem = complaint(path, command)
            result += [f"{path}: {problem}"] if problem else []
    return "\n".join(result) or None


def together(paths):
    includes = {line: None for path in paths for line in read(path) if is_include(line)}
    text = list(includes)
    for number, path in enumerate(paths):
        text += [f"namespace file_{number} {{", f'#line 1 "{path}"',
                 *("" if is_include(line) else line for line in read(path)), "}"]
    return "\n".join(text) + "\n"


def complaint_without_mistakes(paths, command):
    compiles, output = compile_with(command, "-x", "c++", "-", text=together(paths))
    return None if compiles else "not all compile without -DMISTAKE:\n" + output


def main():
    arguments, command = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, command = arguments[:at], arguments[at + 1:]
    if len(arguments) > 1 and command and arguments[0] == "--without-mistakes":
        problem = complaint_without_mistakes(arguments[1:], command)
    elif arguments and command:
        problem = complaints(arguments, command)
    else:
        sys.exit(__doc__)
    if problem:
        sys.exit(problem)


if __name__ == "__main__":
    main()
