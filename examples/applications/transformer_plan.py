"""Find the cheapest precisions of a transformer's products by `tf32dtype tune`.

    python examples/applications/transformer_plan.py [--quick] [--json FILE]

It needs `pip install scikit-learn` for the images, and matplotlib for `--plot FILE`. It
takes some minutes; with --quick, one tolerance and few images, half a minute.

For each tolerance, `tf32dtype tune` searches a plan for digits_logits.py that keeps the
logits of training images within it. Then unseen images are classified by that plan.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import digits_transformer as model
import numpy as np
from scripts import Report, figure, main, markdown, measured_on, say
from transformer import average_bits, watch

PROGRAM = Path(__file__).with_name("digits_logits.py")
TOLERANCES, QUICK_TOLERANCES = (0.3, 0.1, 0.03, 0.001), (0.3,)
WATCHED, QUICK_WATCHED = 64, 16  # training images with which a plan is searched
UNSEEN = 500
PRECISIONS = ("fp8_e4m3", "bf16", "tf32", "bf16x3", "f32")


def run(folder: Path, *words: str) -> str:
    """Run a command of tf32dtype in a folder and return its output."""
    command = [sys.executable, "-m", "tf32dtype", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def products_of(plan: Path) -> dict[str, str]:
    """Return the precision of each product, by the name that its line assigns to."""
    found = {}
    with plan.open("rb") as file:
        for site in tomllib.load(file)["call_site"]:
            name = re.match(r"\w+", site["user"]["text"])
            assert name is not None
            found[name[0]] = site["precision"]
    return found


def logits(folder: Path, *options: str) -> Any:
    """Run digits_logits.py and return the logits of unseen images."""
    words = [str(PROGRAM), "unseen.npy", str(UNSEEN), "test"]
    if options:
        run(folder, "run", "--quiet", *options, *words)
    else:
        subprocess.run([sys.executable, *words], cwd=folder, check=True)
    return np.load(folder / "unseen.npy")


def measure(quick: bool) -> Report:
    """Search and test a plan for each tolerance, and return the results for JSON."""
    count = QUICK_WATCHED if quick else WATCHED
    train, test = model.load()
    with np.load(model.WEIGHTS) as file:
        lines = watch(dict(file), train.patches[:count], 40.0, ("f32",))
    plans = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        exact = logits(folder)
        for tolerance in QUICK_TOLERANCES if quick else TOLERANCES:
            say(f"tune, {tolerance:g}")
            check = ("--check", "file:logits.npy", "--tolerance", f"{tolerance:g}")
            check += ("--precisions", ",".join(PRECISIONS))
            words = (str(PROGRAM), "--", "logits.npy", str(count))
            told = run(folder, "tune", *check, "--out", "plan.toml", *words)
            products = products_of(folder / "plan.toml")
            found = logits(folder, "--plan", "plan.toml")
            runs = re.search(r"(\d+) runs", told)
            plans[f"{tolerance:g}"] = {
                "products": products,
                "bits": average_bits(
                    lines, {x: _precision(products, x) for x in lines}
                ),
                "runs": int(runs[1]) if runs else None,
                "error": float(np.linalg.norm(found - exact) / np.linalg.norm(exact)),
                "right": model.right(found, test),
            }
            (folder / "plan.toml").unlink()
    return {"images": UNSEEN, "watched": count, "plans": plans}


def _precision(products: dict[str, str], name: str) -> str:
    found = products.get(name, "none")
    return "f32" if found == "none" else found


def block(report: Report) -> str:
    """Return the results as a Markdown table."""
    plans = report["plans"]
    names = dict.fromkeys(name for plan in plans.values() for name in plan["products"])
    rows = [
        [f"`{name}`", *(plan["products"].get(name, "none") for plan in plans.values())]
        for name in names
    ]
    for what, form in (("bits", "{:.3g}"), ("runs", "{}"), ("error", "{:.1e}")):
        rows.append([what, *(form.format(plan[what]) for plan in plans.values())])
    rows.append(["correct", *(f"{plan['right']:.1%}" for plan in plans.values())])
    return "\n".join(
        [
            measured_on(report),
            f"Plans for the logits of {report['watched']} training images; `none` is"
            ' unchanged float32. "bits" is the mean over the multiplications, and'
            ' "runs" is the number of runs of the search. "error" (Frobenius norm) and'
            f' "correct" are those of'
            f" {report['images']} unseen images.",
            "",
            markdown(["product", *(f"within {x}" for x in plans)], rows),
        ]
    )


def draw(report: Report, path: Path) -> None:
    """Draw the mean bits per multiplication over the tolerance."""
    drawing, (axes,) = figure(path, 1, (5, 3.2))
    plans = {float(x): plan for x, plan in report["plans"].items()}
    axes.plot(list(plans), [plan["bits"] for plan in plans.values()], "o-")
    axes.set(xscale="log", yscale="log", xlabel="tolerance", ylabel="bits")
    drawing.savefig(path)


if __name__ == "__main__":
    sys.exit(main(__doc__, {"sklearn": "scikit-learn"}, measure, block, draw))
