#!/usr/bin/env python3
"""Test the plot scripts on results that the binary makes here and now, so that neither can change
without the other.

usage: plots.py BINARY      exit 0 passed, 1 failed, 77 skipped: no Python here has matplotlib
"""

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path
from unittest import mock

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "scripts"
SKIPPED = 77

# The result of each script, small.
COMMANDS = {
    "plot_variance.py": ["variance", "--d-k", "2,8", "--samples", "50", "--components"],
    "plot_saturation.py": ["saturation", "--d-k", "1,16", "--keys", "4,8", "--samples", "20"],
    "plot_gradients.py": ["gradients", "--d-k", "4,16", "--keys", "8", "--samples", "20"],
    "plot_bench.py": [
        "bench", "--n", "16,32", "--d-k", "4", "--heads", "2", "--kernel", "tiled,full",
        "--repeat", "2", "--min-time", "0", "--threads", "1",
    ],
    "plot_weights.py": ["multihead", "--n", "3", "--d-model", "4", "--tokens", "the cat sat"],
}  # fmt: skip
# What stands in the picture: matplotlib writes each text into an SVG as a comment too.
SHOWN = {
    "plot_variance.py": ["measured / theory", "95% interval", "covariance term"],
    "plot_saturation.py": ["keys", "root mean square", "median", "critical"],
    "plot_gradients.py": ["dead rows", "root mean square", "median", "95% interval"],
    "plot_bench.py": ["tiled", "full", "share of the FMA peak", "peak memory (MiB)", "2 heads",
                      "1 thread -->", "100%"],
    "plot_weights.py": ["head 1", "cat", "weight"],
}  # fmt: skip

binary = None


def python_with_matplotlib():
    """This Python, or the system's, which is where a package of the system goes."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        test = [candidate, "-c", "import matplotlib"]
        if Path(candidate).exists() and not subprocess.run(test, capture_output=True).returncode:
            return candidate
    return None


def attnlab(*arguments):
    command = [binary, *arguments, "--quiet"]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout


class Plots(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.results = {
            script: attnlab(*command, "--format", "json") for script, command in COMMANDS.items()
        }

    def path(self, name):
        return Path(self.folder.name) / name

    def start_script(self, script, *arguments, stdin=b"", **environment):
        """As a user starts it."""
        return subprocess.run(
            [sys.executable, str(SCRIPTS / script), *map(str, arguments)], input=stdin, timeout=120,
            capture_output=True, env=os.environ | environment, check=False,
        )  # fmt: skip

    def run_script(self, script, *arguments, stdin=b""):
        """In this process: matplotlib takes longer to start than to draw."""
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch("sys.argv", [script, *map(str, arguments)]),
            mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin))),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            self.assertRaises(SystemExit) as end,
        ):
            module = importlib.import_module(script.removesuffix(".py"))
            module.plotting.run_script(module.main)
        code, text = end.exception.code or 0, (out.getvalue(), err.getvalue())
        return subprocess.CompletedProcess(script, code, *map(str.encode, text))

    def picture(self, script, stdin, *arguments):
        """The text of the SVG that a script makes of its input."""
        output = self.path("picture.svg")
        outcome = self.run_script(script, "-o", output, *arguments, stdin=stdin)
        self.assertEqual((outcome.returncode, outcome.stdout, outcome.stderr), (0, b"", b""))
        text = output.read_text(encoding="utf-8")
        xml.etree.ElementTree.fromstring(text)
        output.unlink()
        return text

    def line_of(self, outcome):
        """The one line that a script says of what it cannot do."""
        self.assertEqual((outcome.returncode, outcome.stdout), (2, b""), outcome.stderr)
        lines = outcome.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        return lines[0]

    def refusal(self, script, stdin, *arguments):
        output = self.path("refused.png")
        arguments = arguments or ("-o", output)
        line = self.line_of(self.run_script(script, *arguments, stdin=stdin))
        self.assertFalse(output.exists())
        return line

    def test_each_script_draws_the_result_of_its_command(self):
        for script, result in self.results.items():
            with self.subTest(script):
                drawn = self.picture(script, result)
                for text in SHOWN[script]:
                    self.assertIn(text, drawn)

    def test_the_same_input_gives_the_same_bytes_in_another_process(self):
        output = self.path("alone.svg")
        result = self.results["plot_variance.py"]
        outcome = self.start_script("plot_variance.py", "-o", output, stdin=result)
        self.assertEqual((outcome.returncode, outcome.stderr), (0, b""))
        here = self.picture("plot_variance.py", result)
        self.assertEqual(output.read_text(encoding="utf-8"), here)

    def test_without_a_screen_a_file_is_asked_for(self):
        outcome = self.start_script("plot_weights.py", stdin=self.results["plot_weights.py"])
        self.assertIn("no screen", self.line_of(outcome))

    def test_png_and_pdf_by_extension_and_a_file_as_argument(self):
        source = self.path("weights.json")
        source.write_bytes(self.results["plot_weights.py"])
        for extension, start in ((".png", b"\x89PNG"), (".pdf", b"%PDF")):
            output = self.path(f"picture{extension}")
            self.assertEqual(self.run_script("plot_weights.py", source, "-o", output).returncode, 0)
            self.assertTrue(output.read_bytes().startswith(start))

    def test_streamed_rows_and_the_mark_of_an_interruption(self):
        rows = attnlab(*COMMANDS["plot_gradients.py"], "--format", "jsonl")
        mark = b'{"interrupted": true, "rows": 2, "run": "%s"}\n'
        mark %= json.loads(rows.splitlines()[0])["run"].encode()
        self.assertNotIn("interrupted", self.picture("plot_gradients.py", rows))
        self.assertIn("interrupted", self.picture("plot_gradients.py", rows + mark))
        # A run that was taken up again is whole.
        self.assertNotIn("interrupted", self.picture("plot_gradients.py", mark + rows))

    def test_several_results_are_named_by_what_they_differ_in(self):
        config = self.path("config.json")
        config.write_text(
            json.dumps(
                [
                    {"command": "variance", "d_k": [2, 4], "samples": 20, "distribution": name}
                    for name in ("uniform", "laplace", "student_t")
                ]
            )
        )
        drawn = self.picture("plot_variance.py", attnlab("run", str(config), "--format", "json"))
        for name in ("uniform", "laplace", "student t"):
            self.assertIn(name, drawn)

    def test_what_has_no_interval_or_no_theory_is_drawn_all_the_same(self):
        heavy = ["--distribution", "student_t", "--nu", "3", "--d-k", "2,4", "--samples", "20"]
        drawn = self.picture("plot_variance.py", attnlab("variance", *heavy, "--format", "json"))
        self.assertIn("no valid interval", drawn)
        result = attnlab("saturation", "--logits", "iid", "--samples", "20", "--format", "json")
        drawn = self.picture("plot_saturation.py", result, "--metric", "effective_keys")
        self.assertIn("logit variance", drawn)
        self.assertIn("independent normal logits", drawn)
        config = str(SCRIPTS.parent / "configs" / "saturation_weights.json")
        drawn = self.picture("plot_saturation.py", attnlab("run", config, "--format", "json"))
        self.assertIn("heads of given weights", drawn)
        self.assertIn("line: random scores of", drawn)
        self.assertNotIn("95% interval", drawn)

    def test_a_line_of_bench_is_named_by_what_tells_it_from_the_others(self):
        quick = ["--n", "8,16", "--heads", "2", "--repeat", "1", "--min-time", "0"]
        result = attnlab(
            "bench", *quick, "--d-k", "4,8", "--operation", "attention,backward",
            "--format", "jsonl",
        )  # fmt: skip
        drawn = self.picture("plot_bench.py", result, "--metric", "median_ms")
        for text in ("time of a call (ms)", "quartiles", "auto, attention, ", "auto, backward, "):
            self.assertIn(text, drawn)
        # Rows that do not say which run they are of are one run until a point comes again.
        nameless = [json.loads(line) for line in result.splitlines()]
        for row in nameless:
            del row["run"]
        drawn = self.picture("plot_bench.py", b"\n".join(json.dumps(r).encode() for r in nameless))
        self.assertNotIn("run 1", drawn)
        # Two kernels that keep the weights or not are two lines, not four.
        drawn = self.picture("plot_bench.py", self.results["plot_bench.py"])
        self.assertNotIn("with weights", drawn)
        # The same points twice are two runs; what differs between them is in the legend.
        runs = [json.loads(self.results["plot_bench.py"]) for _ in range(2)]
        for row in runs[1]["result"]["rows"]:
            row["causal"] = True
        drawn = self.picture("plot_bench.py", json.dumps(runs).encode())
        self.assertIn("tiled, causal", drawn)
        self.assertIn("tiled, full mask", drawn)

    def test_threads_buffers_and_normals_of_bench_have_lines_of_their_own(self):
        quick = ["--n", "8,16", "--d-k", "4", "--heads", "2", "--repeat", "1", "--min-time", "0"]
        turns = ["--threads", "1,2", "--buffers", "fresh,warm", "--format", "json"]
        result = attnlab("bench", *quick, *turns)
        drawn = self.picture("plot_bench.py", result, "--metric", "speedup")
        for text in ("times as fast as one thread", "auto, 1 thread, fresh buffers",
                     "auto, 2 threads, warm buffers"):  # fmt: skip
            self.assertIn(text, drawn)
        normals = attnlab("bench", *quick, "--operation", "normals", "--format", "json")
        drawn = self.picture("plot_bench.py", normals, "--metric", "values_per_second")
        for text in ("values a second", "normals -->"):
            self.assertIn(text, drawn)
        refusal = self.refusal("plot_bench.py", normals)
        self.assertIn("peak_share: null in every row: need another --metric", refusal)

    def test_memory_that_the_system_does_not_tell_is_left_out(self):
        result = json.loads(self.results["plot_bench.py"])
        for row in result["result"]["rows"]:
            row["peak_memory_mib"] = None
        drawn = self.picture("plot_bench.py", json.dumps(result).encode())
        self.assertIn("share of the FMA peak", drawn)

    def test_bad_input_is_told_in_one_line(self):
        variance, gradients = self.results["plot_variance.py"], self.results["plot_gradients.py"]
        empty = json.loads(variance)
        empty["result"]["rows"] = []
        damaged = json.loads(variance)
        damaged["result"]["rows"][0]["variance"] = "much"
        for stdin, why in (
            (b"", "standard input: empty"),
            (b"d_k  scaling\n", "standard input:1: not JSON"),
            (b"[1]", "no JSON object"),
            (gradients, "command: got gradients, need variance"),
            (b'{"d_k": 1, "keys": 2}', "scaling: not there"),
            (json.dumps(empty).encode(), "rows: none"),
            (json.dumps(damaged).encode(), 'variance: got "much", need a number'),
            (b'{"interrupted": true, "rows": 0, "run": "0"}', "interrupted before the first"),
        ):
            with self.subTest(why):
                self.assertIn(why, self.refusal("plot_variance.py", stdin))
        attend = attnlab("attend", "--n", "2", "--format", "json")
        self.assertIn("--show weights", self.refusal("plot_weights.py", attend))

    def test_bad_output_is_told_in_one_line(self):
        for output, why in (
            (["-o", "picture.gif"], "picture.gif: got .gif, need .png, .svg or .pdf"),
            (["-o", "no/such/folder/picture.png"], "cannot be written"),
            (["no_such_file.json", "-o", "picture.png"], "no_such_file.json: no such file"),
        ):
            with self.subTest(why):
                stdin = self.results["plot_variance.py"]
                self.assertIn(why, self.refusal("plot_variance.py", stdin, *output))

    def test_a_python_without_matplotlib_is_told_what_to_install(self):
        self.path("matplotlib.py").write_text("raise ImportError('none', name='matplotlib')\n")
        outcome = self.start_script("plot_weights.py", PYTHONPATH=self.folder.name)
        self.assertIn("apt install python3-matplotlib", self.line_of(outcome))


def main():
    global binary
    python = python_with_matplotlib()
    if python is None:
        print("skipped: no matplotlib: apt install python3-matplotlib")
        return SKIPPED
    if python != sys.executable:
        return subprocess.run([python, *sys.argv], check=False).returncode
    binary = str(Path(sys.argv.pop(1)).resolve())
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND"):
        os.environ.pop(name, None)
    sys.path.insert(0, str(SCRIPTS))
    sys.dont_write_bytecode = True
    return unittest.main()


if __name__ == "__main__":
    sys.exit(main())
