"""What the plot scripts share: arguments, style, axes, and writing the picture."""

import argparse
import math
import os
import sys
import tempfile
from pathlib import Path

from results import InputError, interval_label

try:
    import matplotlib
    from matplotlib import pyplot
    from matplotlib.ticker import (
        FuncFormatter,
        LogLocator,
        NullLocator,
    )
except ImportError as error:
    print(
        f"needs the {error.name} package: apt install python3-matplotlib "
        "(or pip install matplotlib)",
        file=sys.stderr,
    )
    sys.exit(2)

FORMATS = ("png", "svg", "pdf")
NO_SCREEN = {"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"}

# Okabe and Ito's colours, which the colour-blind tell apart, and a marker for each: no series is
# known by its colour alone.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
# The theory that goes through the points has to be seen beside them.
LINES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1))]


# ---- drawing -------------------------------------------------------------------------------------


def set_style():
    """The same picture whatever the user's own matplotlibrc says."""
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(
        {
            "axes.grid": True,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlesize": 10,
            "errorbar.capsize": 3,
            "figure.dpi": 100,
            "figure.titlesize": 12,
            "font.size": 10,
            "grid.color": "0.9",
            "legend.fontsize": 9,
            "legend.frameon": False,
            "lines.linewidth": 1.3,
            "lines.markersize": 5.5,
            "pdf.fonttype": 42,
            "savefig.dpi": 150,
            "svg.hashsalt": "attnlab",
        }
    )


def colour(i):
    return COLOURS[i % len(COLOURS)]


def marker(i):
    return MARKERS[i % len(MARKERS)]


def line_style(i):
    return LINES[i % len(LINES)]


def measured(axes, x, y, interval=None, **style):
    """Points, with error bars from the low to the high end where there is an interval."""
    errors = None
    if interval:
        low, high = interval
        errors = [
            [max(0.0, v - a) for v, a in zip(y, low, strict=True)],
            [max(0.0, b - v) for v, b in zip(y, high, strict=True)],
        ]
    return axes.errorbar(x, y, yerr=errors, **{"linestyle": "none", "zorder": 3} | style)


def over_theory(axes, x, y, exact, interval=None, *, linestyle, **style):
    """The points over the line of their theory; both as one handle for the legend."""
    line = axes.plot(x, exact, linestyle=linestyle, color=style["color"], linewidth=1.2, zorder=2)
    return (line[0], measured(axes, x, y, interval, **style))


def how_drawn(runs):
    """The legend's title."""
    return f"line: theory\npoints: measured, {interval_label(runs)}"


def log_axis(axis):
    """A logarithmic axis labelled 1, 10, 1000 rather than in powers while these are short."""
    if not math.isfinite(getattr(axis.axes.dataLim, f"minpos{axis.axis_name}")):
        return  # nothing positive to show, as the Jacobian of a single key
    set_scale = axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale
    set_scale("log", nonpositive="mask")
    axis.set_major_locator(LogLocator(numticks=9))
    axis.set_major_formatter(FuncFormatter(plain_or_power))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: between_powers(axis, value)))


def between_powers(axis, value):
    """2 and 5 are named too where powers of ten alone would leave too few names."""
    low, high = axis.get_view_interval()
    first = f"{value:.0e}"[0]
    return plain_or_power(value) if high < 100 * low and first in "25" and value >= 1e-3 else ""


def plain_or_power(value, _=None):
    if 1e-3 <= value < 1e5:
        return f"{value:.10g}"
    exponent = round(math.log10(value)) if value > 0 else 0
    return f"$10^{{{exponent}}}$"


def value_axis(axes, values, narrow=False):
    """d_k or n on a logarithmic axis, its ticks at the values that were measured."""
    axes.set_xscale("log")
    values = sorted(v for v in set(values) if v > 0)
    # No more than can be read: the largest first, and those at least a factor of 1.9 apart.
    shown = []
    for value in reversed(values):
        if not shown or shown[-1] / value >= max(1.9, (values[-1] / values[0]) ** (1 / 11)):
            shown.append(value)
    axes.set_xticks(shown)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.10g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(values[0] / 1.35, values[-1] * 1.35)
    axes.tick_params(axis="x", labelrotation=45 if narrow and len(shown) > 6 else 0)


def subplots(heights, widths, beside=2.9, **options):
    """A figure and its panels in rows, with room for what stands beside them; sizes in inches."""
    figure, panels = pyplot.subplots(
        len(heights),
        len(widths),
        figsize=(sum(widths) + beside, sum(heights) + 0.4),
        gridspec_kw={"height_ratios": heights, "width_ratios": widths},
        squeeze=False,
        layout="constrained",
        **options,
    )
    return figure, panels


def share_y(grid, kinds, columns, used):
    """Panels of one kind get the same y axis, in every band of rows; unused ones go."""
    for kind in range(kinds):
        same = [panel for row in grid[kind::kinds] for panel in row]
        for panel in same[used:]:
            panel.remove()
        low = min(panel.get_ylim()[0] for panel in same[:used])
        high = max(panel.get_ylim()[1] for panel in same[:used])
        for place, panel in enumerate(same[:used]):
            panel.set_ylim(low, high)
            panel.tick_params(labelleft=place % columns == 0)


def legend_beside(axes, entries, title=None):
    """A legend to the right of the panel, where it hides no data. entries: label -> handle."""
    legend = axes.legend(
        list(entries.values()), list(entries), title=title, title_fontsize=9, alignment="left",
        loc="upper left", bbox_to_anchor=(1.02, 1), borderaxespad=0.0, handlelength=3,
    )  # fmt: skip
    legend.get_title().set_color("0.3")


# ---- arguments and output ------------------------------------------------------------------------


def argument_parser(description):
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="results, - for standard input (the default)"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="picture to write, .png, .svg or .pdf; else shown"
    )
    parser.add_argument("--title", help="title in place of the script's own; '' for none")
    return parser


def title_of(arguments, default, runs):
    """The title, which says when a run was not finished or is a part of one."""
    remarks = ["interrupted"] if any(run.interrupted for run in runs) else []
    parts = dict.fromkeys(run.result["shard"] for run in runs if run.result.get("shard"))
    remarks += [f"part {part} only" for part in parts]
    title = default if arguments.title is None else arguments.title
    return f"{title} ({', '.join(remarks)})".strip() if remarks else title


def prepare_output(output):
    """Finds out before the work whether there is a way for the picture to go."""
    if output is None:
        try:
            pyplot.figure()  # matplotlib looks for a screen now
            pyplot.close("all")
        except Exception:  # each toolkit has errors of its own
            pyplot.switch_backend("agg")
        if matplotlib.get_backend().lower() in NO_SCREEN:
            raise InputError("no screen to show the picture on: name a file with -o")
        return
    pyplot.switch_backend("agg")
    path = Path(output)
    if path.suffix[1:].lower() not in FORMATS:
        raise InputError(f"{output}: got {path.suffix or 'no extension'}, need .png, .svg or .pdf")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"{output}: cannot be written there")


# Nothing of the day, the machine or the version: the same input gives the same bytes.
METADATA = {
    "png": {"Software": "attnlab"},
    "svg": {"Creator": "attnlab", "Date": None},
    "pdf": {"Creator": "attnlab", "Producer": "attnlab", "CreationDate": None},
}


def finish(figure, output):
    """Shows the picture, or writes it, whole or not at all."""
    if output is None:
        pyplot.show()
        return
    path = Path(output)
    kind = path.suffix[1:].lower()
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            figure.savefig(file, format=kind, metadata=METADATA[kind])
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
        pyplot.close(figure)
    except BaseException:
        os.unlink(temporary)
        raise


def run_script(main):
    """Ends the program: 0 done, 2 bad input in one line on standard error, 130 interrupted."""
    try:
        set_style()
        sys.exit(main())
    except InputError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
