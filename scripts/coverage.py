#!/usr/bin/env python3
"""How often the 95% intervals of `attnlab variance` and `attnlab saturation` hold the truth.

Each seed is a run of its own; a figure is covered when the exact value lies in its interval. Over
1000 seeds an honest interval covers 95% give or take 0.7%.

usage: coverage.py [--seeds N] [--binary FILE] [--jobs N]
Exit 1 when a share lies outside 92.5% to 97.5%, 2 when a run fails.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOW, HIGH = 0.925, 0.975

VARIANCE = "variance --samples 1000 --d-k 1,4,64,1024 --scaling none"
SATURATION = "saturation --samples 1000 --d-k 16,64 --keys 64 --scaling none,inv_sqrt_d"


def rows_of(binary, command, seed):
    """The rows of one run."""
    arguments = [binary, *command.split(), "--seed", str(seed), "--threads", "1"]
    run = subprocess.run(
        [*arguments, "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: {run.stderr.decode().strip()}")
    return json.loads(run.stdout)["result"]["rows"]


def covered(row, prefix, theory):
    """Whether the interval of a row holds its exact value. An undefined interval does not."""
    low, high = row[f"{prefix}ci_low"], row[f"{prefix}ci_high"]
    return low is not None and low <= row[theory] <= high


def seed_coverage(binary, seed):
    """(figure, covered) of every figure of one seed."""
    for row in rows_of(binary, VARIANCE, seed):
        if row["theory_variance"] != row["d_k"]:
            raise RuntimeError(f"theory_variance {row['theory_variance']} at d_k {row['d_k']}")
        yield f"variance, d_k {row['d_k']}", covered(row, "", "theory_variance")
    for row in rows_of(binary, SATURATION, seed):
        for metric in ("sum_p2", "entropy"):
            name = f"{metric}, d_k {row['d_k']}, keys {row['keys']}, {row['scaling']}"
            yield name, covered(row, f"{metric}_", f"{metric}_theory")


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("need at least 1")
    return number


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=positive, default=1000, help="runs (default %(default)s)")
    parser.add_argument(
        "--binary",
        default=str(ROOT / "build/release/attnlab"),
        help="the attnlab to run (default build/release/attnlab)",
    )
    parser.add_argument(
        "--jobs", type=positive, default=os.cpu_count(), help="runs at a time (default all cores)"
    )
    return parser.parse_args()


def main():
    options = parse_arguments()
    held, seeds = Counter(), range(options.seeds)
    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            futures = [
                pool.submit(lambda s: list(seed_coverage(options.binary, s)), seed)
                for seed in seeds
            ]
            try:
                for future in futures:
                    for name, holds in future.result():
                        held[name] += holds
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        print(f"coverage.py: {error!r}", file=sys.stderr)
        return 2

    width = max(map(len, held))
    print(f"{'interval of':<{width}}  covered  std error   ({options.seeds} seeds)")
    outside = 0
    for name, count in held.items():
        share = count / options.seeds
        error = math.sqrt(share * (1 - share) / options.seeds)
        wrong = not LOW <= share <= HIGH
        outside += wrong
        print(f"{name:<{width}}  {share:7.1%}  {error:9.1%}{'   outside' if wrong else ''}")
    if outside:
        print(f"{outside} of {len(held)} lie outside {LOW:.1%} to {HIGH:.1%}", file=sys.stderr)
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
