#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["matplotlib"]
# ///
"""Draw how saturated the softmax is: measured rows, with their intervals, over the theory.

    attnlab saturation --keys 8,64,512 --format json | scripts/plot_saturation.py -o saturation.png
    scripts/plot_saturation.py saturation.json --metric entropy --x v
    attnlab saturation --weights W.npy --format json | scripts/plot_saturation.py --metric entropy

A column a scaling, a colour a number of keys. Above a metric of the weights, below the norm of the
softmax's Jacobian: its root mean square (points over the line of theory) beside its median, since a
few rows can carry the mean. Dashed upright lines: the logit variance v = 2 ln n above which the
softmax of n keys freezes. Exit code: 0 done, 2 bad input.
"""

import math

import plotting
import results
from matplotlib.lines import Line2D

# Metric: name on the axis, logarithmic or not.
METRICS = {
    "max_p": (r"$\mathrm{E}\,\max p$", True),
    "sum_p2": (r"$\mathrm{E}\,\sum p^2$", True),
    "entropy": (r"entropy $\mathrm{E}\,H$ (nats)", False),
    "jacobian_f2": (r"$\mathrm{E}\,\Vert J \Vert_F^2$", True),
    "trace": (r"$\mathrm{E}\,\mathrm{tr}\,J = 1 - \mathrm{E}\,\sum p^2$", False),
    "effective_keys": (r"effective keys $\mathrm{E}\,(1 / \sum p^2)$", True),
}
COLUMNS = [
    "d_k", "keys", "scaling", "logit_variance", "critical_variance",
    "jacobian_f_rms", "jacobian_f_median", "jacobian_f2_ci_low", "jacobian_f2_ci_high",
    "jacobian_f2_theory",
]  # fmt: skip
AXES = {"d_k": ("d_k", r"dimension $d_k$"), "v": ("logit_variance", r"logit variance $v$")}
CRITICAL = r"critical $v = 2 \ln n$ of each $n$"
GREY = "0.4"  # of the legend's, for what each colour has


def roots(values):
    return [math.sqrt(v) if v >= 0 else math.nan for v in values]


def with_theory(rows, metric):
    """Whether a metric has an interval and a theory: effective keys have not."""
    return all(f"{metric}_{part}" in rows[0] for part in ("ci_low", "ci_high", "theory"))


def are_heads(rows):
    """Of given weights: points without an order."""
    return any(row.get("keys_seen") is not None for row in rows)


def draw_metric(axes, x, rows, metric, style):
    values = results.column(rows, metric)
    if not with_theory(rows, metric):
        return axes.plot(x, values, linewidth=0.7, **style)[0]
    exact, low, high = (
        results.column(rows, f"{metric}_{part}") for part in ("theory", "ci_low", "ci_high")
    )
    return plotting.over_theory(axes, x, values, exact, (low, high), linestyle="-", **style)


def draw_jacobian(axes, x, rows, style):
    exact, low, high = (
        roots(results.column(rows, f"jacobian_f2_{part}"))
        for part in ("theory", "ci_low", "ci_high")
    )
    rms = results.column(rows, "jacobian_f_rms")
    plotting.over_theory(axes, x, rms, exact, (low, high), linestyle="-", **style)
    median = results.column(rows, "jacobian_f_median")
    joined = "none" if are_heads(rows) else ":"
    axes.plot(x, median, linestyle=joined, markerfacecolor="white", **style)


def where_critical(rows, x_name):
    """Where on the axis v = 2 ln n lies, if between the rows: v is a power of d_k."""
    target = rows[0]["critical_variance"]
    if target is None or target <= 0:
        return None
    points = [(results.number(row, "logit_variance"), results.number(row, x_name)) for row in rows]
    for (v, x), (w, y) in zip(points, points[1:], strict=False):
        if 0 < v < w and v <= target <= w and x > 0:
            share = math.log(target / v) / math.log(w / v)
            return x * (y / x) ** share
    return None


def draw_column(panels, series, metric, x_name):
    """One scaling; legend entries of its series."""
    entries = {}
    for i, (name, rows) in enumerate(series):
        if not rows:
            continue
        rows = sorted(rows, key=lambda row: [results.number(row, n) for n in (x_name, "d_k")])
        x = results.column(rows, x_name)
        style = {"color": plotting.colour(i), "marker": plotting.marker(i)}
        entries[name] = draw_metric(panels[0], x, rows, metric, style)
        draw_jacobian(panels[1], x, rows, style)
        critical = where_critical(rows, x_name)
        if critical:
            upright = {"linestyle": "--", "linewidth": 1, "zorder": 1}
            for panel in panels:
                panel.axvline(critical, color=style["color"], **upright)
            entries[CRITICAL] = Line2D([], [], color=GREY, **upright)
    return entries


def series_of(groups):
    """Name and rows of what gets a colour of its own: a number of keys of a group of runs."""
    for label, rows in groups:
        for keys in sorted(results.distinct(rows, "keys")):
            name = f"$n$ = {keys} keys" + (f", {label}" if label else "")
            yield name, [row for row in rows if row["keys"] == keys]


def draw(runs, metric, x_name, title):
    series = list(series_of(results.grouped(runs)))
    rows = [row for _, chosen in series for row in chosen]
    scalings = results.distinct(rows, "scaling")
    given = are_heads(rows)
    drawn = "line: random scores of\nthe same variance" if given else plotting.how_drawn(runs)
    width = 4.2 if len(scalings) < 3 else 3.0
    figure, grid = plotting.subplots([3.0, 3.0], [width] * len(scalings), sharex=True, sharey="row")
    entries = {}
    for panels, scaling in zip(zip(*grid, strict=True), scalings, strict=True):
        of_scaling = [(n, [r for r in chosen if r["scaling"] == scaling]) for n, chosen in series]
        entries |= draw_column(panels, of_scaling, metric, x_name)
        panels[0].set_title("heads of given weights" if given else results.scaling_label(scaling))
        panels[1].set_xlabel(next(label for name, label in AXES.values() if name == x_name))
    for row, logarithmic in zip(grid, [METRICS[metric][1], True], strict=True):
        if logarithmic:
            plotting.log_axis(row[0].yaxis)
    if x_name == "d_k":
        plotting.value_axis(grid[1][0], results.column(rows, x_name), narrow=width < 4)
    else:
        plotting.log_axis(grid[1][0].xaxis)
    grid[0][0].set_ylabel(METRICS[metric][0])
    grid[1][0].set_ylabel(r"$\Vert J \Vert_F$")
    if CRITICAL in entries:
        entries[CRITICAL] = entries.pop(CRITICAL)  # after the last number of keys
    how = drawn if with_theory(rows, metric) else "measured means"
    plotting.legend_beside(grid[0][-1], entries, how)
    below = {
        "root mean square": Line2D([], [], marker="o", color=GREY),
        "median": Line2D(
            [], [], marker="o", markerfacecolor="white", linestyle="none" if given else ":",
            color=GREY,
        ),
    }  # fmt: skip
    how = drawn if given else f"{drawn}\n(median: joined points)"
    plotting.legend_beside(grid[1][-1], below, how)
    figure.suptitle(title)
    return figure


def main():
    parser = plotting.argument_parser(__doc__)
    parser.add_argument(
        "--metric", choices=METRICS, default="sum_p2", help="drawn above (default sum_p2)"
    )
    parser.add_argument(
        "--x", choices=AXES, help="drawn against; default: d_k, or v where logits have no d_k"
    )
    arguments = parser.parse_args()
    plotting.prepare_output(arguments.output)
    runs = results.read_runs(arguments.files, "saturation", [*COLUMNS, arguments.metric])
    has_d_k = all(row["d_k"] is not None for run in runs for row in run.rows)
    if arguments.x == "d_k" and not has_d_k:
        raise results.InputError("--x: got d_k, need v: these rows have no d_k")
    x_name = AXES[arguments.x or ("d_k" if has_d_k else "v")][0]
    title = plotting.title_of(arguments, "Saturation of the softmax", runs)
    plotting.finish(draw(runs, arguments.metric, x_name, title), arguments.output)


if __name__ == "__main__":
    plotting.run_script(main)
