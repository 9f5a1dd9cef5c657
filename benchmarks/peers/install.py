"""Create the environments of the peers under ``.peers``; kept where they exist."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parents[1] / ".peers"
# requirement files in the order of installation
STEPS = {
    "sklearn": ("requirements-sklearn.txt",),
    "torch": ("requirements-torch.txt", "requirements-opacus.txt"),
    "jax": ("requirements-jax.txt",),
    "celer": ("requirements-celer.txt",),
    "implicit": ("requirements-implicit.txt",),
    "interpret": ("requirements-interpret.txt",),
}
CHECKS = {
    "sklearn": "import diffprivlib.models",
    "torch": "import opacus",
    "jax": "import jax_privacy",
    "celer": "import celer.lasso_fast",
    "implicit": "import implicit.als",
    "interpret": "import interpret.privacy",
}


def run(*command):
    subprocess.run([str(part) for part in command], check=True)


def create(name: str) -> None:
    """Make one environment; what is installed first is not replaced later."""
    home = ENVIRONMENTS / name
    python = home / "bin" / "python"
    done = home / "installed"
    wanted = "\n".join((HERE / file).read_text() for file in STEPS[name])
    if done.is_file() and done.read_text() == wanted:
        print(f"{name}: as required already.")
        return
    run(sys.executable, "-m", "venv", home)
    held = home / "held.txt"
    for file in STEPS[name]:
        pip = [python, "-m", "pip", "install", "--quiet"]
        pip += ["--disable-pip-version-check", "-r", HERE / file]
        run(*pip, *(["-c", held] if held.is_file() else []))
        frozen = subprocess.run(
            [str(python), "-m", "pip", "list", "--format=freeze"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        keep = [line for line in frozen.splitlines() if line.startswith("torch==")]
        if keep:
            held.write_text("\n".join(keep) + "\n")
    run(python, "-c", CHECKS[name])
    done.write_text(wanted)
    print(f"{name}: installed.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(STEPS), help="all by default")
    failed = 0
    ENVIRONMENTS.mkdir(exist_ok=True)
    (ENVIRONMENTS / ".gitignore").write_text("*\n")
    for name in parser.parse_args().names:
        try:
            create(name)
        except subprocess.CalledProcessError as error:
            print(f"{name}: could not be installed: {error}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
