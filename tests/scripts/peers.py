#!/usr/bin/env python3
"""Test the comparison with other libraries: what it makes of its times, what it refuses, and a row
of it where a Python here has NumPy.

usage: peers.py BINARY      exit 0 passed, 1 failed
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts" / "bench_peers.py"

binary = None


def python_with_numpy():
    for candidate in (sys.executable, "/usr/bin/python3"):
        test = [candidate, "-c", "import numpy"]
        if Path(candidate).exists() and not subprocess.run(test, capture_output=True).returncode:
            return candidate
    return None


def start(*arguments, python=sys.executable, **environment):
    command = [python, str(SCRIPT), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600,
        env=os.environ | environment,
    )  # fmt: skip


class Peers(unittest.TestCase):
    def test_ratios_are_taken_within_a_round_and_then_their_median(self):
        work = works.Work("attention", {"attnlab": None, "NumPy": None})
        # The machine is twice as slow in the second round, and busy in the middle of the third.
        work.rounds = [
            {"attnlab": 0.010, "NumPy": 0.030},
            {"attnlab": 0.020, "NumPy": 0.060},
            {"attnlab": 0.010, "NumPy": 0.500},
        ]
        work.peak_shares = [0.5, 0.75, 0.25]
        row = peers.summary(work)
        self.assertEqual(row["peak_share"], 0.5)
        of = row["contenders"]["NumPy"]
        self.assertAlmostEqual(of["ratio"], 3)
        self.assertAlmostEqual(of["ratio_low"], 3)
        self.assertAlmostEqual(of["ratio_high"], 50)
        self.assertAlmostEqual(of["median_ms"], 60)
        self.assertEqual(len(of["rounds_ms"]), 3)
        self.assertEqual(row["contenders"]["attnlab"]["ratio"], 1)

    def test_the_table_leaves_out_who_did_not_take_part(self):
        rows = [
            {
                "name": "attention, n 128", "peak_share": 0.876,
                "contenders": {
                    "attnlab": {"median_ms": 0.3333, "ratio": 1},
                    "NumPy": {"median_ms": 1234.5, "ratio": 3.704},
                    "PyTorch": {"median_ms": 999.4, "ratio": 0.5},
                },
            },
            {
                "name": "variance",
                "contenders": {
                    "attnlab": {"median_ms": 20.0, "ratio": 1},
                    "NumPy": {"median_ms": 100.0, "ratio": 5},
                },
            },
        ]  # fmt: skip
        self.assertEqual(
            peers.markdown(rows, ["NumPy", "PyTorch"]).splitlines(),
            [
                "| ms (times attnlab's) | attnlab | of peak | NumPy | PyTorch |",
                "|---|---|---|---|---|",
                "| attention, n 128 | 0.333 | 88% | 1234 (3.70) | 999 (0.50) |",
                "| variance | 20 |  | 100 (5.00) |  |",
            ],
        )

    def test_what_attnlab_alone_is_measured_by_has_a_table_of_its_own(self):
        numbers = iter([1.5, 9.0, 1.75])
        settings = works.Settings("", 1, 3, 0.0, True)
        work = works.Alone("2 threads over 1", lambda _: next(numbers), "times as fast")
        works.measure(work, settings)
        self.assertEqual(peers.summary_alone(work)["value"], 1.75)
        once = works.Alone("memory", lambda _: 3.25, "MiB", once=True)
        works.measure(once, settings)
        self.assertEqual(once.rounds, [3.25])
        rows = [peers.summary_alone(work), peers.summary_alone(once)]
        rows += [
            {"name": "normals a second", "value": 1.3107e9, "unit": ""},
            {"name": "memory elsewhere", "value": None, "unit": "MiB"},
        ]
        self.assertEqual(
            peers.markdown_alone(rows).splitlines(),
            [
                "| attnlab alone | |",
                "|---|---|",
                "| 2 threads over 1 | 1.75 times as fast |",
                "| memory | 3.25 MiB |",
                "| normals a second | 1.31e+09 |",
                "| memory elsewhere | the system does not tell |",
            ],
        )

    def test_the_quick_rows_are_among_all_rows_or_of_small_sizes(self):
        def names(quick):
            settings = works.Settings("", 1, 1, 0.0, quick)
            modules = {"numpy": None, "torch": True}
            comparison = works.Comparison(modules, ["NumPy", "PyTorch"], settings, Path())
            return [name for name, _ in comparison.makers()]

        every, quick = names(False), names(True)
        self.assertEqual(len(set(every)), len(every))
        self.assertLess(set(quick), set(every))
        self.assertFalse([name for name in quick if "8192" in name or "65536" in name])
        for name in (
            "attention, causal, n 8192, d 128, 1 head", "attention and weights, n 2048, d 64",
            "backward, causal, n 2048, d 128", "backward, n 8192, d 64, 1 head", "normals, 2^20",
            "normals a second", "memory beside inputs and output, n 65536, d 64, 1 head",
        ):  # fmt: skip
            self.assertIn(name, every)

    def test_the_caption_says_what_was_not_there(self):
        result = {
            "processor": "A Processor", "threads": 1, "rounds": 7, "missing": ["ONNX Runtime"],
            "versions": {"attnlab": "0.1.0", "NumPy": "2.0"},
        }  # fmt: skip
        caption = peers.caption(result)
        for part in ("A Processor, 1 thread,", "7 rounds", "NumPy 2.0", "installed: ONNX Runtime."):
            self.assertIn(part, caption)
        self.assertNotIn("not installed", peers.caption(result | {"missing": []}))

    def test_the_best_call_is_the_shortest(self):
        settings = works.Settings("", 1, 1, 0.0, True)
        calls = []
        self.assertGreater(works.best_call(lambda: calls.append(1), settings, least=3), 0)
        self.assertGreaterEqual(len(calls), 2)

    def refusal(self, *arguments, **environment):
        # Were it not refused, this would end it soon.
        arguments = ["--only", "no such row", *arguments]
        outcome = start("--binary", binary, *arguments, **environment)
        self.assertEqual((outcome.returncode, outcome.stdout), (2, ""), outcome.stderr)
        return outcome.stderr.splitlines()[-1]

    def test_bad_input_is_told_in_one_line(self):
        for arguments, why in (
            (["--threads", "0"], "--threads: got 0, need at least 1"),
            (["--rounds", "0"], "--rounds: got 0, need at least 1"),
            (["--only", "("], "--only: got (, no regular expression"),
            (["--binary", "no_such_program"], "--binary: got no_such_program, need the binary"),
        ):
            with self.subTest(why):
                self.assertIn(why, self.refusal(*arguments))

    def test_a_python_without_numpy_is_told_what_to_install(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "numpy.py").write_text("raise ImportError('none', name='numpy')\n")
            self.assertIn("pip install numpy", self.refusal(PYTHONPATH=folder))

    def test_a_row_of_it(self):
        python = python_with_numpy()
        if python is None:
            self.skipTest("no NumPy")
        arguments = ["--binary", binary, "--quick", "--rounds", "2", "--format", "json"]
        outcome = start(*arguments, "--only", "^attention, n 128, d 64$", python=python)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        result = json.loads(outcome.stdout)
        self.assertIn("NumPy", result["versions"])
        self.assertEqual([row["name"] for row in result["rows"]], ["attention, n 128, d 64"])
        row = result["rows"][0]
        self.assertGreater(row["peak_share"], 0)
        for of in row["contenders"].values():
            self.assertEqual(len(of["rounds_ms"]), 2)
            self.assertGreater(of["median_ms"], 0)
        self.assertEqual(result["alone"], [])
        only = "^(normals|attention and weights, n 512)"
        outcome = start(*arguments, "--only", only, python=python)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        result = json.loads(outcome.stdout)
        names = [row["name"] for row in result["rows"]]
        self.assertEqual(names, ["attention and weights, n 512, d 64", "normals, 2^20"])
        self.assertNotIn("peak_share", result["rows"][1])
        self.assertEqual([row["name"] for row in result["alone"]], ["normals a second"])
        self.assertGreater(result["alone"][0]["value"], 1e6)
        outcome = start("--binary", binary, "--quick", "--only", "no such row", python=python)
        self.assertEqual(outcome.returncode, 2)
        self.assertIn("no row has such a name", outcome.stderr)


def main():
    global binary, peers, works
    binary = str(Path(sys.argv.pop(1)).resolve())
    sys.path.insert(0, str(SCRIPT.parent))
    sys.dont_write_bytecode = True
    import bench_peers as peers
    import peer_works as works

    return unittest.main()


if __name__ == "__main__":
    sys.exit(main())
