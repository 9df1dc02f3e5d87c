#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["onnx>=1.22", "numpy"]
# ///
"""Run the conformance cases of the ONNX operator Attention through attnlab and compare.

    uv run scripts/conformance_onnx.py            or: pip install onnx numpy, then run it
    scripts/conformance_onnx.py --only causal --verbose

The cases are those of the installed onnx package: the files under
onnx/backend/test/data/node/test_attention*, or, from 1.23 on, what the package makes in their
place. Outputs have to agree within atol + rtol |expected|: float32 2e-6 + 1e-5, float64 1e-12,
float16 2e-3, bfloat16 2e-2 (ONNX rounds to 16 bits after each step, attnlab once at the end). Exit
code: 0 all passed, 1 some failed, 2 nothing could be run.
"""

import json
import re
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper

    import conformance
    from conformance import Skipped
except ImportError as error:
    print(f"needs the {error.name} package: pip install onnx numpy", file=sys.stderr)
    sys.exit(2)

# Before 1.22 the package added the mask before the softcap (which undoes it) and counted the modes
# of qk_matmul_output the other way round; its cases were corrected since.
OLDEST_PACKAGE = (1, 22)

# The operator's inputs and outputs by position.
INPUTS = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"]
OUTPUTS = ["Y", "present_key", "present_value", "qk_matmul_output"]
# Which of attnlab's matrices an output is, qk_matmul_output by its mode.
MATRIX = {"Y": "output", "present_key": "present_k", "present_value": "present_v"}
QK_MODE = {0: "scores", 1: "capped_scores", 2: "masked_scores", 3: "weights"}

ATTRIBUTES = {
    "is_causal",
    "kv_num_heads",
    "left_window_size",
    "q_num_heads",
    "qk_matmul_output_mode",
    "right_window_size",
    "scale",
    "softcap",
    # attnlab computes the softmax in float32 or better, so that any precision is met.
    "softmax_precision",
}
TOLERANCE = {  # rtol, atol
    "float64": (1e-12, 1e-12),
    "float32": (1e-5, 2e-6),
    "float16": (2e-3, 2e-3),
    "bfloat16": (2e-2, 2e-2),
}


@dataclass
class Case:
    name: str
    attributes: dict
    inputs: dict  # role -> array
    expected: dict  # role -> array


# ---- reading the cases ---------------------------------------------------------------------------


def case_of(name, model, inputs, outputs):
    """A case from its model and the arrays in the order of the graph's inputs and outputs."""
    nodes = model.graph.node
    if len(nodes) != 1 or nodes[0].op_type != "Attention":
        raise Skipped("not one Attention node")
    node = nodes[0]
    by_name = dict(zip([i.name for i in model.graph.input], inputs, strict=True))
    by_name |= dict(zip([o.name for o in model.graph.output], outputs, strict=True))
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    return Case(
        name,
        attributes,
        {role: by_name[n] for role, n in zip(INPUTS, node.input, strict=False) if n},
        {role: by_name[n] for role, n in zip(OUTPUTS, node.output, strict=False) if n},
    )


def read_tensors(folder, kind):
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda f: int(f.stem.split("_")[1]))
    return [numpy_helper.to_array(onnx.TensorProto.FromString(f.read_bytes())) for f in files]


def cases_in_files():
    """(name, function that makes the case) from the package's data files."""
    data = Path(onnx.__file__).parent / "backend" / "test" / "data" / "node"
    for folder in sorted(data.glob("test_attention*")):

        def load(folder=folder):
            arrays = folder / "test_data_set_0"
            model = onnx.load(folder / "model.onnx")
            return case_of(
                folder.name, model, read_tensors(arrays, "input"), read_tensors(arrays, "output")
            )

        yield folder.name, load


def cases_in_memory():
    """The same from the code of the package that made the files."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, on the rows with no key
        collected = collect_testcases("Attention")
    for case in sorted(collected, key=lambda c: c.name):
        inputs, outputs = case.data_sets[0]
        yield case.name, lambda c=case, i=inputs, o=outputs: case_of(c.name, c.model, i, o)


def all_cases():
    return list(cases_in_files()) or list(cases_in_memory())


# ---- from a case to a command --------------------------------------------------------------------


def is_bfloat16(array):
    return array.dtype.name == "bfloat16"


def write_inputs(case, folder):
    """Where each input stands, as attnlab is told."""
    if any(is_bfloat16(array) for array in case.inputs.values()):
        file = folder / "inputs.safetensors"
        # It has bfloat16, which .npy has not.
        conformance.write_safetensors(file, case.inputs)
        return {role: f"{file}:{role}" for role in case.inputs}
    for role, array in case.inputs.items():
        np.save(folder / f"{role}.npy", array)
    return {role: str(folder / f"{role}.npy") for role in case.inputs}


def saved_matrix(case, role):
    if role != "qk_matmul_output":
        return MATRIX[role]
    mode = case.attributes.get("qk_matmul_output_mode", 0)
    if mode == 1 and not case.attributes.get("softcap"):
        return "scores"
    return QK_MODE[mode]


def arguments_of(case, files):
    """The options of `attnlab attend` that say what the case says."""
    unknown = (set(case.attributes) - ATTRIBUTES) | (set(case.inputs) - set(INPUTS))
    if unknown:
        raise Skipped(f"attnlab has no option for {', '.join(sorted(unknown))}")
    get = case.attributes.get
    arguments = ["--q", files["Q"], "--k", files["K"], "--v", files["V"]]
    if "q_num_heads" in case.attributes:
        arguments += ["--heads", str(get("q_num_heads")), "--kv-heads", str(get("kv_num_heads"))]
    if "scale" in case.attributes:
        arguments += ["--scale", repr(float(get("scale")))]
    if get("is_causal"):
        arguments += ["--causal"]
    if get("softcap"):
        arguments += ["--softcap", repr(float(get("softcap")))]
    for side in ("left", "right"):
        if get(f"{side}_window_size", -1) != -1:
            arguments += [f"--window-{side}", str(get(f"{side}_window_size"))]
    if "attn_mask" in files:
        kind = "attend" if case.inputs["attn_mask"].dtype == bool else "add"
        arguments += ["--mask", files["attn_mask"], "--mask-kind", kind]
    if "past_key" in files:
        arguments += ["--past-k", files["past_key"], "--past-v", files["past_value"]]
    if "nonpad_kv_seqlen" in files:
        # The last query stands at the last valid key of its batch entry.
        arguments += ["--key-lengths", files["nonpad_kv_seqlen"], "--align", "bottom-right"]
    return arguments


# ---- running and comparing -----------------------------------------------------------------------


def read_output(path):
    if path.suffix == ".npy":
        return np.load(path)
    # Exact, and "NaN", "Infinity" and "-Infinity" are what float() reads.
    return np.array(json.loads(path.read_text()), dtype=object).astype(np.float64)


def wrong_with(got, expected):
    """What is wrong with an output, or nothing."""
    if not is_bfloat16(expected) and got.dtype != expected.dtype:
        return f"dtype {got.dtype}, expected {expected.dtype}"
    return conformance.difference(got, expected, TOLERANCE[expected.dtype.name])


def run_case(case, binary, show_command):
    """What is wrong, or nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [str(binary), "attend", *arguments_of(case, write_inputs(case, folder))]
        command += ["--format", "json", "--show", "none", "--quiet"]
        outputs = {}
        for role, array in case.expected.items():
            outputs[role] = folder / f"{role}{'.json' if is_bfloat16(array) else '.npy'}"
            command += ["--save", f"{saved_matrix(case, role)}={outputs[role]}"]
        if show_command:
            print(" ".join(command).replace(f"{folder}/", ""))
            return None
        if (failure := conformance.run(command)) is not None:
            return failure
        wrong = (
            (role, wrong_with(read_output(path), case.expected[role]))
            for role, path in outputs.items()
        )
        return next((f"{role}: {why}" for role, why in wrong if why), None)


def load_case(name, load):
    # The same node written out in other operators, with the same arrays.
    if "_expanded" in name:
        raise Skipped("the same as the case without _expanded")
    return load()


def main():
    arguments = conformance.parse_arguments(__doc__)
    version = tuple(int(part) for part in re.findall(r"\d+", onnx.__version__)[:2])
    if version < OLDEST_PACKAGE:
        print(f"onnx: got {onnx.__version__}, need 1.22 or later", file=sys.stderr)
        return 2
    cases = [(name, lambda n=name, l=load: load_case(n, l)) for name, load in all_cases()]
    return conformance.run_cases(
        f"onnx {onnx.__version__}",
        cases,
        lambda case: run_case(case, arguments.binary, arguments.commands),
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
