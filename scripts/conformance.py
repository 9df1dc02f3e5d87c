"""What the conformance scripts share: writing inputs, running cases and counting their outcomes."""

import argparse
import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np

BINARY = Path(__file__).resolve().parent.parent / "build" / "release" / "attnlab"

DTYPES = {"bfloat16": "BF16", "float32": "F32", "float64": "F64", "bool": "BOOL", "int64": "I64"}


class Skipped(Exception):
    """A case that says something attnlab has no word for."""


def write_safetensors(path, tensors):
    """A length, a JSON header, the bytes of each array."""
    header, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": DTYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def difference(got, expected, tolerance):
    """What is wrong with an array, or nothing. The tolerance is (rtol, atol)."""
    if got.shape != expected.shape:
        return f"shape {got.shape}, expected {expected.shape}"
    rtol, atol = tolerance
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    if np.allclose(got, expected, rtol=rtol, atol=atol, equal_nan=True):
        return None
    with np.errstate(invalid="ignore"):
        error = np.abs(got - expected)
    return f"largest error {np.nanmax(error):.3g}, allowed {atol:g} + {rtol:g} |expected|"


def run(command):
    """What the command says when it fails, or nothing."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return f"exit {result.returncode}: {result.stderr.strip()[:200]}" if result.returncode else None


def parse_arguments(description):
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", type=Path, default=BINARY, help="default: build/release/attnlab")
    parser.add_argument("--only", metavar="REGEX", default="", help="cases whose names match")
    parser.add_argument("--commands", action="store_true", help="print the commands, run none")
    parser.add_argument("--verbose", action="store_true", help="name the passed and skipped too")
    arguments = parser.parse_args()
    # Without it ./attnlab would be looked for on the PATH.
    arguments.binary = arguments.binary.resolve()
    if not arguments.commands and not arguments.binary.is_file():
        print(f"{arguments.binary}: not there; build it with scripts/run", file=sys.stderr)
        sys.exit(2)
    return arguments


def run_cases(title, cases, run_case, arguments):
    """Runs run_case(case) of all (name, function that makes the case), and gives the exit code.
    run_case says what is wrong, or nothing."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name, load in cases:
        if not re.search(arguments.only, name):
            continue
        try:
            wrong = run_case(load())
            outcome, why = ("failed", wrong) if wrong else ("passed", "")
        except Skipped as reason:
            outcome, why = "skipped", str(reason)
        except subprocess.TimeoutExpired:
            outcome, why = "failed", "no end within 60 s"
        counts[outcome] += 1
        if outcome == "failed" or (arguments.verbose and not arguments.commands):
            print(f"{outcome}: {name}{': ' if why else ''}{why}", flush=True)
    if arguments.commands:
        return 0
    print(f"{title}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    if not counts["passed"] and not counts["failed"]:
        return 2
    return 1 if counts["failed"] else 0
