"""The losses of a program in other precisions, by call site: `tf32dtype report`.

`collect.py` watches matrix multiplications and returns the classes of `call_sites.py`.
`figures.py` measures the samples; `verdict.py` and `advice.py` judge them. `table.py`,
`json_report.py` and `html.py` show the result, and `report.py` holds it together.
"""
