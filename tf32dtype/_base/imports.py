"""Actions that run once the program imports a module; nothing here imports it."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

Action = Callable[[ModuleType], None]


class _Finder:
    """Run actions after modules that the other finders find have been executed."""

    def __init__(self) -> None:
        self._actions: dict[str, Action] = {}

    def add(self, name: str, action: Action) -> None:
        self._actions[name] = action
        self._install()

    def _install(self) -> None:
        if self._actions and self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def act(self, module: ModuleType) -> None:
        action = self._actions.pop(module.__name__, None)
        if not self._actions:
            with suppress(ValueError):  # another thread has removed it
                sys.meta_path.remove(self)
            self._install()  # another thread may have added an action meanwhile
        if action is not None:
            action(module)

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if name not in self._actions:
            return None
        others = [
            finder
            for finder in sys.meta_path
            if finder is not self and hasattr(finder, "find_spec")
        ]
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_act(module: ModuleType) -> None:
                execute(module)
                self.act(module)

            spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec


_finder = _Finder()


def when_imported(name: str, action: Action) -> None:
    """Call a function with a module: now if it is imported, else when it is."""
    _finder.add(name, action)
    if sys.modules.get(name) is not None:
        # Another thread may be importing the module: this waits for its end.
        _finder.act(import_module(name))
