"""Fixtures of the tests of other libraries."""

import pytest


@pytest.fixture
def places(monkeypatch):
    """Gather the places of products: the layer, roles, and whether it is backward."""
    from tf32dtype.interop.torch.hook.mode import ProductMode

    found, original = [], ProductMode.multiply

    def multiply(self, a, b, place, recipe):
        found.append(tuple(place))
        return original(self, a, b, place, recipe)

    monkeypatch.setattr(ProductMode, "multiply", multiply)
    return found
