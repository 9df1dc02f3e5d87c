#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["matplotlib"]
# ///
"""Draw the gradients that reach q (or k, or v) against d_k, with and without scaling.

    attnlab gradients --format json | scripts/plot_gradients.py -o gradients.png
    scripts/plot_gradients.py gradients.json --of k

Left the size of an element of the gradient: its root mean square, with intervals, over the line of
theory, and the median over the rows, which tells what most rows get while a few carry the mean.
Right the share of dead rows, whose gradient is below 1% of the root mean square. A row of panels a
number of keys. Exit code: 0 done, 2 bad input.
"""

import plotting
import results
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

# Whose gradient: the column of its dead share.
DEAD_SHARE = {"q": "dead_share", "k": "dead_share_k", "v": "dead_share_v"}


def columns_of(name):
    rms = f"rms_grad_{name}"
    return [rms, f"{rms}_ci_low", f"{rms}_ci_high", f"{rms}_theory", f"median_grad_{name}"]


def series_of(groups, keys):
    """Name and rows of what gets a colour of its own: a scaling of a group of runs."""
    for label, rows in groups:
        chosen = [row for row in rows if row["keys"] == keys]
        for scaling in results.distinct(chosen, "scaling"):
            name = results.scaling_label(scaling) + (f", {label}" if label else "")
            of_scaling = [row for row in chosen if row["scaling"] == scaling]
            yield name, sorted(of_scaling, key=lambda row: row["d_k"])


def draw_row(panels, series, of):
    """Both panels of a number of keys; legend entries of the series."""
    entries = {}
    size, dead = panels
    for i, (name, rows) in enumerate(series):
        d_k = results.column(rows, "d_k")
        rms, low, high, exact, median = (results.column(rows, c) for c in columns_of(of))
        style = {"color": plotting.colour(i), "marker": plotting.marker(i)}
        entries[name] = plotting.over_theory(
            size, d_k, rms, exact, (low, high), linestyle="-", **style
        )
        size.plot(d_k, median, linestyle=":", markerfacecolor="white", **style)
        dead.plot(d_k, results.column(rows, DEAD_SHARE[of]), linestyle=":", **style)
    plotting.log_axis(size.yaxis)
    dead.set_ylim(-0.03, 1.03)
    dead.yaxis.set_major_formatter(PercentFormatter(1))
    return entries


def draw(runs, of, title):
    groups = results.grouped(runs)
    rows = [row for _, chosen in groups for row in chosen]
    every_key = sorted(results.distinct(rows, "keys"))
    figure, grid = plotting.subplots([3.6] * len(every_key), [4.2, 4.2], sharex=True)
    entries = {}
    for panels, keys in zip(grid, every_key, strict=True):
        entries |= draw_row(panels, series_of(groups, keys), of)
        panels[0].set_title(f"size of the gradient, $n$ = {keys} keys")
        panels[1].set_title(f"dead rows, $n$ = {keys} keys")
        panels[0].set_ylabel(rf"element of $\partial L / \partial {of}$")
        panels[1].set_ylabel("share of rows below 1% of the RMS")
    for panel in grid[-1]:
        panel.set_xlabel(r"dimension $d_k$")
    plotting.value_axis(grid[-1][0], results.column(rows, "d_k"))
    grey = {"color": "0.4", "linewidth": 1.2, "marker": "o"}
    rms = f"root mean square, {results.interval_label(runs)},\nover the line of its theory"
    entries[rms] = Line2D([], [], **grey)
    entries["median of the rows, joined points"] = Line2D(
        [], [], linestyle=":", markerfacecolor="white", **grey
    )
    plotting.legend_beside(grid[0][-1], entries)
    figure.suptitle(title)
    return figure


def main():
    parser = plotting.argument_parser(__doc__)
    parser.add_argument("--of", choices=DEAD_SHARE, default="q", help="whose gradient (default q)")
    arguments = parser.parse_args()
    plotting.prepare_output(arguments.output)
    columns = ["d_k", "keys", "scaling", DEAD_SHARE[arguments.of], *columns_of(arguments.of)]
    runs = results.read_runs(arguments.files, "gradients", columns)
    title = plotting.title_of(arguments, f"Gradient that reaches ${arguments.of}$", runs)
    plotting.finish(draw(runs, arguments.of, title), arguments.output)


if __name__ == "__main__":
    plotting.run_script(main)
