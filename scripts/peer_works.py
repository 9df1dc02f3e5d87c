"""The rows of bench_peers.py: what is done, who does it, and how each is timed."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import peer_calls

HEADS = 8
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


def bench(peak_shares, *arguments):
    """The best call that `attnlab bench` measures; its share of the peak goes to the list."""

    def seconds(settings):
        text = run(
            [settings.binary, "bench", *arguments, "--heads", str(HEADS), "--threads",
             str(settings.threads), "--repeat", "3", "--min-time", str(settings.seconds),
             "--format", "json"]
        )  # fmt: skip
        row = json.loads(text)["result"]["rows"][0]
        peak_shares.append(row["peak_share"])
        return row["best_ms"] / 1e3

    return seconds


def measure(work, settings):
    for _ in range(settings.rounds):
        work.rounds.append({name: seconds(settings) for name, seconds in work.contenders.items()})


# ---- the rows ------------------------------------------------------------------------------------


class Comparison:
    def __init__(self, modules, peers, settings, folder):
        self.modules, self.peers, self.settings, self.folder = modules, peers, settings, folder
        self.np, self.torch = modules["numpy"], modules.get("torch")

    def drawn(self, n, d, count):
        rng = self.np.random.default_rng(n + d)
        return [rng.standard_normal((HEADS, n, d), self.np.float32) for _ in range(count)]

    def attention_calls(self, tensors, causal):
        calls = {"NumPy": lambda: peer_calls.numpy_attention(self.np, *tensors, causal)}
        calls["PyTorch"] = lambda: peer_calls.torch_attention(self.torch, *tensors, causal)
        calls["ONNX Runtime"] = lambda: peer_calls.ort_attention(
            self.modules, *tensors, causal, self.settings.threads
        )
        return {name: make() for name, make in calls.items() if name in self.peers}

    def works(self, wanted):
        """Each row as soon as it is its turn: its tensors are not held before."""
        quick = self.settings.quick
        lengths = [128, 512, 2048] if quick else [128, 256, 512, 1024, 2048, 4096]
        widths = [64] if quick else [64, 128]
        for d in widths:
            for causal in (False, True):
                for n in lengths:
                    name = f"attention{', causal' if causal else ''}, n {n}, d {d}"
                    if wanted(name):
                        yield self.attention(name, n, d, causal)
        for causal in (False, True):
            for n in [512] if quick else [512, 2048]:
                name = f"backward{', causal' if causal else ''}, n {n}, d 64"
                if wanted(name) and self.torch:
                    yield self.backward(name, n, 64, causal)
        makers = {
            "multihead, n 512, d_model 512": self.multihead,
            "process, n 4096, d 64, .npy to .npy": self.process,
            "variance, d_k 64, 10^6 pairs": self.variance,
            "saturation, d_k 64, 512 keys reused": lambda name: self.saturation(name, False),
            "saturation, d_k 64, 512 keys fresh": lambda name: self.saturation(name, True),
        }
        for name, make in makers.items():
            if wanted(name):
                yield make(name)

    def work(self, name, attnlab, others):
        """attnlab first, then the others, in every round."""
        others = {peer: seconds for peer, seconds in others.items() if peer in self.peers}
        return Work(name, {"attnlab": attnlab} | others)

    def benched(self, name, flags, calls):
        """What attnlab bench measures beside calls in this process."""
        peak_shares = []
        others = {peer: calls_of(call) for peer, call in calls.items()}
        work = self.work(name, bench(peak_shares, *flags), others)
        work.peak_shares = peak_shares
        return work

    def attention(self, name, n, d, causal):
        flags = ["--n", str(n), "--d-k", str(d), *(["--causal"] if causal else [])]
        return self.benched(name, flags, self.attention_calls(self.drawn(n, d, 3), causal))

    def backward(self, name, n, d, causal):
        flags = ["--operation", "backward", "--n", str(n), "--d-k", str(d)]
        flags += ["--causal"] if causal else []
        call = peer_calls.torch_backward(self.torch, *self.drawn(n, d, 4), causal)
        return self.benched(name, flags, {"PyTorch": call})

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
                 "--show", "none", "--save", "output=o.npy", *(["--causal"] if causal else [])],
                cwd=self.folder,
            )  # fmt: skip
            expected = np.load(self.folder / "o.npy")
            for peer, call in self.attention_calls(tensors, causal).items():
                output = np.asarray(call())
                if peer == "ONNX Runtime":
                    output = output.reshape(128, HEADS, 64).swapaxes(0, 1)
                error = np.abs(output.reshape(expected.shape) - expected).max()
                if not error < TOLERANCE:
                    raise InputError(
                        f"{peer}: attention{', causal' if causal else ''}: differs from attnlab's "
                        f"by {error:.2g}, need less than {TOLERANCE:g}: it is not the same work"
                    )
