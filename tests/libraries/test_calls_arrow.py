"""Arrow's arrays and Parquet files."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("pyarrow")
pytest.importorskip("pandas")

LIBRARY = "Arrow and Parquet"
PREPARATION = """
import pandas as pd, pyarrow as pa, pyarrow.parquet as pq
from tf32dtype.interop.arrow import from_arrow, to_arrow
"""
WRITE = "pq.write_table(pa.table({'v': to_arrow(v)}), 'v.parquet'); "
CALLS = [
    Call("pa.array(v)", "ArrowNotImplementedError", instead="from_arrow(to_arrow(v))"),
    Call(
        "pq.write_table(pa.table({'v': v}), 'v.parquet'); "
        "pq.read_table('v.parquet')['v'].to_numpy()",
        "ArrowNotImplementedError",
        instead=WRITE + "from_arrow(pq.read_table('v.parquet')['v'])",
        within=0,
    ),
    Call(
        "pd.DataFrame({'v': v}).to_parquet('v.parquet'); "
        "pd.read_parquet('v.parquet')['v'].to_numpy()",
        "ArrowNotImplementedError",
        instead=WRITE + "pd.read_parquet('v.parquet')['v'].to_numpy()",
        within=0,
    ),
]

test_calls = make_test(CALLS, PREPARATION)
