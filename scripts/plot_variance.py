#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["matplotlib"]
# ///
"""Draw Var(q.k) against d_k: what was measured, with its intervals, over the theory.

    attnlab variance --format json | scripts/plot_variance.py -o variance.png
    attnlab run configs/variance_distributions.json --format json | scripts/plot_variance.py

Several results stand side by side, named by the options in which they differ. Under each stand the
same points divided by their theory, where the intervals can be seen. Results with --components also
show the sum of the variances of q_i k_i and the covariance term, which add up to the variance.
Exit code: 0 done, 2 bad input.
"""

import math

import plotting
import results

COLUMNS = ["d_k", "scaling", "variance", "ci_low", "ci_high", "theory_variance"]
MOST_IN_A_ROW = 4

# Of the components: column, name, marker, line.
COMPONENTS = [
    ("component_variance_sum", r"$\sum_i \mathrm{Var}(q_i k_i)$", "v", "--"),
    ("covariance_term", "covariance term", "P", ":"),
]


def has_components(rows):
    return any(row.get("covariance_term") is not None for row in rows)


def component_theory(row, name):
    covariance = results.number(row, "theory_covariance_term")
    if name == "covariance_term":
        return covariance
    return results.number(row, "theory_variance") - covariance


def by_scaling(rows):
    """Index, name and rows of each scaling, by d_k."""
    for i, scaling in enumerate(results.distinct(rows, "scaling")):
        chosen = [row for row in rows if row["scaling"] == scaling]
        yield i, scaling, sorted(chosen, key=lambda row: row["d_k"])


def divided(values, wholes):
    return [v / w if w else math.nan for v, w in zip(values, wholes, strict=True)]


def apart(d_k, i, count):
    """d_k moved a little, so that the intervals of one d_k do not cover each other."""
    return [d * 1.3 ** ((i - (count - 1) / 2) / max(1, count - 1)) for d in d_k]


def draw_variance(axes, run):
    """Legend entries of what it draws."""
    entries = {}
    for i, scaling, rows in by_scaling(run.rows):
        ends = [results.column(rows, name) for name in ("ci_low", "ci_high")]
        entries[results.scaling_label(scaling)] = plotting.over_theory(
            axes, results.column(rows, "d_k"), results.column(rows, "variance"),
            results.column(rows, "theory_variance"), ends, linestyle=plotting.line_style(i),
            color=plotting.colour(i), marker=plotting.marker(i),
        )  # fmt: skip
    if has_components(run.rows):
        entries |= draw_components(axes, next(by_scaling(run.rows))[2])
    plotting.log_axis(axes.yaxis)
    return entries


def draw_components(axes, rows, as_shares=False):
    """The two parts of the variance, or their shares of it."""
    entries = {}
    for i, (name, label, marker, line) in enumerate(COMPONENTS, 3):
        exact = [component_theory(row, name) for row in rows]
        found = results.column(rows, name)
        if as_shares:
            exact = divided(exact, results.column(rows, "theory_variance"))
            found = divided(found, results.column(rows, "variance"))
        else:
            # What is 0 in theory is rounding and noise, which no logarithm shows.
            found = [f if e > 0 else math.nan for e, f in zip(exact, found, strict=True)]
        entries[label] = plotting.over_theory(
            axes, results.column(rows, "d_k"), found, exact, linestyle=line,
            color=plotting.colour(i), marker=marker,
        )  # fmt: skip
    return entries


def draw_ratio(axes, run):
    axes.axhline(1, color="0.4", linewidth=1, zorder=1)
    series = list(by_scaling(run.rows))
    for i, _, rows in series:
        whole = results.column(rows, "theory_variance")
        ratio, *ends = (
            divided(results.column(rows, name), whole) for name in ("variance", "ci_low", "ci_high")
        )
        d_k = apart(results.column(rows, "d_k"), i, len(series))
        plotting.measured(
            axes, d_k, ratio, ends, color=plotting.colour(i), marker=plotting.marker(i)
        )


def remark_on(run):
    """The slope, or why there are no intervals, for the corner that the points leave free."""
    if all(row["ci_low"] is None for row in run.rows):
        return "no valid interval:\nthe fourth moment is infinite"
    fit = run.result.get("fit")
    if not isinstance(fit, dict) or results.number(fit, "slope") != results.number(fit, "slope"):
        return None
    low, high = results.number(fit, "ci_low"), results.number(fit, "ci_high")
    between = f"\n({low:.3f} to {high:.3f})" if low == low else ""
    return f"slope {results.number(fit, 'slope'):.3f}{between}"


def draw(runs, title):
    columns = min(len(runs), MOST_IN_A_ROW)
    bands = math.ceil(len(runs) / columns)
    parts = has_components([row for run in runs for row in run.rows])
    heights = [3.2, 1.7] + ([1.7] if parts else [])
    figure, grid = plotting.subplots(
        [h for _ in range(bands) for h in heights], [5.0 if columns == 1 else 2.9] * columns,
        sharex=True,
    )  # fmt: skip
    every_d_k = [d for run in runs for d in results.column(run.rows, "d_k")]
    labels = results.run_labels(runs) if len(runs) > 1 else [None]
    names = [r"variance of $q \cdot k$", "measured / theory", "share of variance"]
    for place, (run, label) in enumerate(zip(runs, labels, strict=True)):
        band, column = divmod(place, columns)
        panels = [row[column] for row in grid[band * len(heights) : (band + 1) * len(heights)]]
        entries = draw_variance(panels[0], run)
        draw_ratio(panels[1], run)
        if parts and has_components(run.rows):
            draw_components(panels[2], next(by_scaling(run.rows))[2], as_shares=True)
        if label:
            panels[0].set_title(label)
        remark = remark_on(run)
        if remark:
            panels[0].text(0.04, 0.97, remark, transform=panels[0].transAxes, va="top", fontsize=9)
        plotting.value_axis(panels[-1], every_d_k, narrow=columns > 1)
        panels[-1].tick_params(axis="x", labelbottom=True)
        panels[-1].set_xlabel(r"dimension $d_k$")
        if column == 0:
            for panel, name in zip(panels, names, strict=False):
                panel.set_ylabel(name)
        if place == columns - 1:
            plotting.legend_beside(panels[0], entries, plotting.how_drawn(runs))
    plotting.share_y(grid, len(heights), columns, len(runs))
    figure.suptitle(title)
    return figure


def main():
    arguments = plotting.argument_parser(__doc__).parse_args()
    plotting.prepare_output(arguments.output)
    runs = results.read_runs(arguments.files, "variance", COLUMNS)
    title = plotting.title_of(arguments, r"Variance of the score $q \cdot k$", runs)
    plotting.finish(draw(runs, title), arguments.output)


if __name__ == "__main__":
    plotting.run_script(main)
