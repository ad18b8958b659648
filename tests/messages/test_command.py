"""Messages of the commands, which are one line on standard error."""

import io
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import tf32dtype as td
from tf32dtype._cli.main import main

from .shape import faults

WORDS = {
    "compare.target": ["compare", "a.npy", "--target-db", "nan"],
    "compare.precision": ["compare", "a.npy", "--precision", "bf16"],
    "compare.device": ["compare", "a.npy", "--device", "H100"],
    "compare.both": ["compare", "a.npy", "a.npy", "--target-db=1", "--device=H100"],
    "compare.formats": ["compare", "a.npy", "--formats", ","],
    "compare.precision_of_formats": ["compare", "a.npy", "--formats", "bf16x9"],
    "compare.no_precision": ["compare", "a.npy", "a.npy", "--precision", ","],
    "compare.unknown_format": ["compare", "a.npy", "--formats", "bf17"],
    "compare.unknown_precision": ["compare", "a.npy", "a.npy", "--precision=bf17"],
    "compare.shape": ["compare", "stack.npy", "a.npy"],
    "compare.columns": ["compare", "a.npy", "row.npy"],
    "compare.unit": [*"compare a.npy a.npy --device V100 --formats tf32".split()],
    "compare.missing": ["compare", "gone.npy"],
    "compare.near": ["compare", "a"],
    "compare.name": ["compare", "a.npy:w"],
    "compare.several": ["compare", "b.safetensors"],
    "compare.no_such_tensor": ["compare", "b.safetensors:layer.wait"],
    "compare.raw": ["compare", "raw.npy"],
    "compare.complex": ["compare", "complex.npy"],
    "compare.text": ["compare", "text.npy"],
    "compare.empty": ["compare", "empty.npy"],
    "compare.nan": ["compare", "nan.npy"],
    "compare.folder": ["compare", "."],
    "compare.zero_bytes": ["compare", "zero"],
    "diff.ulps": ["diff", "a.npy", "a.npy", "--ulps", "-1"],
    "diff.db": ["diff", "a.npy", "a.npy", "--db", "nan"],
    "diff.missing": ["diff", "a.npy", "gone.npy"],
    "diff.name": ["diff", "a.npy:w", "a.npy"],
    "diff.no_such_tensor": ["diff", "b.safetensors:layer.wait", "a.npy"],
    "diff.include": ["diff", "b.safetensors", "b.safetensors", "--include", "("],
    "diff.nothing": ["diff", "b.safetensors", "b.safetensors", "--include", "gone"],
    "diff.page": ["diff", "a.npy", "a.npy", "--html", "gone/x.html"],
    "diff.zero_bytes": ["diff", "zero", "a.npy"],
    "convert.exists": ["convert", "b.safetensors", "b2.safetensors", "--to=bf16"],
    "convert.input": ["convert", "b.safetensors", "b.safetensors", "--to=bf16"],
    "convert.work": ["convert", "b.safetensors", "w.safetensors", "--to=bf16"],
    "convert.name": ["convert", "b.safetensors", "o.bin", "--to", "bf16"],
    "convert.index": [
        *("convert", "b.safetensors", "m.safetensors.index.json", "--to", "bf16"),
    ],
    **{
        f"convert.{name}": ["convert", "b.safetensors", "o.safetensors", *words.split()]
        for name, words in {
            "scheme": "--to mxfp8 --scheme x",
            "scheme_of": "--to bf16 --scheme vllm",
            "scheme_scale": "--to nvfp4 --scheme mlx",
            "block_size": "--to nvfp4 --block-size 32 --scheme modelopt",
            "tile": "--to fp8_e4m3 --tile 4",
            "tile_of": "--to mxfp8 --tile 1x128",
            "scale": "--to bf16 --scale amax",
            "rounding": "--to fp8_e4m3 --scheme vllm --rounding to_odd",
            "overflow": "--to float64 --overflow saturate",
            "include": "--to bf16 --include (",
            "nothing": "--to bf16 --include gone",
            "seed": "--to bf16 --seed 1",
            "negative_seed": "--to bf16 --rounding stochastic --seed -1",
        }.items()
    },
    "inspect.number": ["inspect", "pi"],
    "inspect.file": ["inspect", "gone.npy"],
    "inspect.tensor_of_file": ["inspect", "gone.npy:w"],
    "inspect.long": ["inspect", "9" * 5000],
    "inspect.zero": ["inspect", "1/0"],
    "inspect.exponent": ["inspect", "1e99999999"],
    "inspect.code": ["inspect", "0x3F80"],
    "inspect.bits": ["inspect", "0x1FF", "--format", "fp8_e4m3"],
    "inspect.two": ["inspect", "a.npy", "a.npy"],
    "inspect.tensor": ["inspect", "1", "--tensor", "a"],
    "inspect.no_such_tensor": ["inspect", "b.safetensors", "--tensor", "gone"],
    "inspect.file_option": ["inspect", "a.npy", "--format", "bf16"],
    "inspect.mixed": ["inspect", "1", "--format", "mxfp4,bf16"],
    "inspect.all": ["inspect", "1", "2", "--all"],
    "inspect.all_code": ["inspect", "0x" + 17 * "F", "--all"],
    "inspect.all_codes": ["inspect", "0x1", "--all", "--format", "fp6"],
    "inspect.all_blocks": ["inspect", "1", "--format", "mxfp4", "--all"],
    "inspect.scale": ["inspect", "1", "--scale", "mse"],
    "inspect.rule": ["inspect", "1", "--format", "nvfp4", "--scale", "x"],
    "inspect.block_size": ["inspect", "1", "--format", "mxfp4", "--block-size", "8"],
    "inspect.block": ["inspect", *17 * ["1"], "--format", "nvfp4"],
    "inspect.stdin": ["inspect", "-"],
    "sizes.none": ["sizes"],
    "sizes.count": ["sizes", "7x"],
    "sizes.twice": ["sizes", "1", "--parameters", "1"],
    "sizes.block_size": ["sizes", "1", "--block-size", "8"],
    "values.grid": ["values", "bf16", "--grid"],
    "values.integers": ["values", "mxint8"],
    "main.command": ["frmats"],
    "main.no_near_command": ["x"],
    "convert.choice": ["convert", "a", "b", "--to", "mxfp8", "--block-size", "8"],
    "main.option": ["--no-such-option"],
    "sizes.option": ["sizes", "7B", "--no-such-option"],
    "blas.option": ["blas", "--quiet", "ls"],
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    arrays: dict[str, Callable[[], object]] = {
        "a": lambda: np.ones((3, 3)),
        "row": lambda: np.ones((1, 3)),
        "stack": lambda: np.ones((2, 2, 2)),
        "raw": lambda: np.ones(3, td.bfloat16),
        "complex": lambda: np.ones(2, complex),
        "text": lambda: np.array(["1"]),
        "empty": lambda: np.ones((0, 2)),
        "nan": lambda: np.array([1, np.nan]),
    }
    for name, make in arrays.items():
        np.save(f"{name}.npy", make())
    weights = {"layer.weight": np.ones((32, 32)), "layer.bias": np.ones(3)}
    td.safetensors.save("b.safetensors", weights)
    for name in ("b2.safetensors", "w.safetensors.part", "zero"):
        Path(name).touch()


LISTED = {
    "main.command": "`tf32dtype --help`; got 'frmats'. Did you mean formats",
    "convert.choice": "--block-size must be one of 16, 32, 64 or 128; got 8",
    "convert.scheme_scale": "convert: --scheme mlx cannot store nvfp4: tensor_scale"
    " must be 1; got 0.00037202382\n",
    "main.option": "tf32dtype: unrecognized arguments: --no-such-option; use tf32dtype"
    " --help",
    "blas.option": "tf32dtype blas: unrecognized arguments: --quiet; use tf32dtype blas"
    " --help",
    "compare.unknown_format": "`tf32dtype formats`; got 'bf17'. Did you mean bf16?",
    "compare.unknown_precision": "`tf32dtype run --help` or `tf32dtype sizes 1`; got",
}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", LISTED)
def test_names_of_commands_and_options(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with suppress(SystemExit):
        main(WORDS[name])
    assert LISTED[name] in capsys.readouterr().err


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", WORDS)
def test_messages_have_the_shape(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(WORDS[name])
    except SystemExit as stop:
        code = stop.code
    out, said = capsys.readouterr()
    assert (code, out) == (2, "")
    start, _, message = said.removesuffix("\n").partition(": ")
    assert start.startswith("tf32dtype")
    assert not faults(message), message
