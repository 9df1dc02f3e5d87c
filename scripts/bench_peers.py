#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["numpy", "torch", "onnxruntime", "onnx"]
# ///
"""Time the same work in attnlab, NumPy, PyTorch and ONNX Runtime, and say how they compare.

    uv run scripts/bench_peers.py          or: pip install numpy torch onnxruntime onnx, then run it
    scripts/bench_peers.py --quick --only "attention|multihead"

Without --quick it takes half an hour. Those that are installed take part; NumPy has to be. All of
them take turns, round by round, since what else the machine does slows whoever is at work: only the
ratio within a round means anything. In a round each makes calls until its time is up, and its best
call counts; the table has the median time over the rounds and the median ratio to attnlab (2.0:
attnlab is twice as fast), JSON all rounds too. Before anything is timed all have to agree on the
output of attention, and on its weights.

attention, backward, multihead: `attnlab bench` as a process of its own, of which only the calls
count, against calls in this process: full scores and softmax in NumPy, scaled_dot_product_attention
and nn.MultiheadAttention in PyTorch, MultiHeadAttention of com.microsoft in ONNX Runtime (its
inputs [1, n, heads d], as it wants them). attention and weights: the [heads, n, n] weights too, by
each contender into memory that it keeps. normals: float32 into such memory. variance, saturation:
all of attnlab's process against the loop alone in NumPy and PyTorch. process: files in, file out,
each a program with its imports.

Below the table stands what attnlab alone is measured by: the normals it draws a second, two threads
over one, and the memory that a long sequence takes beside what goes in and comes out.

Exit code: 0 done, 2 nothing could be compared.
"""

import argparse
import contextlib
import importlib
import json
import os
import platform
import re
import statistics
import sys
import tempfile
from pathlib import Path

from peer_works import HEADS, Alone, Comparison, InputError, Settings, measure, run

BINARY = Path(__file__).resolve().parent.parent / "build" / "release" / "attnlab"
# Name in the table: packages it takes.
PEERS = {
    "NumPy": ["numpy"],
    "PyTorch": ["numpy", "torch"],
    "ONNX Runtime": ["numpy", "onnx", "onnxruntime"],
}


# ---- what came of it -----------------------------------------------------------------------------


def summary(work):
    """Medians over the rounds."""
    row = {"name": work.name, "contenders": {}}
    if work.peak_shares:
        row["peak_share"] = statistics.median(work.peak_shares)
    for name in work.contenders:
        seconds = [one[name] for one in work.rounds]
        ratios = [one[name] / one["attnlab"] for one in work.rounds]
        row["contenders"][name] = {
            "median_ms": 1e3 * statistics.median(seconds),
            "ratio": statistics.median(ratios),
            "ratio_low": min(ratios),
            "ratio_high": max(ratios),
            "rounds_ms": [1e3 * value for value in seconds],
        }
    return row


def summary_alone(work):
    return {
        "name": work.name, "value": statistics.median(work.rounds), "unit": work.unit,
        "rounds": work.rounds,
    }  # fmt: skip


def three_digits(value):
    if value >= 1e6:
        return f"{value:.3g}"
    return f"{value:.0f}" if value >= 999.5 else f"{value:.3g}"


def markdown(rows, peers):
    """A row a work: times in ms, and behind a peer's how many times attnlab's it is."""
    lines = [
        "| ms (times attnlab's) | attnlab | of peak | " + " | ".join(peers) + " |",
        "|---" * (3 + len(peers)) + "|",
    ]
    for row in rows:
        cells = [row["name"], three_digits(row["contenders"]["attnlab"]["median_ms"])]
        cells.append(f"{100 * row['peak_share']:.0f}%" if "peak_share" in row else "")
        for peer in peers:
            of = row["contenders"].get(peer)
            cells.append(f"{three_digits(of['median_ms'])} ({of['ratio']:.2f})" if of else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def markdown_alone(rows):
    lines = ["| attnlab alone | |", "|---|---|"]
    for row in rows:
        told = row["value"] is not None
        value = f"{three_digits(row['value'])} {row['unit']}" if told else "the system does not tell"
        lines.append(f"| {row['name']} | {value.strip()} |")
    return "\n".join(lines)


def processor():
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
        if found:
            return found[1]
    return platform.processor() or platform.machine()


def count(number, unit):
    return f"{number} {unit}{'' if number == 1 else 's'}"


def caption(result):
    versions = [f"{name} {version}" for name, version in result["versions"].items()]
    missing = f"; not installed: {', '.join(result['missing'])}" if result["missing"] else ""
    return (
        f"{result['processor']}, {count(result['threads'], 'thread')}, float32, {HEADS} heads "
        f"(1 in process, and where it is said), median of {count(result['rounds'], 'round')}; "
        f"{', '.join(versions)}{missing}."
    )


# ---- the program ---------------------------------------------------------------------------------


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", default=str(BINARY), metavar="FILE", help="the binary")
    parser.add_argument("--threads", type=int, default=1, help="of each contender (default 1)")
    parser.add_argument("--rounds", type=int, help="default 7, or 3 with --quick")
    parser.add_argument("--only", default="", metavar="REGEX", help="rows whose name it matches")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, shorter rounds")
    parser.add_argument("--format", choices=("markdown", "json"), default="markdown")
    arguments = parser.parse_args()
    if arguments.threads < 1:
        raise InputError(f"--threads: got {arguments.threads}, need at least 1")
    if arguments.rounds is not None and arguments.rounds < 1:
        raise InputError(f"--rounds: got {arguments.rounds}, need at least 1")
    try:
        re.compile(arguments.only)
    except re.error as error:
        raise InputError(f"--only: got {arguments.only}, no regular expression: {error}") from None
    if not os.access(arguments.binary, os.X_OK):
        raise InputError(f"--binary: got {arguments.binary}, need the binary scripts/run builds")
    return arguments


def limit_threads(threads):
    """Before the libraries are loaded, which read it then; programs started here inherit it."""
    for name in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR"):
        os.environ[f"{name}_NUM_THREADS"] = str(threads)


def load(threads):
    """The packages that are there, and the peers that have all of theirs."""
    modules = {}
    for package in dict.fromkeys(name for names in PEERS.values() for name in names):
        with contextlib.suppress(ImportError):
            modules[package] = importlib.import_module(package)
    peers = [peer for peer, packages in PEERS.items() if all(p in modules for p in packages)]
    if "numpy" not in modules:
        raise InputError("needs NumPy at least: pip install numpy torch onnxruntime onnx")
    if "torch" in modules:
        modules["torch"].set_num_threads(threads)
    return modules, peers


def compare(arguments):
    limit_threads(arguments.threads)
    modules, peers = load(arguments.threads)
    missing = [peer for peer in PEERS if peer not in peers]
    for peer in missing:
        absent = [package for package in PEERS[peer] if package not in modules]
        print(f"without {peer}: pip install {' '.join(absent)}", file=sys.stderr)
    rounds = arguments.rounds or (3 if arguments.quick else 7)
    settings = Settings(
        str(Path(arguments.binary).resolve()), arguments.threads, rounds,
        0.05 if arguments.quick else 0.2, arguments.quick,
    )  # fmt: skip
    rows, alone = [], []
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(modules, peers, settings, Path(folder))
        comparison.check()
        for work in comparison.works(lambda name: re.search(arguments.only, name)):
            measure(work, settings)
            if isinstance(work, Alone):
                alone.append(summary_alone(work))
                print(markdown_alone(alone[-1:]).splitlines()[-1], file=sys.stderr)
            else:
                rows.append(summary(work))
                print(markdown(rows[-1:], peers).splitlines()[-1], file=sys.stderr)
    if not rows and not alone:
        raise InputError(f"--only: got {arguments.only}, no row has such a name")
    versions = {"attnlab": run([settings.binary, "--version"]).split()[-1]}
    packages = {"NumPy": "numpy", "PyTorch": "torch", "ONNX Runtime": "onnxruntime"}
    versions |= {peer: modules[packages[peer]].__version__ for peer in peers}
    return {
        "processor": processor(), "threads": arguments.threads, "rounds": rounds,
        "versions": versions, "missing": missing, "rows": rows, "alone": alone,
    }  # fmt: skip


def main():
    try:
        arguments = parse_arguments()
        result = compare(arguments)
        if arguments.format == "json":
            print(json.dumps(result, indent=2))
        else:
            peers = [peer for peer in result["versions"] if peer != "attnlab"]
            tables = [markdown(result["rows"], peers)] if result["rows"] else []
            tables += [markdown_alone(result["alone"])] if result["alone"] else []
            print("\n\n".join([*tables, caption(result)]))
    except InputError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
