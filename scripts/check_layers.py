#!/usr/bin/env python3
"""Check the rules of the house that no compiler knows: who may include whom, and what is not used.

usage: check_layers.py [ROOT]     prints FILE:LINE: RULE for each breach; exit 1 when there are any
"""

import re
import sys
from pathlib import Path

# What each room may include of this project, itself aside: core <- attention | stats | io
# <- experiments <- app.
ROOMS = {
    "lib/attnlab/core": [],
    "lib/attnlab/attention": ["attnlab/core"],
    "lib/attnlab/stats": ["attnlab/core"],
    "lib/attnlab/io": ["attnlab/core"],
    "lib/attnlab/experiments": [
        "attnlab/core",
        "attnlab/attention",
        "attnlab/stats",
        "attnlab/io",
    ],
    "app": [""],
}

# Pattern, where it must not stand, where it may all the same, why.
FORBIDDEN = [
    (r'#include [<"]CLI/', ["lib"], [], "CLI11 is included in app only"),
    (
        r'#include [<"]nlohmann/',
        ["lib"],
        ["lib/attnlab/io"],
        "nlohmann is included in app and lib/attnlab/io only",
    ),
    (
        r"std::(cout|cerr|clog|exit|quick_exit|abort)\b|\b(printf|puts)\(|\bargv\b",
        ["lib"],
        [],
        "the library never prints, exits or reads argv",
    ),
    (
        r"std::\w+_distribution\b",
        ["lib", "app"],
        [],
        "distributions of the standard library differ between compilers",
    ),
    (r"\bcatch \(", ["app"], ["app/main.cpp"], "main has the only try and catch of the app"),
    (
        r"-ffast-math|-Ofast|-funsafe-math|-march=native|-mcpu=native|fast-math\"",
        ["CMakeLists.txt", "CMakePresets.json", "lib", "app", "tests"],
        [],
        "results are the same bits on every machine",
    ),
]

LONGEST_FILE = 400
SOURCES = {".h", ".cpp", ".txt", ".cmake", ".json"}
TOP_LEVEL = {
    "CMakeLists.txt",
    "CMakePresets.json",
    "LICENSE",
    "README.md",
    "app",
    "configs",
    "lib",
    "scripts",
    "tests",
}


def is_under(path, folders):
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def room_of(path):
    return next((room for room in ROOMS if is_under(path, [room])), None)


def include_breach(path, line):
    """What is wrong with an include of our own in this line, or nothing."""
    match = re.match(r'\s*#\s*include\s+(?:"([^"]+)"|<(attnlab/[^>]+)>)', line)
    room = room_of(path)
    if not match or not room:
        return None
    included = match[1] or match[2]
    allowed = ROOMS[room] + [room.removeprefix("lib/")]
    if any(included.startswith(prefix) for prefix in allowed) or room == "app":
        return None
    return f"{room} must not include {included}"


def breaches_of(path, text):
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        breach = include_breach(path, line)
        if breach:
            yield number, breach
        for pattern, where, but, why in FORBIDDEN:
            code = line.split("//")[0]
            if is_under(path, where) and not is_under(path, but) and re.search(pattern, code):
                yield number, why
    if len(lines) > LONGEST_FILE and Path(path).suffix in {".h", ".cpp", ".py"}:
        yield LONGEST_FILE + 1, f"{len(lines)} lines, at most {LONGEST_FILE} in a file"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    found = []
    for entry in sorted(root.iterdir()):
        if entry.name not in TOP_LEVEL and not entry.name.startswith((".", "build")):
            found.append(f"{entry.name}: the top level holds only {', '.join(sorted(TOP_LEVEL))}")
    files = [root / "CMakeLists.txt", root / "CMakePresets.json"]
    for folder in ("lib", "app", "tests", "scripts"):
        files += sorted(p for p in (root / folder).rglob("*") if p.is_file())
    for file in files:
        path = file.relative_to(root).as_posix()
        if file.suffix not in SOURCES | {".py"} or is_under(path, ["tests/data"]):
            continue
        if path.startswith("lib/attnlab/") and room_of(path) is None:
            found.append(f"{path}: in none of the rooms {', '.join(ROOMS)}")
        for number, rule in breaches_of(path, file.read_text(encoding="utf-8")):
            found.append(f"{path}:{number}: {rule}")
    print("\n".join(found) if found else f"layering: {len(files)} files in order", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
