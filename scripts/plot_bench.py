#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["matplotlib"]
# ///
"""Draw how fast attention is and what it costs in memory, against the length n.

    attnlab bench --format json | scripts/plot_bench.py -o bench.png
    scripts/plot_bench.py rows.jsonl --metric median_ms

Left the share of the processor's peak (or the time of a call, its median with quartiles, GFLOP/s,
how many times as fast as one thread, or normals a second), right the memory that one call takes, beside the size of the [heads, n, n] matrix of
weights. A colour a kernel, and whatever else tells rows apart. Exit code: 0 done, 2 bad input.
"""

import math

import plotting
import results
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

METRICS = {
    "peak_share": "share of the FMA peak",
    "median_ms": "time of a call (ms)",
    "gflops": "GFLOP/s",
    "speedup": "times as fast as one thread",
    "values_per_second": "values a second",
}
COLUMNS = ["n", "d_k", "heads", "threads", "operation", "kernel", "peak_memory_mib"]
# What may tell one line from another besides the kernel, and its name in the legend.
PARTS = {
    "operation": lambda value: value,
    "d_k": lambda value: f"$d_k$ = {value}",
    "heads": lambda value: count(value, "head"),
    "threads": lambda value: count(value, "thread"),
    "causal": lambda value: "causal" if value else "full mask",
    "weights": lambda value: "with weights" if value else "output alone",
    "buffers": lambda value: f"{value} buffers",
}


def count(value, unit):
    return f"{value} {unit}{'' if value == 1 else 's'}"


def series_of(groups):
    """Name and rows of what gets a colour of its own: a kernel, with what else differs."""
    every_row = [row for _, rows in groups for row in rows]
    differing = [name for name in PARTS if len(results.distinct(every_row, name)) > 1]
    # The plain kernel keeps the weights and the tiled one does not: that is no series of its own.
    pairs = {(row["kernel"], row.get("weights")) for row in every_row}
    if "weights" in differing and len(pairs) == len(results.distinct(every_row, "kernel")):
        differing.remove("weights")
    series = {}
    for label, rows in groups:
        for row in rows:
            # Normals have no kernel, and their operation is no second part of their name.
            parts = [row["kernel"] or row["operation"]]
            parts += [PARTS[name](row.get(name)) for name in differing]
            name = ", ".join(dict.fromkeys([*parts, *([label] if label else [])]))
            series.setdefault(name, []).append(row)
    return {name: sorted(rows, key=lambda row: row["n"]) for name, rows in series.items()}


def draw_speed(axes, rows, metric, style):
    n, values = results.column(rows, "n"), results.column(rows, metric)
    interval = None
    if metric == "median_ms":
        interval = (results.column(rows, "p25_ms"), results.column(rows, "p75_ms"))
    return plotting.measured(axes, n, values, interval, **style | {"linestyle": "-"})


def draw_weights(axes, rows):
    """How large the matrix is that tiles do without."""
    heads = results.distinct(rows, "heads")
    if len(heads) > 1:
        return {}
    n = sorted(results.distinct(rows, "n"))
    size = [heads[0] * length * length * 4 / 2**20 for length in n]
    line = axes.plot(n, size, color="0.4", linestyle="--", linewidth=1, zorder=1)[0]
    return {f"weights [{heads[0]}, $n$, $n$], float32": line}


def common_label(rows):
    """What all rows have in common."""
    labels = []
    for name in ("operation", "heads", "d_k", "threads", "causal"):
        values = results.distinct(rows, name)
        if len(values) == 1 and (name != "causal" or values[0]):
            labels.append(PARTS[name](values[0]))
    return ", ".join(labels)


def draw(runs, metric, title):
    groups = results.grouped(runs)
    rows = [row for _, chosen in groups for row in chosen]
    if all(map(math.isnan, results.column(rows, metric))):
        raise results.InputError(f"{metric}: null in every row: need another --metric")
    figure, grid = plotting.subplots([3.6], [4.2, 4.2], sharex=True)
    speed, memory = grid[0]
    entries = {}
    for i, (name, chosen) in enumerate(series_of(groups).items()):
        style = {"color": plotting.colour(i), "marker": plotting.marker(i)}
        draw_speed(speed, chosen, metric, style)
        n, peak = results.column(chosen, "n"), results.column(chosen, "peak_memory_mib")
        memory.plot(n, peak, zorder=3, **style)
        entries[name] = Line2D([], [], **style)
    entries |= draw_weights(memory, rows)
    if metric == "peak_share":
        speed.set_ylim(0, max(1, speed.get_ylim()[1]))
        speed.yaxis.set_major_formatter(PercentFormatter(1))
    elif metric == "median_ms":
        plotting.log_axis(speed.yaxis)
    else:
        speed.set_ylim(bottom=0)
    plotting.log_axis(memory.yaxis)
    speed.set_title("speed")
    memory.set_title("memory of one call")
    speed.set_ylabel(METRICS[metric])
    memory.set_ylabel("peak memory (MiB)")
    for panel in (speed, memory):
        panel.set_xlabel("queries and keys $n$")
    plotting.value_axis(speed, results.column(rows, "n"))
    bars = "\nbars: quartiles" if metric == "median_ms" else ""
    plotting.legend_beside(memory, entries, common_label(rows) + bars)
    figure.suptitle(title)
    return figure


def main():
    parser = plotting.argument_parser(__doc__)
    parser.add_argument(
        "--metric", choices=METRICS, default="peak_share", help="drawn left (default peak_share)"
    )
    arguments = parser.parse_args()
    plotting.prepare_output(arguments.output)
    columns = [*COLUMNS, arguments.metric, "p25_ms", "p75_ms"]
    runs = results.read_runs(arguments.files, "bench", columns)
    title = plotting.title_of(arguments, "Speed and memory of attention", runs)
    plotting.finish(draw(runs, arguments.metric, title), arguments.output)


if __name__ == "__main__":
    plotting.run_script(main)
