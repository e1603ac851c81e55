"""The command `dunlin`, which the package brings beside the module."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Become the program `dunlin`, with the arguments of this one."""
    program = Path(__file__).parent / "bin" / "dunlin"
    if not program.exists():
        sys.exit("dunlin: this package was built without the command, since libraries that it needs were missing. "
                 "docs/python.md of the sources names them")
    os.execv(program, ["dunlin", *sys.argv[1:]])
