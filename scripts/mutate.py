#!/usr/bin/env python3
"""Break the code on purpose, one small change at a time, and see whether a test notices.

    scripts/mutate.py lib/attnlab/attention/mask.cpp --target test_attention
    scripts/mutate.py --diff main --target test_attention --max 30

Each mutant is one change (< for <=, + for -, a constant off by one, true for false, a condition
turned round, a statement left out) in one line of a source file. The target is rebuilt and run;
a mutant that no test notices survives and is printed as a diff. The file is put back after each.
Exit code: 0 when none survived, 1 when some did, 2 when nothing could be tried.
"""

import argparse
import contextlib
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# (pattern, replacements). A line gives a mutant for each match and each replacement.
OPERATORS = [
    (r"(?<=\s)<=(?=\s)", ["<", ">"]),
    (r"(?<=\s)>=(?=\s)", [">", "<"]),
    (r"(?<=\s)<(?=\s)", ["<=", ">="]),
    (r"(?<=\s)>(?=\s)", [">=", "<="]),
    (r"(?<=\s)==(?=\s)", ["!="]),
    (r"(?<=\s)!=(?=\s)", ["=="]),
    (r"(?<=\s)&&(?=\s)", ["||"]),
    (r"(?<=\s)\|\|(?=\s)", ["&&"]),
    (r"(?<=\s)\+(?=\s)", ["-"]),
    (r"(?<=\s)-(?=\s)", ["+"]),
    (r"(?<=\s)\*(?=\s)", ["/"]),
    (r"(?<=\s)/(?=\s)", ["*"]),
    (r"(?<=\s)\+=(?=\s)", ["-="]),
    (r"(?<=\s)-=(?=\s)", ["+="]),
    (r"(?<=\s)\*=(?=\s)", ["/="]),
    (r"(?<=\s)/=(?=\s)", ["*="]),
    (r"\btrue\b", ["false"]),
    (r"\bfalse\b", ["true"]),
    (r"\bstd::min\b", ["std::max"]),
    (r"\bstd::max\b", ["std::min"]),
    (r"\bif \(", ["if (!("]),
    (r"(?<![\w.])\d+(?![\w.'])", ["+1"]),
    (r"(?<![\w:])!(?=[\w(])", [""]),
    (r"\bbreak;", [";"]),
    (r"\bcontinue;", [";"]),
]
# A whole line that is one statement and declares nothing.
STATEMENT = re.compile(r"^\s*(?!return\b|using\b|throw\b|else\b|case\b)[\w:.>\[\]()-]+(\(| [-+*/]?= ).*;$")


@dataclass
class Mutant:
    path: Path
    line: int  # from 0
    text: str  # what the line becomes


def code_spans(line):
    """The parts of a line that are code: no string, character or comment."""
    spans, start = [], 0
    for match in re.finditer(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//.*', line):
        spans.append((start, match.start()))
        start = match.end()
    spans.append((start, len(line)))
    return spans


def negated(line, start):
    """The line with the condition of the `if (` at start turned round, or nothing if it goes on."""
    opening = line.index("(", start)
    depth = 0
    for position in range(opening, len(line)):
        depth += {"(": 1, ")": -1}.get(line[position], 0)
        if depth == 0:
            condition = line[opening + 1 : position]
            if ";" in condition:
                return None
            return f"{line[: opening + 1]}!({condition}){line[position:]}"
    return None


def mutations(line):
    """Every mutant of one line, as new lines."""
    if line.lstrip().startswith(("#", "//", "*", "template", "static_assert", "using", "namespace")):
        return
    spans = code_spans(line)
    for pattern, replacements in OPERATORS:
        for match in re.finditer(pattern, line):
            if not any(a <= match.start() and match.end() <= b for a, b in spans):
                continue
            for replacement in replacements:
                if replacement == "+1":
                    new = str(int(match[0]) + 1)
                elif replacement == "if (!(":
                    changed = negated(line, match.start())
                    if changed:
                        yield changed
                    continue
                else:
                    new = replacement
                yield line[: match.start()] + new + line[match.end() :]
    if STATEMENT.match(line):
        yield re.match(r"\s*", line)[0] + ";"


def mutants_of(path, lines_wanted=None):
    in_block_comment = False
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")):
        if in_block_comment or line.lstrip().startswith("/*"):
            in_block_comment = "*/" not in line
            continue
        if lines_wanted is None or number in lines_wanted:
            for text in mutations(line):
                yield Mutant(path, number, text)


def changed_lines(base):
    """Source files and the lines (from 0) that differ from a git revision."""
    diff = subprocess.run(
        ["git", "diff", "--unified=0", base, "--", "lib/*.cpp", "lib/*.h", "app/*.cpp", "app/*.h"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    changed, path = {}, None
    for line in diff.splitlines():
        if line.startswith("+++ "):
            path = None if line.endswith("/dev/null") else ROOT / line[6:]
        match = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
        if match and path:
            first, count = int(match[1]) - 1, int(match[2] or 1)
            changed.setdefault(path, set()).update(range(first, first + count))
    return changed


@contextlib.contextmanager
def applied(mutant):
    """The mutant stands in its file; the file is as before in the end, whatever happens."""
    original = mutant.path.read_bytes()
    lines = original.decode("utf-8").split("\n")
    lines[mutant.line] = mutant.text
    try:
        mutant.path.write_text("\n".join(lines), encoding="utf-8")
        yield
    finally:
        mutant.path.write_bytes(original)


def run(command, timeout):
    """Exit code and output; -1 when it took too long."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
            return process.returncode, output.decode(errors="replace")
        except BaseException as error:
            process.kill()
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                return -1, "timed out"
            raise


def build(arguments):
    return run(["cmake", "--build", str(arguments.build), "--target", *arguments.target], None)


def failing_target(arguments, timeout):
    """The first test program that fails, with its output."""
    for target in arguments.target:
        code, output = run([str(arguments.build / "tests" / target)], timeout)
        if code != 0:
            return target, output
    return None


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, help="source files to break")
    parser.add_argument("--diff", metavar="REV", help="break the lines that differ from a revision")
    parser.add_argument("--lines", metavar="A-B", help="only these lines of the files")
    parser.add_argument(
        "--target", action="append", required=True, help="test program to build and run; repeatable"
    )
    parser.add_argument(
        "--build", type=Path, default=ROOT / "build" / "release", help="configured build folder"
    )
    parser.add_argument("--max", type=int, default=20, help="mutants to try, 0 = all (default 20)")
    parser.add_argument("--seed", type=int, default=0, help="which of them (default 0)")
    parser.add_argument("--list", action="store_true", help="print the mutants, try none")
    arguments = parser.parse_args()
    if bool(arguments.files) == bool(arguments.diff):
        parser.error("give source files or --diff, not both")
    if arguments.lines and not re.fullmatch(r"\d+-\d+", arguments.lines):
        parser.error(f"--lines: got {arguments.lines}, need A-B, such as 10-20")
    return arguments


def chosen_mutants(arguments):
    if arguments.diff:
        wanted = changed_lines(arguments.diff)
    else:
        lines = None
        if arguments.lines:
            first, last = map(int, arguments.lines.split("-"))
            lines = range(first - 1, last)
        wanted = {path.resolve(): lines for path in arguments.files}
    found = [m for path, lines in sorted(wanted.items()) for m in mutants_of(path, lines)]
    if 0 < arguments.max < len(found):
        kept = random.Random(arguments.seed).sample(range(len(found)), arguments.max)
        found = [found[i] for i in sorted(kept)]
    return found


def described(mutant):
    before = mutant.path.read_text(encoding="utf-8").split("\n")[mutant.line]
    place = mutant.path.relative_to(ROOT) if mutant.path.is_relative_to(ROOT) else mutant.path
    return f"{place}:{mutant.line + 1}\n  - {before.strip()}\n  + {mutant.text.strip()}"


def try_all(mutants, arguments, timeout):
    """Counts by outcome; survivors are printed."""
    counts = {"killed": 0, "survived": 0, "not compiled": 0}
    for number, mutant in enumerate(mutants, 1):
        text = described(mutant)
        with applied(mutant):
            if build(arguments)[0] != 0:
                outcome = "not compiled"
            else:
                outcome = "killed" if failing_target(arguments, timeout) else "survived"
        counts[outcome] += 1
        if outcome == "survived":
            print(f"survived: {text}", flush=True)
        print(f"{number}/{len(mutants)} {outcome}", file=sys.stderr, flush=True)
    return counts


def main():
    # So that a plain kill also goes through the finally that puts the file back.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arguments = parse_arguments()
    mutants = chosen_mutants(arguments)
    if not mutants:
        print("no line to break", file=sys.stderr)
        return 2
    if arguments.list:
        print("\n".join(map(described, mutants)))
        return 0
    code, output = build(arguments)
    started = time.monotonic()
    failure = None if code else failing_target(arguments, None)
    if code or failure:
        print(output if code else failure[1], file=sys.stderr)
        print("the tests have to pass before anything is broken", file=sys.stderr)
        return 2
    # A mutant that loops for ever is one that the tests notice.
    timeout = 10 + 10 * (time.monotonic() - started)
    try:
        counts = try_all(mutants, arguments, timeout)
    finally:
        build(arguments)  # the programs of the last mutant go too
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if counts["survived"] else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
