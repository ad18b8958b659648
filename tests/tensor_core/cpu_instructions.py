"""Compile the dot products of x86-64 CPUs.

They are the instructions themselves, if this CPU has them, and the vendor's pseudocode
in fused multiply-adds of this CPU.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support.compiled import library
from tests.tensor_core.arrays import operand
from tests.tensor_core.cases import Array, Cases
from tf32dtype import _core
from tf32dtype.tensor_core.look_up import find_model

VDPBF16PS = find_model("AVX512_BF16", "vdpbf16ps", "bfloat16", "bfloat16", "float32")
TDPBF16PS = find_model("AMX", "tdpbf16ps", "bfloat16", "bfloat16", "float32")
TDPFP16PS = find_model("AMX", "tdpfp16ps", "float16", "float16", "float32")

#: Computes d = c + a b for a multiple of 16 rows. A word holds two bfloat16 numbers,
#: with the first k in the lower half. The order is word 0 of all rows, then word 1, and
#: so on.
SIGNATURE = """
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
void dots(const uint32_t *a, const uint32_t *b, const float *c, size_t words,
          size_t rows, float *d)
"""

INSTRUCTION = f"""
{SIGNATURE}
{{
    for (size_t i = 0; i < rows; i += 16) {{
        __m512 sum = _mm512_loadu_ps(c + i);
        for (size_t w = 0; w < words; w++) {{
            const __m512i x = _mm512_loadu_si512(a + w * rows + i);
            const __m512i y = _mm512_loadu_si512(b + w * rows + i);
            sum = _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)y);
        }}
        _mm512_storeu_ps(d + i, sum);
    }}
}}
"""

#: Computes row i of a times column i of b, for 16 rows and columns at a time. Not every
#: assembler knows the instructions, which are therefore written as bytes.
TILES = """
#define _DEFAULT_SOURCE /* syscall */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
/* Compilers do not know what memory instructions of tiles take and give. */
static inline void all_is_written(void) {{ __asm__ volatile("" ::: "memory"); }}
{signature}
{{
    const struct {{
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    }} shapes __attribute__((aligned(64))) = {{
        .palette = 1, .row_bytes = {{64, 64, 64}}, .rows = {{16, 16, 16}}
    }};
    uint32_t of_a[16][16];
    float sums[16][16] = {{0}};
    all_is_written();
    _tile_loadconfig(&shapes);
    for (size_t i = 0; i < rows; i += 16) {{
        for (size_t row = 0; row < 16; row++) {{
            sums[row][row] = c[i + row];
        }}
        all_is_written();
        _tile_loadd(0, sums, sizeof *sums);
        for (size_t w = 0; w < words; w += 16) {{
            for (size_t row = 0; row < 16; row++) {{
                for (size_t word = 0; word < 16; word++) {{
                    of_a[row][word] = a[(w + word) * rows + i + row];
                }}
            }}
            all_is_written();
            _tile_loadd(1, of_a, sizeof *of_a);
            _tile_loadd(2, b + w * rows + i, rows * sizeof *b);
            __asm__ volatile(".byte 0xC4, 0xE2, {byte}, 0x5C, 0xC1"); /* 0 += 1 by 2 */
        }}
        _tile_stored(0, sums, sizeof *sums);
        all_is_written();
        for (size_t row = 0; row < 16; row++) {{
            d[i + row] = sums[row][row];
        }}
    }}
    _tile_release();
}}
/* A process of its own tries it: virtual machines may hide it from CPUID. */
int is_here(void)
{{
    enum {{ ASK = 0x1023, TILE_DATA = 18 }}; /* arch_prctl's ARCH_REQ_XCOMP_PERM */
    if (syscall(SYS_arch_prctl, ASK, TILE_DATA)) {{
        return 0;
    }}
    const pid_t child = fork();
    if (child == 0) {{
        static uint32_t zeros[16 * 16];
        static float sums[16];
        signal(SIGILL, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){{0}});
        dots(zeros, zeros, sums, 16, 16, sums);
        _exit(0);
    }}
    int status = 1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {{
    }}
    return status == 0;
}}
"""
#: A byte of the instructions' prefixes.
OF_TILES = {"tdpbf16ps": "0x6A", "tdpfp16ps": "0x6B"}

#: Uses scalars, with denormals as zeros and results flushed to zero, to nearest.
PSEUDOCODE = """
#include <immintrin.h>
#include <stdint.h>
static float part(uint32_t word, int odd)
{{
    const uint32_t bits = odd ? word & 0xFFFF0000 : word << 16;
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128((int)bits)));
}}
static float fma_(uint32_t x, uint32_t y, int odd, float z)
{{
    const __m128 a = _mm_set_ss(part(x, odd)), b = _mm_set_ss(part(y, odd));
    return _mm_cvtss_f32(_mm_fmadd_ss(a, b, _mm_set_ss(z)));
}}
static float add(float x, float y)
{{
    return _mm_cvtss_f32(_mm_add_ss(_mm_set_ss(x), _mm_set_ss(y)));
}}
__attribute__((noinline)) static void rows_of(const uint32_t *a, const uint32_t *b,
    const float *c, unsigned long words, unsigned long rows, float *d)
{{
    for (unsigned long i = 0; i < rows; i++) {{
        float sum = c[i];
        {chains}
        d[i] = sum;
    }}
}}
{signature}
{{
    const unsigned saved = _mm_getcsr();
    _mm_setcsr(0x1F80 | 0x8000 | 0x0040);
    rows_of(a, b, c, words, rows, d);
    _mm_setcsr(saved);
}}
"""

CHAINS = {
    "vdpbf16ps": """
        for (unsigned long w = 0; w < words; w++) {
            const uint32_t x = a[w * rows + i], y = b[w * rows + i];
            sum = fma_(x, y, 0, fma_(x, y, 1, sum));
        }""",
    "tdpbf16ps": """
        for (unsigned long w = 0; w < words;) {
            float even = 0, odd = 0;
            for (unsigned long end = w + 16; w < end; w++) {
                const uint32_t x = a[w * rows + i], y = b[w * rows + i];
                even = fma_(x, y, 0, even);
                odd = fma_(x, y, 1, odd);
            }
            sum = add(sum, add(even, odd));
        }""",
}


def pairs(model: Any, x: Array, rows: int) -> Array:
    """Return pairs of k in a word each, of shape (words, rows). The numbers are in the
    model's format, from float32's bits, with zeros up to whole instructions."""
    k = x.shape[1]
    full = np.zeros((rows, k + -k % model.instruction_depth), "<u2")
    full[: len(x), :k] = operand(model.a, x).view(np.uint16)
    return np.ascontiguousarray(full.view("<u4").T)


Compute = Callable[[Cases], Array]


def computing(made: ctypes.CDLL, model: Any) -> Compute:
    """Return compiled C as a function that returns the bits of its results."""

    def compute(cases: Cases) -> Array:
        rows = -(-len(cases.c) // 16) * 16
        a, b = pairs(model, cases.a, rows), pairs(model, cases.b, rows)
        c, d = np.zeros(rows, np.uint32), np.empty(rows, np.uint32)
        c[: len(cases.c)] = cases.c
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (a, b, c, d)]
        sizes = ctypes.c_size_t(len(a)), ctypes.c_size_t(rows)
        made.dots(*pointers[:3], *sizes, pointers[3])
        return d[: len(cases.c)]

    return compute


def instruction(model: Any) -> Compute:
    if model.device == "AMX" and sys.platform != "linux":
        pytest.skip("tiles by Linux alone")
    if model.device == "AMX":
        byte = OF_TILES[model.instruction]
        text = TILES.format(signature=SIGNATURE, byte=byte)
        made = library(text, "-mamx-tile")
        if not made.is_here():
            pytest.skip(f"this CPU, or its system, has no {model.instruction}")
        return computing(made, model)
    if "x86-64-v4-bf16" not in _core.available_isas():
        pytest.skip("this CPU, or this build, has no AVX512-BF16")
    return computing(library(INSTRUCTION, "-mavx512bf16"), model)


def pseudocode(model: Any) -> Compute:
    if "x86-64-v3" not in _core.available_isas():
        pytest.skip("this CPU, or this build, has no FMA")
    chains = CHAINS[model.instruction]
    made = library(PSEUDOCODE.format(chains=chains, signature=SIGNATURE), "-mfma")
    return computing(made, model)
