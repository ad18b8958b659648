"""GGUF files that the package gguf writes and this package reads."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("gguf")

LIBRARY = "GGUF files"
#: `write` makes a file of one tensor; its arguments are those of `add_tensor`.
PREPARATION = """
import gguf
from gguf import GGMLQuantizationType as kinds

def write(path, *tensor, **options):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("a", *tensor, **options)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
"""
CALLS = [
    Call(
        "write('a.gguf', a); td.interop.gguf.load('a.gguf')['a']",
        "ValueError",
        instead="write('a.gguf', td.bits(a).view(np.uint8), raw_dtype=kinds.BF16); "
        "td.interop.gguf.load('a.gguf')['a']",
        within=0,
        formats=("bfloat16",),
    ),
    Call(
        "write('a.gguf', a); td.interop.gguf.load('a.gguf')['a']",
        "ValueError",
        instead="write('a.gguf', a.astype(np.float16)); "
        "td.interop.gguf.load('a.gguf')['a'].astype(a.dtype)",
        within=0,
        formats=("float8_e4m3fn",),
    ),
]

test_calls = make_test(CALLS, PREPARATION)
