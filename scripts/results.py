"""Reading the results of attnlab for the plot scripts, and telling them apart by name.

A script asks for the rows of one command and gets a list of runs, whatever they came in: a JSON
result, an array of them, several of either one after the other, or the rows of --format jsonl.
"""

import json
import math
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

# What tells the rows of one run apart.
IDENTITY = (
    "d_k", "keys", "scaling", "logit_variance", "head",
    "operation", "n", "heads", "causal", "weights", "threads", "kernel",
    "buffers",
)  # fmt: skip
# Columns of words, which are no numbers.
WORDS = {"scaling", "operation", "kernel", "buffers"}
SPACE = re.compile(r"\s*")


class InputError(Exception):
    """Bad input, told in one line: source, field, value and rule."""


@dataclass
class Run:
    source: str
    options: dict = field(default_factory=dict)  # unknown (empty) for jsonl
    result: dict = field(default_factory=dict)
    rows: list = field(default_factory=list)
    interrupted: bool = False


# ---- reading -------------------------------------------------------------------------------------


def read_text(path):
    if path == "-":
        # Windows' and editors' byte order marks are no JSON.
        return "standard input", sys.stdin.buffer.read().decode("utf-8-sig", errors="replace")
    try:
        return path, Path(path).read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror.lower()}") from None


def documents_in(source, text):
    """The JSON values that stand one after the other, each with the place where it starts."""
    decoder = json.JSONDecoder()
    position, end = 0, len(text.rstrip())
    while position < end:
        position = SPACE.match(text, position).end()
        place = f"{source}:{text.count(chr(10), 0, position) + 1}"
        try:
            document, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            why = "need a result in --format json or jsonl"
            raise InputError(f"{source}:{error.lineno}: not JSON: {why}") from None
        except RecursionError:
            raise InputError(f"{source}: not a result: nested too deeply") from None
        for item in document if isinstance(document, list) else [document]:
            if not isinstance(item, dict):
                raise InputError(f"{place}: not a result of attnlab: no JSON object")
            yield place, item


def read_results(paths):
    """Pairs of a place and a JSON object, from all the files or standard input."""
    if not paths and sys.stdin.isatty():
        raise InputError("standard input: a terminal: give a file, or pipe a result in")
    found = []
    for path in paths or ["-"]:
        source, text = read_text(path)
        before = len(found)
        found += documents_in(source, text)
        if len(found) == before:
            raise InputError(f"{source}: empty: need a result in --format json or jsonl")
    return found


def is_result(item):
    return isinstance(item.get("result"), dict)


def check_command(place, item, commands):
    got = item.get("command")
    if got not in commands:
        raise InputError(f"{place}: command: got {got}, need {' or '.join(commands)}")


def run_of_result(place, item, command):
    check_command(place, item, [command])
    result = item["result"]
    options = item.get("options")
    rows = result.get("rows")
    return Run(
        place,
        options if isinstance(options, dict) else {},
        result,
        rows if isinstance(rows, list) else [],
        bool(result.get("interrupted")),
    )


def read_runs(paths, command, columns):
    """The runs of a command; their rows have the columns."""
    runs, streams = [], {}
    for place, item in read_results(paths):
        if is_result(item):
            runs.append(run_of_result(place, item, command))
            continue
        key = (place.rpartition(":")[0], item.get("run"))
        run, seen = streams.get(key, (None, None))
        identity = tuple(item.get(name) for name in IDENTITY)
        # Rows of several runs without names: the next starts where a point comes again.
        if run is None or (item.get("run") is None and identity in seen):
            run, seen = Run(place), set()
            streams[key] = (run, seen)
            runs.append(run)
        seen.add(identity)
        # The mark of an interruption is the last line, unless the run went on.
        run.interrupted = item.get("interrupted") is True
        if not run.interrupted:
            run.rows.append(item)
    for run in runs:
        check_rows(run, command, columns)
    return runs


def check_rows(run, command, columns):
    if not run.rows:
        why = "interrupted before the first was done" if run.interrupted else "nothing to draw"
        raise InputError(f"{run.source}: rows: none: {why}")
    for row in run.rows:
        if not isinstance(row, dict):
            raise InputError(f"{run.source}: rows: got {json.dumps(row)}, need objects")
        for name in columns:
            if name not in row:
                raise InputError(f"{run.source}: {name}: not there: no row of attnlab {command}")
            number(row, name, run.source)
        # Independent logits and given weights, in saturation, have no d_k.
        if row.get("d_k") is None and command != "saturation":
            raise InputError(f"{run.source}: d_k: got null, need a number")


def number(row, name, source="row"):
    """A number of a row; NaN where it is undefined. Words stay words."""
    value = row.get(name)
    if name in WORDS:
        return value
    if value is None:
        return math.nan
    try:
        if isinstance(value, bool):
            raise ValueError
        return float(value)  # reads "NaN" and "Infinity", as results write them
    except (TypeError, ValueError):
        raise InputError(f"{source}: {name}: got {json.dumps(value)}, need a number") from None


def column(rows, name):
    return [number(row, name) for row in rows]


def distinct(rows, name):
    """The values of a column in the order of their first row."""
    return list(dict.fromkeys(row.get(name) for row in rows))


# ---- names ---------------------------------------------------------------------------------------


SCALINGS = {
    "none": r"$q \cdot k$ (unscaled)",
    "inv_sqrt_d": r"$q \cdot k / \sqrt{d_k}$",
    "inv_d": r"$q \cdot k / d_k$",
    "inv_sqrt_d_sigma2": r"$q \cdot k / (\sqrt{d_k}\, \sigma^2)$",
    "log_n_over_sqrt_d": r"$\ln n \; q \cdot k / \sqrt{d_k}$",
    "critical": r"$\sqrt{2 \ln n} \; q \cdot k / \sqrt{d_k}$",
}
SCALINGS_OF_A_NUMBER = {
    "scalable_softmax": r"${} \ln n \; q \cdot k / \sqrt{{d_k}}$",
    "qk_norm": r"${} \; \hat q \cdot \hat k$ (QK norm)",
    "cosine": r"${} \cos(q, k)$",
    "softcap": r"${0} \tanh(q \cdot k / ({0} \sqrt{{d_k}}))$",
}
OPTION_SYMBOLS = {
    "sigma": r"$\sigma$",
    "nu": r"$\nu$",
    "mean_q": r"$\mu_q$",
    "mean_k": r"$\mu_k$",
    "rho_q": r"$\rho_q$",
    "rho_k": r"$\rho_k$",
    "rho_qk": r"$\rho_{qk}$",
    "d_model": r"$d_\mathrm{model}$",
}


def scaling_label(scaling):
    if scaling is None:
        return "independent normal logits"
    if scaling in SCALINGS:
        return SCALINGS[scaling]
    name, _, value = str(scaling).partition(":")
    if name in SCALINGS_OF_A_NUMBER:
        return SCALINGS_OF_A_NUMBER[name].format(value)
    return rf"${name} \; q \cdot k$" if re.fullmatch(r"[-+.\de]+", name) else name


def option_label(name, value):
    if name in ("distribution", "projection", "sampling") and value != "none":
        return str(value).replace("_", " ")
    if isinstance(value, bool):
        value = "yes" if value else "no"
    if isinstance(value, list):
        value = ",".join(map(str, value))
    return f"{OPTION_SYMBOLS.get(name, name.replace('_', ' '))} = {value}"


def run_labels(runs):
    """What tells each run from the others: the options that differ, or its number."""
    names = list(dict.fromkeys(name for run in runs for name in run.options))
    differing = [
        name for name in names if len({json.dumps(run.options.get(name)) for run in runs}) > 1
    ]
    # These stand on an axis or have a colour of their own.
    drawn = ("d_k", "components", "n", "kernel", "operation")
    shown = [name for name in differing if name not in drawn]
    labels = [
        ", ".join(option_label(n, run.options[n]) for n in shown if run.options.get(n) is not None)
        for run in runs
    ]
    if len(set(labels)) == len(runs):
        return labels
    return [f"run {i}" for i in range(1, len(runs) + 1)]


def grouped(runs):
    """Pairs of a name and rows: all in one unnamed group unless two runs share a point."""
    rows = [row for run in runs for row in run.rows]
    points = {tuple(row.get(name) for name in IDENTITY) for row in rows}
    if len(runs) == 1 or len(points) == len(rows):
        return [(None, rows)]
    return [(label, run.rows) for label, run in zip(run_labels(runs), runs, strict=True)]


def interval_label(runs):
    """What an error bar is: its confidence is known where the options are."""
    levels = {run.options.get("confidence") for run in runs}
    level = levels.pop() if len(levels) == 1 else None
    return f"{100 * level:.10g}% interval" if isinstance(level, (int, float)) else "interval"
