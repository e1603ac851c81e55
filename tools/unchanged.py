"""Remembers checks that have passed, by the content of all that they read.

A check has a key (what is run, and how) and the files that it read when it passed. It has passed
before if each of these files has the content of then. What failed is never remembered. The records are
beside the compiler's cache, so that another clone finds them, too: files of the project are named from
its root.
"""
import hashlib
import os
import pathlib
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORGET_AFTER_S = 30 * 24 * 3600


def default_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "dunlin-checks"


def changed_since(file, moment):
    try:
        return os.stat(file).st_mtime > moment
    except OSError:
        return True


class Passed:
    def __init__(self, folder=None, root=ROOT):
        self.folder = pathlib.Path(folder or default_folder())
        self.root = pathlib.Path(root).resolve()
        self.digests = {}

    def key(self, *parts):
        """Parts are texts; the project's own path in them does not count."""
        text = "\0".join(str(part).replace(str(self.root), ".") for part in parts)
        return hashlib.sha256(text.encode()).hexdigest()

    def name(self, path):
        path = os.path.realpath(path)
        prefix = str(self.root) + os.sep
        return "./" + path[len(prefix):] if path.startswith(prefix) else path

    def digest(self, name):
        if name not in self.digests:
            path = self.root / name  # an absolute name stays what it is
            try:
                self.digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError:
                self.digests[name] = "absent"
        return self.digests[name]

    def records(self, key):
        place = self.folder / key[:2] / key[2:]
        return [path for path in place.glob("*") if not path.name.startswith(".")]

    def has_passed(self, key):
        for record in self.records(key):
            try:
                lines = record.read_text(encoding="utf-8").splitlines()
                if all(self.digest(name) == digest for digest, name in
                       (line.split(" ", 1) for line in lines)):
                    os.utime(record)
                    return True
            except (OSError, ValueError):
                continue  # another process removes it, or was killed while it wrote it
        return False

    def remember(self, key, files, began):
        """The check of `key` has read `files`, and passed; it began at that time.time()."""
        if any(changed_since(file, began) for file in files):
            return  # what it read may not be what is there now
        names = sorted({self.name(file) for file in files})
        text = "".join(f"{self.digest(name)} {name}\n" for name in names)
        place = self.folder / key[:2] / key[2:]
        try:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=place, prefix=".", delete=False,
                                             encoding="utf-8") as file:
                file.write(text)
            os.replace(file.name, place / hashlib.sha256(text.encode()).hexdigest()[:16])
        except OSError:
            pass  # a cache that cannot be written costs time only

    def forget_old(self):
        oldest = time.time() - FORGET_AFTER_S
        for record in self.folder.glob("*/*/*"):
            try:
                if record.stat().st_mtime < oldest:
                    record.unlink()
            except OSError:
                continue
