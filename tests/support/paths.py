"""Folders of a checkout."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
BENCHMARKS = ROOT / "benchmarks"
#: The folders in which the programs of benchmarks/cuda look for modules.
GPU_BENCHMARKS = BENCHMARKS / "cuda", BENCHMARKS / "support"
