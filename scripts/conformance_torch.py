#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["torch>=2.0", "numpy"]
# ///
"""Run PyTorch's nn.MultiheadAttention and attnlab multihead on the same layers and compare.

    uv run scripts/conformance_torch.py           or: pip install torch numpy, then run it
    scripts/conformance_torch.py --only bias_kv --verbose

The layers are drawn here, saved as their state_dict and read by attnlab: with each option of
nn.MultiheadAttention and each form of its masks, and the attentions inside a
TransformerEncoderLayer, a TransformerDecoderLayer and an nn.Transformer, found there by their
names. Output, weights and the gradients of all inputs, weights and biases have to agree within atol
+ rtol |expected|: float64 1e-11 + 1e-11, float32 5e-6 + 2e-5. Exit code: 0 all passed, 1 some
failed, 2 nothing could be run.
"""

import sys
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

try:
    import numpy as np
    import torch
    from torch import nn

    import conformance
except ImportError as error:
    print(f"needs the {error.name} package: pip install torch numpy", file=sys.stderr)
    sys.exit(2)

TOLERANCE = {torch.float64: (1e-11, 1e-11), torch.float32: (2e-5, 5e-6)}  # rtol, atol
D_MODEL, HEADS, BATCH, QUERIES, KEYS = 8, 2, 3, 4, 5


@dataclass
class Case:
    """One call of one attention: attention(query, key, value, **masks)."""

    attention: nn.MultiheadAttention
    inputs: dict  # as attnlab names them: x, or x and memory, or query, key and value
    masks: dict = field(default_factory=dict)
    # What is saved, and under which names the layer is in it; the attention alone without.
    model: nn.Module | None = None
    prefix: str = ""
    # What a model around it was seen to compute, else that of the call is expected.
    output: torch.Tensor | None = None

    def arguments(self):
        """query, key, value"""
        i = self.inputs
        if "query" in i:
            return i["query"], i["key"], i["value"]
        return i["x"], i.get("memory", i["x"]), i.get("memory", i["x"])

    def sizes(self):
        """batch, n, m"""
        query, key, _ = self.arguments()
        return query.shape[0] if query.dim() == 3 else 1, query.shape[-2], key.shape[-2]


# ---- the cases -----------------------------------------------------------------------------------


def drawn(*shape, dtype):
    return torch.randn(*shape, dtype=dtype)


def redraw(module):
    """No bias stays at the 0 that torch starts it with."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) / 2)
    return module


def attention(dtype, **options):
    options = {"embed_dim": D_MODEL, "num_heads": HEADS, "batch_first": True} | options
    return redraw(nn.MultiheadAttention(**options, dtype=dtype))


def self_inputs(dtype):
    return {"x": drawn(BATCH, QUERIES, D_MODEL, dtype=dtype)}


def cross_inputs(dtype):
    return self_inputs(dtype) | {"memory": drawn(BATCH, KEYS, D_MODEL, dtype=dtype)}


def inputs_apart(dtype, kdim=D_MODEL, vdim=D_MODEL):
    return {
        "query": drawn(BATCH, QUERIES, D_MODEL, dtype=dtype),
        "key": drawn(BATCH, KEYS, kdim, dtype=dtype),
        "value": drawn(BATCH, KEYS, vdim, dtype=dtype),
    }


def causal(n, m):
    return torch.triu(torch.ones(n, m, dtype=torch.bool), 1)


def padding(lengths, keys):
    """True where there is no key any more."""
    return torch.arange(keys)[None, :] >= torch.tensor(lengths)[:, None]


def scattered(*shape):
    """A boolean mask that leaves every query a key."""
    mask = torch.rand(*shape) < 0.4
    mask[..., 0] = False
    return mask


def numbers_mask(mask, dtype):
    """Numbers to be added, -infinity where `mask` hides."""
    return drawn(*mask.shape, dtype=dtype).masked_fill(mask, float("-inf"))


def plain_cases(dtype):
    """(name, function that makes the case), of layers alone."""
    options = {
        "": {},
        "no_bias": {"bias": False},
        "bias_kv": {"add_bias_kv": True},
        "zero_attn": {"add_zero_attn": True},
        "bias_kv_zero_attn": {"add_bias_kv": True, "add_zero_attn": True},
        "one_head": {"num_heads": 1},
        "no_bias_bias_kv": {"bias": False, "add_bias_kv": True},
    }
    forms = {"self": self_inputs, "cross": cross_inputs, "apart": inputs_apart}
    mask_forms = {
        "": lambda n, m: {},
        "causal": lambda n, m: {"attn_mask": causal(n, m)},
        # Not without weights: torch then applies the hint to the layer's own keys too.
        "causal_hint": lambda n, m: {"attn_mask": causal(n, m), "is_causal": True},
        "bool": lambda n, m: {"attn_mask": scattered(n, m)},
        "bool_per_head": lambda n, m: {"attn_mask": scattered(BATCH * HEADS, n, m)},
        "numbers": lambda n, m: {"attn_mask": numbers_mask(scattered(n, m), dtype)},
        "padding": lambda n, m: {"key_padding_mask": padding([m, m - 1, 2], m)},
        "scattered_padding": lambda n, m: {"key_padding_mask": scattered(BATCH, m)},
        "numbers_padding": lambda n, m: {
            "key_padding_mask": numbers_mask(padding([m, 1, m - 2], m), dtype)
        },
        "causal_padding": lambda n, m: {
            "attn_mask": causal(n, m),
            "key_padding_mask": padding([m, m - 2, 1], m),
        },
        "numbers_and_numbers_padding": lambda n, m: {
            "attn_mask": numbers_mask(scattered(n, m), dtype),
            "key_padding_mask": numbers_mask(padding([m, 1, m - 2], m), dtype),
        },
        "no_weights": lambda n, m: {"attn_mask": scattered(n, m), "need_weights": False},
        "averaged": lambda n, m: {"attn_mask": scattered(n, m), "average_attn_weights": True},
    }

    def make(layer, form, masks):
        inputs = form(dtype)
        m = list(inputs.values())[1 if len(inputs) > 1 else 0].shape[-2]
        heads = layer.get("num_heads", HEADS)
        given = masks(QUERIES, m)
        if "attn_mask" in given and given["attn_mask"].dim() == 3 and heads != HEADS:
            given["attn_mask"] = given["attn_mask"][: BATCH * heads]
        return Case(attention(dtype, **layer), inputs, given)

    for option, layer in options.items():
        for form_name, form in forms.items():
            for mask_name, masks in mask_forms.items():
                name = " ".join(part for part in (form_name, option, mask_name) if part)
                yield name, lambda layer=layer, form=form, masks=masks: make(layer, form, masks)


def special_cases(dtype):
    """(name, function that makes the case), of what stands outside the grid."""

    def widths(**options):
        layer = attention(dtype, kdim=6, vdim=10, **options)
        return Case(layer, inputs_apart(dtype, 6, 10))

    yield "kdim_vdim", widths
    yield "kdim_vdim no_bias", lambda: widths(bias=False)
    yield "kdim_vdim bias_kv_zero_attn", lambda: widths(add_bias_kv=True, add_zero_attn=True)

    def unbatched():
        case = Case(attention(dtype, add_bias_kv=True), cross_inputs(dtype))
        case.inputs = {name: tensor[0] for name, tensor in case.inputs.items()}
        return case

    yield "unbatched bias_kv", unbatched

    def all_padded(**options):
        return Case(
            attention(dtype, **options),
            cross_inputs(dtype),
            {"key_padding_mask": padding([0, KEYS, 0], KEYS)},
        )

    # The keys that are the layer's own are all that is left to see.
    yield "all_padded bias_kv", lambda: all_padded(add_bias_kv=True)
    yield "all_padded zero_attn", lambda: all_padded(add_zero_attn=True)


def model_cases(dtype):
    """(name, function that makes the case), of the attentions inside larger modules."""
    sizes = {"d_model": D_MODEL, "nhead": HEADS, "dim_feedforward": 6, "dropout": 0.0}
    sizes |= {"batch_first": True, "dtype": dtype}

    def call(model):
        source = drawn(BATCH, KEYS, D_MODEL, dtype=dtype)
        target = drawn(BATCH, QUERIES, D_MODEL, dtype=dtype)
        source_padding = padding([KEYS, KEYS - 1, 2], KEYS)
        target_mask = causal(QUERIES, QUERIES)
        if isinstance(model, nn.TransformerEncoderLayer):
            return model(source, src_key_padding_mask=source_padding)
        if isinstance(model, nn.TransformerDecoderLayer):
            return model(
                target, source, tgt_mask=target_mask, memory_key_padding_mask=source_padding
            )
        return model(source, target, tgt_mask=target_mask, memory_key_padding_mask=source_padding)

    def seen_inside(make, name):
        """The call of attention `name` while the model runs."""
        model = redraw(make())
        layer = model.get_submodule(name)
        seen = {}

        def hook(_, arguments, named, result):
            seen.update(arguments=arguments, named=named, output=result[0].detach())

        layer.register_forward_hook(hook, with_kwargs=True)
        call(model)
        query, key, _ = (tensor.detach().clone() for tensor in seen["arguments"])
        inputs = {"x": query}
        if name.endswith("multihead_attn"):
            inputs["memory"] = key
        masks = {n: seen["named"][n] for n in ("attn_mask", "key_padding_mask")}
        masks = {n: mask for n, mask in masks.items() if mask is not None}
        return Case(layer, inputs, masks, model, name, seen["output"])

    models = {
        "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(**sizes),
        "TransformerDecoderLayer": lambda: nn.TransformerDecoderLayer(**sizes),
        "Transformer": lambda: nn.Transformer(num_encoder_layers=2, num_decoder_layers=2, **sizes),
    }
    names = {
        "TransformerEncoderLayer": ["self_attn"],
        "TransformerDecoderLayer": ["self_attn", "multihead_attn"],
        "Transformer": [
            "encoder.layers.1.self_attn", "decoder.layers.0.self_attn",
            "decoder.layers.1.multihead_attn",
        ],
    }  # fmt: skip
    for model, make in models.items():
        for name in names[model]:
            yield f"{model} {name}", lambda make=make, name=name: seen_inside(make, name)


def all_cases():
    def seeded(name, make):
        """A case is the same whichever others are run."""
        torch.manual_seed(zlib.crc32(name.encode()))
        return make()

    for dtype in (torch.float64, torch.float32):
        short = str(dtype).removeprefix("torch.")
        for kind in (plain_cases, special_cases, model_cases):
            for name, make in kind(dtype):
                yield f"{name} {short}", lambda name=name, make=make: seeded(name, make)


# ---- what torch makes of a case ------------------------------------------------------------------


def parts_of(name, gradient, case):
    """The gradient of one of torch's parameters as attnlab's names and orientation have it."""
    d_model = case.attention.embed_dim
    thirds = {"in_proj_weight": "w", "in_proj_bias": "b"}
    if name in thirds:
        for i, which in enumerate("qkv"):
            part = gradient[i * d_model : (i + 1) * d_model]
            yield f"grad_{thirds[name]}_{which}", part.T if part.dim() == 2 else part
    elif name == "out_proj.bias":
        yield "grad_b_o", gradient
    elif name in ("bias_k", "bias_v"):
        yield f"grad_{name}", gradient.flatten()
    else:
        which = "o" if name == "out_proj.weight" else name[0]
        yield f"grad_w_{which}", gradient.T


def expected_of(case, grad_output):
    """Name -> array of all that is compared."""
    for tensor in case.inputs.values():
        tensor.requires_grad_(True)
    case.attention.zero_grad()
    options = {"average_attn_weights": False} | case.masks
    output, weights = case.attention(*case.arguments(), **options)
    output.backward(grad_output)
    expected = {"output": output.detach() if case.output is None else case.output}
    if weights is not None:
        expected["weights"] = weights.detach()
    for name, tensor in case.inputs.items():
        expected[f"grad_{name}"] = tensor.grad
    for name, parameter in case.attention.named_parameters():
        expected |= dict(parts_of(name, parameter.grad, case))
    return {name: tensor.numpy() for name, tensor in expected.items()}


# ---- the same through attnlab --------------------------------------------------------------------


def combined_mask(case):
    """torch's two masks as one for attnlab: booleans that hide, or numbers that are added."""
    batch, n, m = case.sizes()
    mask = case.masks.get("attn_mask")
    if mask is not None and mask.dim() == 3:
        mask = mask.reshape(batch, -1, n, m)
    padding_mask = case.masks.get("key_padding_mask")
    if padding_mask is None:
        return mask
    padding_mask = padding_mask.reshape(batch, 1, 1, m)
    if mask is None:
        return padding_mask
    if mask.dtype == torch.bool and padding_mask.dtype == torch.bool:
        return mask | padding_mask
    numbers = [
        torch.zeros(part.shape).masked_fill(part, float("-inf")) if part.dtype == torch.bool else part
        for part in (mask, padding_mask)
    ]
    return numbers[0] + numbers[1]


def arguments_of(case, folder):
    """The options of `attnlab multihead` that say what the case says."""
    arguments = ["--params", str(folder / "model.safetensors"), "--heads"]
    arguments += [str(case.attention.num_heads)]
    if case.prefix:
        arguments += ["--prefix", case.prefix]
    if case.attention.add_zero_attn:
        arguments += ["--add-zero-attn"]
    for name in case.inputs:
        arguments += [f"--{name}", str(folder / f"{name}.npy")]
    mask = combined_mask(case)
    if mask is not None:
        kind = "ignore" if mask.dtype == torch.bool else "add"
        np.save(folder / "mask.npy", mask.numpy())
        arguments += ["--mask", str(folder / "mask.npy"), "--mask-kind", kind]
    return arguments


def run_case(case, binary, show_command):
    """What is wrong, or nothing."""
    query, _, _ = case.arguments()
    grad_output = torch.randn(*query.shape[:-1], D_MODEL, dtype=query.dtype)
    expected = expected_of(case, grad_output)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        state = (case.model or case.attention).state_dict()
        arrays = {name: tensor.numpy() for name, tensor in state.items()}
        conformance.write_safetensors(folder / "model.safetensors", arrays)
        for name, tensor in case.inputs.items():
            np.save(folder / f"{name}.npy", tensor.detach().numpy())
        np.save(folder / "grad_output.npy", grad_output.numpy())
        command = [str(binary), "multihead", *arguments_of(case, folder)]
        command += ["--grad-output", str(folder / "grad_output.npy")]
        command += ["--format", "json", "--show", "none", "--quiet"]
        for name in expected:
            command += ["--save", f"{name}={folder / name}.npy"]
        if show_command:
            print(" ".join(command).replace(f"{folder}/", ""))
            return None
        if (failure := conformance.run(command)) is not None:
            return failure
        for name, array in expected.items():
            got = np.load(folder / f"{name}.npy")
            if name == "weights" and case.masks.get("average_attn_weights"):
                got = got.mean(axis=-3)
            if got.dtype != array.dtype:
                return f"{name}: dtype {got.dtype}, expected {array.dtype}"
            wrong = conformance.difference(got, array, TOLERANCE[query.dtype])
            if wrong:
                return f"{name}: {wrong}"
    return None


def main():
    arguments = conformance.parse_arguments(__doc__)
    torch.set_num_threads(1)
    return conformance.run_cases(
        f"torch {torch.__version__}",
        all_cases(),
        lambda case: run_case(case, arguments.binary, arguments.commands),
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
