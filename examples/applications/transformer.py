"""Find the precision that each product of a transformer needs, and test plans.

    python examples/applications/transformer.py [--quick] [--json FILE] [--plot FILE]

It needs `pip install scikit-learn` for the images, and matplotlib to draw. It takes
half a minute; with --quick, fewer images and precisions, some seconds. The model and
its weights are those of digits_transformer.py.

First, the whole forward pass runs in each precision. The table has the error of the
logits over float64, and the share of unseen images that are classified correctly. Then
`td.report` of training images names, for each line, the precision that is enough at
several targets, and the pass runs by this plan. Last, each product in turn runs in
fp8_e4m3 with all others in f32. This shows its effect on the logits, which the report
does not measure. The last plans lower first the products with the most work per error.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import digits_transformer as model
import numpy as np
from scripts import COLORS, Report, figure, main, markdown, measured_on, say

import tf32dtype as td

#: The bits of a multiplication in each precision: an operand's bits times the products
#: of components, as the report counts them. f32 counts by its time, in which the
#: paper's GB200 computes 28 products of bf16 (section 7).
BITS = {
    "f32": 28 * 16, "bf16x9": 144, "bf16x6": 96, "bf16x3": 48, "tf32": 19, "bf16": 16,
    "f16": 16, "fp8_e4m3": 8, "fp8_e5m2": 8,
}  # fmt: skip
QUICK = ("f32", "bf16x9", "tf32", "bf16", "fp8_e4m3", "fp8_e5m2")
ALONE = "fp8_e4m3"  # the precision in which one product at a time runs
TARGETS, QUICK_TARGETS = (20.0, 25.0, 30.0, 40.0, 60.0), (25.0, 40.0)
WATCHED, QUICK_WATCHED = 64, 16  # training images of which a report is made

Plan = Mapping[str, str]


def logits_by(weights: model.Weights, patches: model.Array, plan: Plan) -> model.Array:
    """Return the logits with each product in its precision of a plan."""

    def at(name: str) -> AbstractContextManager[Any]:
        return td.matmul_precision(plan[name])

    return model.forward(weights, patches, at)


def watch(
    weights: model.Weights, patches: model.Array, target: float, names: tuple[str, ...]
) -> dict[str, Report]:
    """Return the report's figures and advice for each product, by name, in order."""
    with td.report(precision=names, target_db=target, exact=True, by="line") as report:
        model.forward(weights, patches)
    found = {}
    for site, figures, verdict in report.call_sites:
        if site.user is None or site.user.function != "forward":
            raise RuntimeError(f"a product at {site.user} is none of the model's")
        text = linecache.getline(site.user.file, site.user.line)
        found[site.user.line, text.partition("=")[0].strip()] = {
            "text": text.strip(),
            "multiply_adds": site.multiply_adds,
            "verdict": verdict.text,
            "precision": verdict.way,
            "snr": {
                x["precision"]: x["snr_db"] for x in figures.record()["precisions"]
            },
        }
    return {name: one for (_, name), one in sorted(found.items())}


def distance(logits: model.Array, exact: model.Array) -> float:
    """Return the relative error of logits in the Frobenius norm."""
    return float(np.linalg.norm(logits - exact) / np.linalg.norm(exact))


def judged(logits: model.Array, exact: model.Array, images: model.Images) -> Report:
    """Compare logits with float64's, and their classes with the images' digits."""
    return {
        "error": distance(logits, exact),
        "greatest": float(np.abs(logits - exact).max()),
        "right": model.right(logits, images),
        "as float64": float(np.mean(logits.argmax(1) == exact.argmax(1))),
    }


def measure(quick: bool) -> Report:
    """Run all precisions and plans and return the results for JSON."""
    with np.load(model.WEIGHTS) as file:
        weights = dict(file)
    train, test = model.load()
    names = QUICK if quick else tuple(BITS)
    watched = train.patches[: QUICK_WATCHED if quick else WATCHED]
    wide = {name: w.astype(np.float64) for name, w in weights.items()}
    exact = model.forward(wide, test.patches.astype(np.float64))
    exact_watched = model.forward(wide, watched.astype(np.float64))
    runs, plans = {}, {}
    lines: dict[str, Report] = {}
    for target in QUICK_TARGETS if quick else TARGETS:
        say(f"report, {target:g} dB")
        lines = watch(weights, watched, target, names)
        plans[f"{target:g}"] = plan_of(lines)
    for name in names:
        say(name)
        logits = logits_by(weights, test.patches, dict.fromkeys(lines, name))
        runs[name] = judged(logits, exact, test) | {"bits": float(BITS[name])}
    for plan in plans.values():
        logits = logits_by(weights, test.patches, plan["products"])
        plan |= judged(logits, exact, test)
        plan["bits"] = average_bits(lines, plan["products"])
    for line, one in lines.items():
        del one["verdict"], one["precision"]  # they are only of the last target
        plan = dict.fromkeys(lines, "f32") | {line: ALONE}
        one["alone"] = distance(logits_by(weights, watched, plan), exact_watched)
    steps = []
    low: list[str] = []
    for line in sorted(lines, key=lambda x: worth(lines[x]), reverse=True):
        low.append(line)
        plan = dict.fromkeys(lines, "bf16") | dict.fromkeys(low, ALONE)
        logits = logits_by(weights, test.patches, plan)
        bits = average_bits(lines, plan)
        steps.append({"low": list(low), "bits": bits} | judged(logits, exact, test))
    return {
        "images": len(test.digits),
        "watched": len(watched),
        "right": model.right(exact, test),
        "precisions": runs,
        "lines": lines,
        "plans": plans,
        "steps": steps,
    }


def worth(line: Report) -> float:
    """Return the work over the squared error: squared errors of products add."""
    return float(line["multiply_adds"] / line["alone"] ** 2)


def average_bits(lines: dict[str, Report], plan: Plan) -> float:
    """Return the mean bits per multiplication of a plan."""
    work = {name: one["multiply_adds"] for name, one in lines.items()}
    bits = sum(BITS[plan[name]] * w for name, w in work.items())
    return float(bits / sum(work.values()))


def plan_of(lines: dict[str, Report]) -> Report:
    """Return the precisions that a report advises, and its verdicts."""
    return {
        "products": {name: one["precision"] or "f32" for name, one in lines.items()},
        "verdicts": {name: one["verdict"] for name, one in lines.items()},
    }


def block(report: Report) -> str:
    """Return the Markdown tables."""
    names = [name for name in report["precisions"] if name != "bf16x6"]
    total = sum(one["multiply_adds"] for one in report["lines"].values())
    plans = report["plans"]
    lines = [
        (
            f"`{name}`",
            f"{one['multiply_adds'] / total:.1%}",
            *(f"{one['snr'][precision]:.0f}" for precision in names),
            *(plan["products"][name] for plan in plans.values()),
            f"{one['alone']:.1e}",
        )
        for name, one in report["lines"].items()
    ]
    runs = [(f"all in {name}", run) for name, run in report["precisions"].items()]
    runs += [
        (f"plan of the report, {target} dB", plan) for target, plan in plans.items()
    ]
    runs += [
        (f"bf16; in {ALONE}: {', '.join(step['low'])}", step)
        for step in report["steps"][1:6:2]
    ]
    alone = [one["alone"] for one in report["lines"].values()]
    squares = float(np.linalg.norm(alone))
    return "\n".join([
        measured_on(report),
        f"In float64 the model classifies {report['right']:.1%} of"
        f" {report['images']} unseen images correctly. The error of the logits is"
        " relative (Frobenius norm), lower is better. \"Bits\" is the mean over the"
        " multiplications.",
        "",
        markdown(
            ("precision", "bits", "error of logits", "largest error", "correct",
             "same as float64"),
            [
                (what, f"{run['bits']:.3g}", f"{run['error']:.1e}",
                 f"{run['greatest']:.1e}", f"{run['right']:.1%}",
                 f"{run['as float64']:.1%}")
                for what, run in runs
            ],
        ),
        "",
        f"From the report of {report['watched']} training images: SNR in dB in each"
        " precision, and the lowest sufficient precision at each target. The last"
        " column is the error of these images' logits if only this product is in"
        f" {ALONE} and the others in f32. The root of the sum of their squares is"
        f" {squares:.1e}.",
        "",
        markdown(
            ("product", "work", *names, *(f"{x} dB" for x in plans), "error"), lines
        ),
    ])  # fmt: skip


COLOR = COLORS | dict(zip(
    ("f16", "fp8_e4m3", "fp8_e5m2"), ("tab:purple", "tab:pink", "tab:olive"),
    strict=True,
))  # fmt: skip


def draw(report: Report, path: Path) -> None:
    """Draw the SNR of every line, and the logits' error over the mean bits."""
    drawing, (left, right) = figure(path, 2, (12, 4.5))
    lines, runs = report["lines"], report["precisions"]
    for name in runs:
        y = [one["snr"][name] for one in lines.values()]
        left.plot(range(len(y)), y, ".-", color=COLOR[name])
    left.set_xticks(range(len(lines)), list(lines), rotation=45, ha="right")
    left.set_ylabel("SNR against float64, dB")
    left.grid(alpha=0.3)
    plans = list(report["plans"].values()), "k*--", "by the report"
    steps = report["steps"], "k.-", f"bf16, more and more in {ALONE}"
    for some, style, label in (plans, steps):
        x, y = ([one[key] for one in some] for key in ("bits", "error"))
        right.loglog(x, y, style, label=label, alpha=0.6)
    for name, run in runs.items():
        right.loglog([run["bits"]], [run["error"]], "o", color=COLOR[name], label=name)
    right.set_xlabel("bits of an average multiplication")
    right.set_ylabel("relative error of the logits")
    right.grid(alpha=0.3)
    handles, labels = right.get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside right center", fontsize="small")
    drawing.savefig(path, dpi=90)


if __name__ == "__main__":
    sys.exit(main(__doc__, {"sklearn": "scikit-learn"}, measure, block, draw))
