#!/usr/bin/env python3
"""Hold the layers of an installed PyTorch against the binary.

usage: torch_layers.py BINARY      exit 0 passed, 1 failed, 77 skipped: no Python here has torch

The Python is that of $ATTNLAB_TORCH_PYTHON, or the one this runs in.
"""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts" / "conformance_torch.py"
SKIPPED = 77


def main():
    binary = sys.argv[1]
    python = os.environ.get("ATTNLAB_TORCH_PYTHON", sys.executable)
    found = subprocess.run([python, "-c", "import numpy, torch"], capture_output=True, check=False)
    if found.returncode:
        print(f"skipped: {python} has no torch and NumPy; $ATTNLAB_TORCH_PYTHON names another")
        return SKIPPED
    command = [python, str(SCRIPT), "--binary", binary]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=840, check=False)
    print(outcome.stdout + outcome.stderr)
    if outcome.returncode:
        return 1
    # Neither none, nor none but skipped ones.
    return 0 if " 0 failed, 0 skipped" in outcome.stdout else 1


if __name__ == "__main__":
    sys.exit(main())
