"""Plans: made once per description and number of threads, shared by threads."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref
from functools import lru_cache
from typing import NamedTuple

from . import _c


class Description(NamedTuple):
    """What to compute; the fields are gatefold_desc's, and with equal fields one plan serves."""

    op: str
    dtype: str
    layout: str | None
    block: int
    activation: str | None
    limit: float
    alpha: float
    beta: float
    hidden_size: int
    intermediate_size: int
    ld_x: int
    ld_gate: int
    ld_up: int
    ld_down: int
    ld_out: int
    biases: int
    implementation: str | None
    batch_invariant: bool

    def c_desc(self) -> _c.Desc:
        """The description as the library reads it."""
        return _c.Desc(
            struct_size=ctypes.sizeof(_c.Desc),
            op=_c.OPS[self.op],
            dtype=_c.DTYPES[self.dtype],
            device=_c.CPU,
            layout=_c.LAYOUTS[self.layout] if self.layout else 0,
            block=self.block,
            activation=_c.ACTIVATIONS[self.activation] if self.activation else 0,
            limit=self.limit,
            alpha=self.alpha,
            beta=self.beta,
            hidden_size=self.hidden_size,
            intermediate_size=self.intermediate_size,
            ld_x=self.ld_x,
            ld_gate=self.ld_gate,
            ld_up=self.ld_up,
            ld_down=self.ld_down,
            ld_out=self.ld_out,
            implementation=self.implementation.encode() if self.implementation else None,
            biases=self.biases,
            flags=_c.FLAG_BATCH_INVARIANT if self.batch_invariant else 0,
        )


class Plan:
    """An immutable choice of how to compute a description; destroyed with the last reference."""

    def __init__(self, description: Description) -> None:
        self._plan = ctypes.c_void_p()
        _c.check(_c.library.gatefold_plan_create(byref(description.c_desc()), byref(self._plan)))

    def __del__(self, destroy=_c.library.gatefold_plan_destroy) -> None:
        if self._plan:
            destroy(self._plan)

    def workspace_size(self, tokens: int) -> int:
        """Bytes that a run of up to `tokens` tokens needs."""
        size = ctypes.c_size_t()
        _c.check(_c.library.gatefold_plan_workspace_size(self._plan, tokens, byref(size)))
        return size.value

    def run(self, args: _c.Args) -> None:
        """Computes, without Python's lock."""
        _c.check(_c.library.gatefold_run(self._plan, byref(args)))

    def implementation(self, tokens: int) -> str:
        """The name of the implementation that a run of `tokens` tokens takes."""
        return _c.library.gatefold_plan_implementation(self._plan, tokens).decode()


@lru_cache(maxsize=1024)
def _cached(description: Description, threads: int, forced: str | None) -> Plan:
    del threads, forced  # what the library reads beside the description when it makes a plan
    return Plan(description)


def plan_for(description: Description) -> Plan:
    """The plan of a description, for as many threads as OpenMP gives now and the GATEFOLD_IMPL that is set now."""
    return _cached(description, _c.cpu_threads(), os.environ.get("GATEFOLD_IMPL"))
