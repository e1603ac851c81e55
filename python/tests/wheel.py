"""Builds a wheel of the package, and uses it where there is neither a compiler nor a library of ours.

usage: wheel.py this|abi3 SOURCES FOLDER [--root ROOT]

`this`: a wheel for the Python that runs this, by pip. `abi3`: one for all Pythons from 3.12 on, by one of these, which
is looked for. auditwheel gives the wheel what it needs and its name. Then two members of a group, and the command, run
in a root that has a Python, the C and C++ libraries, and nothing else, for each Python that there is for the wheel;
with --root, also in the root of another system. Exits with 77 and a sentence if a tool is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile

TOOLS = pathlib.Path(sys.prefix) / "bin"
CHROOT = shutil.which("chroot", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or ""

# The wheel has no RDMA devices: their library and its drivers belong to the host. OpenSSL is in the module.
DEFINES = {"DUNLIN_VERBS": "OFF", "OPENSSL_USE_STATIC_LIBS": "ON", "DUNLIN_WERROR": "ON"}

BUILD_BY_BACKEND = """
import json, sys
import scikit_build_core.build
print(scikit_build_core.build.build_wheel(sys.argv[1], json.loads(sys.argv[2])))
"""

MEMBERS = """
import subprocess, sys
sys.path.insert(0, "/site")
import dunlin

group, members = "wheel", 2
if len(sys.argv) == 1:
    other = subprocess.Popen([sys.executable, "-I", __file__, "other"])
with dunlin.join(group, members, timeout=120, silence_timeout=0) as node:
    store = node.store("keys", copies=2)
    queue = node.queue("names", capacity=4)
    segments = node.segments(pool_bytes=1 << 20)
    if len(sys.argv) == 1:
        assert queue.pop(timeout=120) == b"segment"
        found = segments.find("bytes")
        assert found.get(5) == b"hello" and store["from the other"] == b"value"
        queue.push(b"seen")
        assert other.wait() == 0
    else:
        store["from the other"] = b"value"
        segments.allocate(8, name="bytes", on=node.rank).put(b"hello")
        queue.push(b"segment")
        while (word := queue.pop(timeout=120)) != b"seen":
            queue.push(word)
if len(sys.argv) == 1:
    from dunlin import _command
    print("two members, Python", sys.version.split()[0], flush=True)
    sys.argv[1:] = ["--version"]
    _command.main()
"""


def skip(reason: str) -> None:
    print(f"skipped: {reason}")
    sys.exit(77)


def run(*command: str | pathlib.Path, **options: object) -> str:
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if ended.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{ended.stdout}")
    return ended.stdout


def pythons_of_abi3() -> list[pathlib.Path]:
    """The interpreters of Python 3.12 and later that can be found, each version once."""
    folders = [pathlib.Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    folders += sorted(pathlib.Path.home().glob(".pyenv/versions/*/bin"))
    found: dict[str, pathlib.Path] = {}
    for folder in folders:
        for file in sorted(folder.glob("python3.1[2-9]")):
            told = subprocess.run([file, "-c", "import sys; print(sys.version_info[:2], sys.executable)"],
                                  capture_output=True, text=True, check=False)
            if told.returncode == 0:
                version, path = told.stdout.strip().rsplit(" ", 1)
                found.setdefault(version, pathlib.Path(path).resolve())
    return list(found.values())


def build(python: pathlib.Path, kind: str, sources: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """A wheel, which names no system yet."""
    made = folder / "made"
    shutil.rmtree(made, ignore_errors=True)
    config = {"build-dir": str(sources / f"build/wheel_{kind}")}
    config |= {f"cmake.define.{name}": value for name, value in DEFINES.items()}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"CXX": os.environ.get("CXX", "c++"), "CCACHE_DEPEND": "1", "PATH": f"{TOOLS}:{os.environ['PATH']}"}
    if kind == "this":
        settings = [f"--config-settings={name}={value}" for name, value in config.items()]
        run(python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", made, *settings, sources,
            env=environment)
    else:  # the tools are written in Python alone, and so those of this Python are those of that one
        environment["PYTHONPATH"] = str(next((pathlib.Path(sys.prefix) / "lib").glob("python3*/site-packages")))
        run(python, "-B", "-c", BUILD_BY_BACKEND, made, json.dumps(config), cwd=sources, env=environment)
    wheel, = made.glob("*.whl")
    return wheel


def repair(wheel: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The wheel with the libraries that not every system has, and with the name of the systems that it is for."""
    shutil.rmtree(folder / "wheels", ignore_errors=True)
    run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", folder / "wheels", wheel,
        env=os.environ | {"PATH": f"{TOOLS}:{os.environ['PATH']}"})
    repaired, = (folder / "wheels").glob("*.whl")
    return repaired


def check_name(wheel: pathlib.Path, kind: str) -> None:
    version = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    tag = "cp312-abi3" if kind == "abi3" else f"{version}-{version}"
    if not re.fullmatch(rf"dunlin_memory-[0-9.]+-{tag}-manylinux_2_[0-9]+_.*\.whl", wheel.name):
        sys.exit(f"the name of {wheel.name} is not of {tag} and manylinux")


def check_content(site: pathlib.Path) -> None:
    for name in ("_core.pyi", "py.typed", "bin/dunlin"):
        if not (site / "dunlin" / name).exists():
            sys.exit(f"the wheel has no dunlin/{name}")
    module, = (site / "dunlin").glob("_core.*.so")
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", module))
    outside = [name for name in needed if not re.match(r"(libstdc\+\+|libm|libgcc_s|libc|libdl|libpthread|ld-linux)", name)]
    if outside:
        sys.exit(f"the module needs {outside}")


def libraries_of(file: pathlib.Path) -> set[pathlib.Path]:
    told = subprocess.run(["ldd", file], capture_output=True, text=True, check=False).stdout
    return {pathlib.Path(path) for path in re.findall(r"(/\S+) \(0x", told)}


def make_root(python: pathlib.Path, root: pathlib.Path) -> None:
    """A root with this Python, without what of it needs OpenSSL, and with the libraries of C and C++."""
    paths = json.loads(run(python, "-I", "-c", "import json, sysconfig; print(json.dumps(sysconfig.get_paths()))"))
    shutil.rmtree(root, ignore_errors=True)
    library = pathlib.Path(paths["stdlib"])
    unwanted = shutil.ignore_patterns("site-packages", "dist-packages", "test", "tests", "idlelib", "__pycache__", "config-*",
                                      "_ssl.*", "_hashlib.*", "_tkinter.*", "_sqlite3.*", "_curses*", "readline.*", "*.a")
    shutil.copytree(library, root / library.relative_to("/"), ignore=unwanted)
    compiler = os.environ.get("CXX", "c++")
    files = {pathlib.Path(run(compiler, f"-print-file-name={name}").strip()) for name in ("libstdc++.so.6", "libgcc_s.so.1")}
    files |= libraries_of(python) | {python}
    for module in (root / library.relative_to("/")).glob("lib-dynload/*.so"):
        files |= libraries_of(module)
    for file in files:
        target = root / file.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
        if file.name.startswith(("libstdc++", "libgcc_s")):  # where each loader looks
            libraries = root / "usr/lib"
            libraries.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, libraries / file.name)


def use(root: pathlib.Path, python: pathlib.Path, wheel: pathlib.Path) -> str:
    """What the program says that uses the wheel in that root."""
    shutil.rmtree(root / "site", ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(root / "site")
    (root / "site/dunlin/bin/dunlin").chmod(0o755)  # as pip does, by what the archive says
    check_content(root / "site")
    (root / "members.py").write_text(MEMBERS, encoding="utf-8")
    for name in ("proc", "dev", "tmp"):
        (root / name).mkdir(exist_ok=True)
    inside = textwrap.dedent("""
        mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" &&
        exec env -i LD_LIBRARY_PATH=/usr/lib "$3" "$1" "$2" -I -B /members.py
        """)
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    return run("unshare", *as_root, "--mount", "sh", "-c", inside, "sh", root, python, CHROOT)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["this", "abi3"])
    parser.add_argument("sources", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--root", type=pathlib.Path)
    options = parser.parse_args()
    if not (TOOLS / "auditwheel").exists():
        skip("there is no auditwheel in build/venv (tools/auditwheel.txt)")
    for tool in (CHROOT or "chroot", "unshare", "readelf", "ldd"):
        if shutil.which(tool) is None:
            skip(f"there is no {tool}")
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    if subprocess.run(["unshare", *as_root, "--mount", "true"], check=False, capture_output=True).returncode:
        skip("this system gives nobody a mount namespace (unshare --mount)")
    pythons = pythons_of_abi3() if options.kind == "abi3" else [pathlib.Path(sys.executable).resolve()]
    if not pythons:
        skip("there is no Python 3.12 or later, in PATH or of pyenv")

    options.folder.mkdir(parents=True, exist_ok=True)
    builder = pythons[0] if options.kind == "abi3" else pathlib.Path(sys.executable)
    wheel = repair(build(builder, options.kind, options.sources, options.folder), options.folder)
    check_name(wheel, options.kind)
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes")
    for python in pythons:
        root = options.folder / "root"
        make_root(python, root)
        print(use(root, python, wheel), end="")
        shutil.rmtree(root)
    if options.root is not None:
        python, = sorted((options.root / "usr/bin").glob("python3.[0-9][0-9]"))
        print(use(options.root, pathlib.Path("/usr/bin") / python.name, wheel), end="")


if __name__ == "__main__":
    main()
