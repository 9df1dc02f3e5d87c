#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["matplotlib"]
# ///
"""Draw attention weights as heat maps: a panel a head, a row of panels a batch entry or result.

    attnlab run configs/sentence.json --format json | scripts/plot_weights.py -o sentence.png
    attnlab multihead --heads 4 --format json | scripts/plot_weights.py
    attnlab roles --format json | scripts/plot_weights.py

Takes the results of attend (with --show weights), multihead, roles and weights. Queries are on the
left, keys below; --tokens of the run names them where there are as many words as positions. Numbers
stand in the cells while they can be read. Exit code: 0 done, 2 bad input.
"""

import math

import plotting
import results
from matplotlib.ticker import MaxNLocator

COMMANDS = ["attend", "multihead", "roles", "weights"]
COLOUR_MAP = "cividis"  # goes evenly from dark to light for every eye
MOST_NUMBERS = 12  # queries or keys of a panel with numbers in its cells
MOST_NAMES = 40  # positions that are each named
MOST_IN_A_ROW = 6
MOST_PANELS = 96


def matrices_in(result):
    """Pairs of a name and its value: weights, or those of each role."""
    names = ["weights", "encoder_weights", "decoder_weights", "cross_weights"]
    return [(name, result[name]) for name in names if isinstance(result.get(name), list)]


def as_panels(source, name, value):
    """Lists of matrices, one a batch entry, each a matrix a head, from a rank of 2 to 4."""
    rank, inner = 0, value
    while isinstance(inner, list) and inner:
        rank, inner = rank + 1, inner[0]
    if isinstance(inner, list) or rank not in (2, 3, 4):
        raise results.InputError(f"{source}: {name}: got rank {rank}, need a matrix, rank 2 to 4")
    for _ in range(4 - rank):
        value = [value]
    try:
        entries = [[[list(map(number, row)) for row in matrix] for matrix in e] for e in value]
    except (TypeError, ValueError):
        raise results.InputError(f"{source}: {name}: not a matrix of numbers") from None
    if any(len({len(row) for row in matrix}) != 1 for entry in entries for matrix in entry):
        raise results.InputError(f"{source}: {name}: rows of different lengths, or none")
    return entries


def number(value):
    return math.nan if value is None else float(value)  # reads "NaN", as results write it


def in_rows(heads):
    """Pairs of the first head's number and heads: evenly filled rows, not too wide."""
    rows = math.ceil(len(heads) / MOST_IN_A_ROW)
    size = math.ceil(len(heads) / rows)
    return [(first, heads[first : first + size]) for first in range(0, len(heads), size)]


def read_weights(paths):
    """Rows of panels: name, matrix of each, and tokens."""
    bands = []
    found = results.read_results(paths)
    for place, item in found:
        results.check_command(place, item, COMMANDS)
        result = item["result"] if results.is_result(item) else {}
        matrices = matrices_in(result)
        if not matrices:
            raise results.InputError(f"{place}: weights: not there: run it with --show weights")
        tokens = str((item.get("options") or {}).get("tokens") or "").split()
        for name, value in matrices:
            entries = as_panels(place, name, value)
            for batch, heads in enumerate(entries):
                parts = [item["command"]] if len(found) > 1 else []
                parts += [name.removesuffix("_weights")] if name != "weights" else []
                parts += [f"batch {batch}"] if len(entries) > 1 else []
                several = len(heads) > 1
                for first, row in in_rows(heads):
                    names = [
                        ", ".join(parts + [f"head {first + i}"] * several) for i in range(len(row))
                    ]
                    bands.append((names, row, tokens))
    count = sum(len(heads) for _, heads, _ in bands)
    if count > MOST_PANELS:
        raise results.InputError(f"weights: got {count} matrices, can draw {MOST_PANELS} at most")
    return bands


def name_positions(axis, count, tokens):
    if len(tokens) == count <= MOST_NAMES:
        axis.set_ticks(range(count), tokens)
    elif count <= MOST_NUMBERS:
        axis.set_ticks(range(count))
    else:
        axis.set_major_locator(MaxNLocator(8, integer=True))


def short(value):
    """.25 for 0.25; an exact 0, as under a mask, is not .00."""
    if math.isnan(value) or value == 0:
        return "0" if value == 0 else "NaN"
    return f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.2f}"


def draw_numbers(axes, matrix, image):
    size = 9 if len(matrix[0]) <= 8 else 7
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            red, green, blue, _ = image.cmap(image.norm(value))
            bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
            axes.text(
                j, i, short(value), ha="center", va="center", fontsize=size,
                color="black" if bright or math.isnan(value) else "white",
            )  # fmt: skip


def draw_panel(axes, matrix, tokens, low, high, with_numbers):
    # Undefined weights show the grey behind.
    axes.set_facecolor("0.8")
    image = axes.imshow(
        matrix, cmap=COLOUR_MAP, vmin=low, vmax=high, aspect="auto", interpolation="nearest"
    )
    axes.grid(False)
    name_positions(axes.xaxis, len(matrix[0]), tokens)
    name_positions(axes.yaxis, len(matrix), tokens)
    if tokens and len(tokens) == len(matrix[0]):
        axes.tick_params(axis="x", labelrotation=45 if len(tokens) <= MOST_NUMBERS else 90)
    if with_numbers:
        draw_numbers(axes, matrix, image)
    return image


def draw(bands, title):
    panels = [matrix for _, heads, _ in bands for matrix in heads]
    values = [v for matrix in panels for row in matrix for v in row if math.isfinite(v)]
    low, high = min([0.0, *values]), max([*values, 0.0])
    high = high if high > low else low + 1
    most = max(max(len(matrix), len(matrix[0])) for matrix in panels)
    with_numbers = most <= MOST_NUMBERS
    columns = max(len(heads) for _, heads, _ in bands)
    side = max(2.4, min(6.0, 0.48 * most)) if with_numbers else 3.4
    figure, grid = plotting.subplots([side] * len(bands), [side] * columns, beside=1.6)
    for (names, heads, tokens), row in zip(bands, grid, strict=True):
        for axes in row[len(heads) :]:
            axes.remove()
        for name, matrix, axes in zip(names, heads, row, strict=False):
            image = draw_panel(axes, matrix, tokens, low, high, with_numbers)
            axes.set_title(name)
        row[0].set_ylabel("query")
    for axes in grid[-1]:
        axes.set_xlabel("key")
    figure.colorbar(image, ax=list(figure.axes), label="weight", pad=0.02, aspect=20 * len(bands))
    figure.suptitle(title)
    return figure


def main():
    arguments = plotting.argument_parser(__doc__).parse_args()
    plotting.prepare_output(arguments.output)
    bands = read_weights(arguments.files)
    title = plotting.title_of(arguments, "Attention weights", [])
    plotting.finish(draw(bands, title), arguments.output)


if __name__ == "__main__":
    plotting.run_script(main)
