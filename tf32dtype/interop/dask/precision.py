"""Set the precision of matrix products in all workers of a cluster."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any, Self, Unpack

from ..._base.options import refuse_unknown, shows
from ..._base.requirements import need
from ..._base.wording import brief
from ..._matmul.precisions import Options, PrecisionName, Settings
from ..._programs.context import (
    process_settings,
    resolve_settings,
    set_matmul_precision,
)
from ..._programs.numpy_patch import lock

need("td.interop.dask.matmul_precision", "dask", "distributed")

from distributed import Client, Worker, WorkerPlugin  # noqa: E402


class WorkersPrecision:
    """A precision that workers use until `close`; returned by `matmul_precision`.

    You can also use it in a ``with`` statement, which calls `close` at its end.

    See Also
    --------
    matmul_precision : Set a precision in all workers, with an example.
    """

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings
        self._name = f"tf32dtype-precision-{uuid.uuid4().hex}"
        self._is_open = True
        try:
            client.register_plugin(_Plugin(self._name, settings), self._name)
        except BaseException:
            self.close()  # some workers may have the plugin already
            raise

    def close(self) -> None:
        """Restore the previous precision of each worker; a second call does nothing."""
        if self._is_open:
            self._is_open = False
            with suppress(Exception):  # workers may join or leave at this moment
                self._client.unregister_worker_plugin(self._name)
            self._client.run(_close, self._name, on_error="ignore")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "open" if self._is_open else "closed"
        return f"<WorkersPrecision({self._settings.precision!r}), {state}>"


@shows(Options, Settings)
def matmul_precision(
    client: Client, precision: PrecisionName | None = None, **options: Unpack[Options]
) -> WorkersPrecision:
    """Set the precision of NumPy's matrix products in all workers of a cluster.

    The precision is in force from this call until the ``with`` statement ends or
    `close` is called. Workers that join later use it too. At the end, each worker gets
    its previous precision again.

    Parameters
    ----------
    client : distributed.Client
        The client of a cluster whose workers have this package.
    precision : str or None
        As in `tf32dtype.matmul_precision`. None: NumPy's own precision.
    rounding, scale, special_values, device, instruction
        As in `tf32dtype.matmul_precision`.
    float64, complex64, blas, dots, lapack, min_size, plan
        As in `tf32dtype.matmul_precision`; `plan` is a path on the workers' machines.

    Returns
    -------
    WorkersPrecision
        A context manager with the method `close`. If several are open, the one that was
        opened last is in force. You can close them in any order.

    Raises
    ------
    ValueError, TypeError
        As for `tf32dtype.matmul_precision`, and for an asynchronous client. Workers are
        unchanged then.

    See Also
    --------
    matmul : Multiply matrices with bits that do not depend on chunks.
    tf32dtype.matmul_precision : Set the precision in a scope of this process.

    Notes
    -----
    Tasks run in threads without a scope. Therefore this function sets the precision of
    each worker process, as `tf32dtype.set_matmul_precision` does. If a task opens a
    scope itself, that scope is in force in the task. The precision applies to the
    matrix products of chunks. dask adds the products along k in float32, in an order of
    its own.

    Examples
    --------
    >>> import dask.array as da, tf32dtype as td
    >>> from distributed import Client
    >>> a = da.ones((1000, 1000), dtype="f4", chunks=500)
    >>> with Client(n_workers=2) as client:  # doctest: +SKIP
    ...     with td.interop.dask.matmul_precision(client, "bf16x9"):
    ...         y = (a @ a).compute()
    """
    refuse_unknown("matmul_precision", options, Options)
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client; got {brief(client)}")
    if client.asynchronous:
        raise ValueError(
            "client must be synchronous; got an asynchronous client. Make a Client"
            " without asynchronous=True"
        )
    settings = Settings(precision, **options)
    resolve_settings(settings)
    return WorkersPrecision(client, settings)


class _Plugin(WorkerPlugin):
    """A plugin that sets the precision of a worker, and restores it at the end."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self._settings = settings

    def setup(self, worker: Worker) -> None:
        _stack.push(self.name, worker.address, self._settings)

    def teardown(self, worker: Worker) -> None:
        _stack.leave(self.name, worker.address)


def _close(name: str) -> None:
    _stack.close(name)


class _Stack:
    """A stack of the precisions of this process, with the one in force last.

    Several workers may share a process.
    """

    def __init__(self) -> None:
        self._own: Settings | None = None
        self._open: dict[str, tuple[set[str], Settings]] = {}
        #: the closed precisions: a worker that joins may be told of the end first
        self._closed: set[str] = set()

    def push(self, name: str, worker: str, settings: Settings) -> None:
        with lock:
            if name in self._closed:
                return
            if not self._open:
                self._own = process_settings()
            workers, _ = self._open.setdefault(name, (set(), settings))
            workers.add(worker)
            self._apply()

    def leave(self, name: str, worker: str) -> None:
        """Remove a worker that ends, and the precision if no worker has it."""
        with lock:
            workers, _ = self._open.get(name, (set(), None))
            workers.discard(worker)
            if not workers:
                self._remove(name)

    def close(self, name: str) -> None:
        with lock:
            self._closed.add(name)
            self._remove(name)

    def _remove(self, name: str) -> None:
        if self._open.pop(name, None) is not None:
            self._apply()

    def _apply(self) -> None:
        open_ones = [settings for _, settings in self._open.values()]
        settings: Any = open_ones[-1] if open_ones else self._own or Settings(None)
        set_matmul_precision(**settings._asdict())


_stack = _Stack()
