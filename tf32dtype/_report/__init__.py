"""What a program would lose in other precisions, and where: `tf32dtype report`.

`collect.py` watches the products, `places.py` says what it hands over; `figures.py`
measures the samples, `advice.py` judges; `table.py`, `json_report.py` and `html.py`
show it all, and `report.py` holds it together.
"""
