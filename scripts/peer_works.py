"""The rows of bench_peers.py: what is done, who does it, and how each is timed."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import peer_calls

HEADS = 8
# Queries and keys of which one head is enough: NumPy's scores of eight would take 2 GB.
LONG = 8192
WEIGHTS = "attention and weights"
NORMALS = 2**20
NORMALS_FLAGS = [
    "--operation", "normals", "--n", str(NORMALS // 64 // HEADS), "--d-k", "64", "--buffers",
    "warm",
]  # fmt: skip
# Largest difference between outputs of order 1 that are of the same work.
TOLERANCE = 2e-5


class InputError(Exception):
    """What cannot be compared, told in one line."""


@dataclass
class Settings:
    binary: str
    threads: int
    rounds: int
    seconds: float  # of each contender in each round, where a call is no longer
    quick: bool


@dataclass
class Work:
    """One row: what is done, and who does it. A contender gives the seconds of its best call."""

    name: str
    contenders: dict  # name -> function of the settings
    rounds: list = field(default_factory=list)  # a round each: name -> seconds
    peak_shares: list = field(default_factory=list)


@dataclass
class Alone:
    """What attnlab alone is measured by: a number a round, of a unit."""

    name: str
    value: object  # function of the settings
    unit: str
    once: bool = False  # of a figure that does not change from round to round
    rounds: list = field(default_factory=list)


# ---- timing --------------------------------------------------------------------------------------


def best_call(call, settings, least=1):
    """The shortest of as many calls as there is time for, after one that does not count."""
    start = time.perf_counter()
    call()
    if time.perf_counter() - start < settings.seconds / 4:
        start = time.perf_counter()
    else:
        least = 1  # long calls have no cold start to speak of
    best, calls = float("inf"), 0
    while calls < least or time.perf_counter() - start < settings.seconds:
        before = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - before)
        calls += 1
    return best


def calls_of(call, least=3):
    return lambda settings: best_call(call, settings, least)


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise InputError(f"{Path(command[0]).name} {command[1]}: {lines[-1]}")
    return done.stdout


def process(*command, cwd=None):
    """Seconds of a program from its start to its end."""

    def seconds(settings):
        start, times = time.perf_counter(), []
        while not times or time.perf_counter() - start < settings.seconds:
            before = time.perf_counter()
            run([part.format(threads=settings.threads) for part in command], cwd=cwd)
            times.append(time.perf_counter() - before)
        return min(times)

    return seconds


def bench_rows(settings, *arguments, heads=HEADS, repeat=3, threads=None):
    """What `attnlab bench` measures, a row a case."""
    text = run(
        [settings.binary, "bench", *arguments, "--heads", str(heads), "--threads",
         str(threads or settings.threads), "--repeat", str(repeat), "--min-time",
         str(settings.seconds), "--format", "json"]
    )  # fmt: skip
    return json.loads(text)["result"]["rows"]


def bench(peak_shares, *arguments, heads=HEADS):
    """The best call of one case; its share of the peak, if it has one, goes to the list."""

    def seconds(settings):
        row = bench_rows(settings, *arguments, heads=heads)[0]
        if row["peak_share"] is not None:
            peak_shares.append(row["peak_share"])
        return row["best_ms"] / 1e3

    return seconds


def measure(work, settings):
    if isinstance(work, Alone):
        work.rounds = [work.value(settings) for _ in range(1 if work.once else settings.rounds)]
        return
    for _ in range(settings.rounds):
        work.rounds.append({name: seconds(settings) for name, seconds in work.contenders.items()})


def cores():
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def sizes(n, d, causal):
    return ["--n", str(n), "--d-k", str(d), *(["--causal"] if causal else [])]


# ---- the rows ------------------------------------------------------------------------------------


class Comparison:
    def __init__(self, modules, peers, settings, folder):
        self.modules, self.peers, self.settings, self.folder = modules, peers, settings, folder
        self.np, self.torch = modules["numpy"], modules.get("torch")

    def drawn(self, n, d, count, heads=HEADS):
        rng = self.np.random.default_rng(n + d)
        return [rng.standard_normal((heads, n, d), self.np.float32) for _ in range(count)]

    def attention_calls(self, tensors, causal):
        calls = {"NumPy": lambda: peer_calls.numpy_attention(self.np, *tensors, causal)}
        calls["PyTorch"] = lambda: peer_calls.torch_attention(self.torch, *tensors, causal)
        calls["ONNX Runtime"] = lambda: peer_calls.ort_attention(
            self.modules, *tensors, causal, self.settings.threads
        )
        return {name: make() for name, make in calls.items() if name in self.peers}

    def weights_calls(self, tensors, causal):
        calls = {"NumPy": peer_calls.numpy_weights(self.np, *tensors, causal)}
        if self.torch:
            calls["PyTorch"] = peer_calls.torch_weights(self.torch, *tensors, causal)
        return calls

    def works(self, wanted):
        """Each row as soon as it is its turn: its tensors are not held before."""
        for name, make in self.makers():
            if wanted(name):
                yield make(name)

    def makers(self):
        """Names of rows, and what makes them."""
        quick = self.settings.quick
        widths = [64] if quick else [64, 128]
        lengths = [128, 512, 2048] if quick else [128, 256, 512, 1024, 2048, 4096, LONG]
        yield from self.grid("attention", self.attention, widths, lengths)
        yield from self.grid(WEIGHTS, self.weights, widths, [512] if quick else [512, 2048])
        if self.torch:
            lengths = [512] if quick else [512, 1024, 2048, LONG]
            yield from self.grid("backward", self.backward, widths, lengths)
        yield "multihead, n 512, d_model 512", self.multihead
        yield "process, n 4096, d 64, .npy to .npy", self.process
        yield "normals, 2^20", self.normals
        yield "variance, d_k 64, 10^6 pairs", self.variance
        yield "saturation, d_k 64, 512 keys reused", lambda name: self.saturation(name, False)
        yield "saturation, d_k 64, 512 keys fresh", lambda name: self.saturation(name, True)
        yield "normals a second", self.normal_rate
        if cores() > 1:
            for n in [512] if quick else [512, 2048]:
                yield f"2 threads over 1, attention, n {n}, d 64", self.speedup(n)
        if not quick:
            yield "memory beside inputs and output, n 65536, d 64, 1 head", self.memory

    def grid(self, what, make, widths, lengths):
        for d in widths:
            for causal in (False, True):
                for n in lengths:
                    heads = 1 if n == LONG else HEADS
                    name = f"{what}{', causal' if causal else ''}, n {n}, d {d}"
                    name += ", 1 head" if heads == 1 else ""
                    yield name, partial(make, n=n, d=d, causal=causal, heads=heads)

    def work(self, name, attnlab, others):
        """attnlab first, then the others, in every round."""
        others = {peer: seconds for peer, seconds in others.items() if peer in self.peers}
        return Work(name, {"attnlab": attnlab} | others)

    def benched(self, name, flags, calls, heads=HEADS):
        """What attnlab bench measures beside calls in this process."""
        peak_shares = []
        others = {peer: calls_of(call) for peer, call in calls.items()}
        work = self.work(name, bench(peak_shares, *flags, heads=heads), others)
        work.peak_shares = peak_shares
        return work

    def attention(self, name, n, d, causal, heads):
        tensors = self.drawn(n, d, 3, heads)
        return self.benched(
            name, sizes(n, d, causal), self.attention_calls(tensors, causal), heads
        )

    def weights(self, name, n, d, causal, heads):
        calls = self.weights_calls(self.drawn(n, d, 3, heads), causal)
        flags = [*sizes(n, d, causal), "--weights", "--buffers", "warm"]
        return self.benched(name, flags, calls, heads)

    def backward(self, name, n, d, causal, heads):
        flags = ["--operation", "backward", *sizes(n, d, causal)]
        call = peer_calls.torch_backward(self.torch, *self.drawn(n, d, 4, heads), causal)
        return self.benched(name, flags, {"PyTorch": call}, heads)

    def normals(self, name):
        calls = {"NumPy": peer_calls.numpy_normals(self.np, NORMALS)}
        if self.torch:
            calls["PyTorch"] = peer_calls.torch_normals(self.torch, NORMALS)
        return self.benched(name, NORMALS_FLAGS, calls)

    def normal_rate(self, name):
        return Alone(
            name, lambda settings: bench_rows(settings, *NORMALS_FLAGS)[0]["values_per_second"], ""
        )

    def speedup(self, n):
        def ratio(settings):
            return bench_rows(settings, *sizes(n, 64, False), threads="1,2")[1]["speedup"]

        return lambda name: Alone(name, ratio, "times as fast")

    def memory(self, name):
        n, d = 65536, 64

        def beside(settings):
            row = bench_rows(settings, *sizes(n, d, False), heads=1, repeat=1)[0]
            # What a call takes is its output and what it works with.
            taken = row["peak_memory_mib"]
            return None if taken is None else taken - n * d * 4 / 2**20

        return Alone(name, beside, "MiB", once=True)

    def multihead(self, name):
        n, d_model = 512, 512
        flags = ["--operation", "multihead", "--n", str(n), "--d-k", str(d_model // HEADS)]
        calls = {"NumPy": peer_calls.numpy_layer(self.np, n, d_model, HEADS)}
        if self.torch:
            calls["PyTorch"] = peer_calls.torch_layer(self.torch, n, d_model, HEADS)
        return self.benched(name, flags, calls)

    def process(self, name):
        for letter, tensor in zip("qkv", self.drawn(4096, 64, 3), strict=True):
            self.np.save(self.folder / f"{letter}.npy", tensor[0])
        attend = process(
            self.settings.binary, "attend", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy",
            "--show", "none", "--save", "output=attnlab.npy", "--threads", "{threads}",
            cwd=self.folder,
        )  # fmt: skip
        others = {
            peer: process(sys.executable, "-c", program, cwd=self.folder)
            for peer, program in peer_calls.PROGRAMS.items()
        }
        return self.work(name, attend, others)

    def variance(self, name):
        pairs = 1_000_000
        attnlab = process(
            self.settings.binary, "variance", "--d-k", "64", "--scaling", "none", "--samples",
            str(pairs), "--threads", "{threads}",
        )  # fmt: skip
        others = {"NumPy": calls_of(peer_calls.numpy_variance(self.np, 64, pairs), 1)}
        if self.torch:
            others["PyTorch"] = calls_of(peer_calls.torch_variance(self.torch, 64, pairs), 1)
        return self.work(name, attnlab, others)

    def saturation(self, name, fresh):
        rows = 4_096 if fresh else 65_536
        attnlab = process(
            self.settings.binary, "saturation", "--d-k", "64", "--keys", "512", "--scaling",
            "inv_sqrt_d", "--samples", str(rows), "--key-draw", "fresh" if fresh else "reuse",
            "--threads", "{threads}",
        )  # fmt: skip
        call = peer_calls.numpy_saturation(self.np, 64, 512, rows, fresh)
        return self.work(name, attnlab, {"NumPy": calls_of(call, 1)})

    def check(self):
        """That all compute the same: a comparison of different things is none."""
        np = self.np
        tensors = self.drawn(128, 64, 3)
        for letter, tensor in zip("qkv", tensors, strict=True):
            np.save(self.folder / f"{letter}.npy", tensor)
        for causal in (False, True):
            run(
                [self.settings.binary, "attend", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy",
                 "--show", "none", "--save", "output=o.npy", "--save", "weights=w.npy",
                 *(["--causal"] if causal else [])],
                cwd=self.folder,
            )  # fmt: skip
            what = f"attention{', causal' if causal else ''}"
            expected = np.load(self.folder / "o.npy")
            for peer, call in self.attention_calls(tensors, causal).items():
                output = np.asarray(call())
                if peer == "ONNX Runtime":
                    output = output.reshape(128, HEADS, 64).swapaxes(0, 1)
                self.require_same(peer, what, output, expected)
            for peer, call in self.weights_calls(tensors, causal).items():
                output, weights = map(np.asarray, call())
                self.require_same(peer, what, output, expected)
                self.require_same(peer, f"{what}: weights", weights, np.load(self.folder / "w.npy"))

    def require_same(self, peer, what, got, expected):
        error = self.np.abs(got.reshape(expected.shape) - expected).max()
        if not error < TOLERANCE:
            raise InputError(
                f"{peer}: {what}: differs from attnlab's by {error:.2g}, need less than "
                f"{TOLERANCE:g}: it is not the same work"
            )
