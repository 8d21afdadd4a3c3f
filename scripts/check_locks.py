"""Do the locks hold what is asked for, with hashes, and agree with each other?"""

from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "requirements"
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")
_PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^ ;\\]+)")


def canonical(name: str) -> str:
    """One spelling for a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def asked(kind: str) -> set[str]:
    """Names that an input file asks for, included files too."""
    names: set[str] = set()
    for line in (FOLDER / f"{kind}.in").read_text().splitlines():
        if line.startswith("-r "):
            names |= asked(line.removeprefix("-r ").removesuffix(".in").strip())
        elif match := _NAME.match(line):
            names.add(canonical(match.group()))
    return names


def locked(kind: str) -> dict[str, str]:
    """Names and versions of a lock."""
    lines = (FOLDER / f"{kind}.txt").read_text().splitlines()
    return {canonical(m[1]): m[2] for line in lines if (m := _PINNED.match(line))}


def faults() -> list[str]:
    """One sentence for everything that is wrong."""
    found: list[str] = []
    base = locked("base")
    for kind in ("base", "dev", "prod"):
        pins = locked(kind)
        text = (FOLDER / f"{kind}.txt").read_text()
        found += [f"{kind}.txt lacks {name}." for name in sorted(asked(kind) - pins.keys())]
        found += [
            f"{kind}.txt has {name} {pins[name]}, base.txt has {version}."
            for name, version in base.items()
            if pins.get(name, version) != version
        ]
        if "://" in text:
            found.append(f"{kind}.txt names an address.")
        if text.count("--hash=") < len(pins):
            found.append(f"{kind}.txt has packages without a hash.")
    return found


if __name__ == "__main__":
    for fault in faults():
        print(f"error: {fault} Run `make lock`.", file=sys.stderr)
    sys.exit(1 if faults() else 0)
