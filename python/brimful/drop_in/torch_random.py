"""States of random number generators at one moment: taken, replayed, and written as text.

What draws an order on torch's path may be any of them: torch's global generator, those that a
loader or its samplers were given, and (in users' samplers and datasets) Python's and numpy's.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import random
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from brimful._core import StateError

_MOST_BYTES = 1 << 20  # of a text of snapshots, unpacked; one state of a generator takes 10 KB


@dataclass(frozen=True)
class RandomSnapshot:
    """States of generators.

    Attributes:
        cpu: of torch's global generator of the CPU.
        named: of generators with names.
        python, numpy: of the global ones; None where nothing is known to draw from them.
    """

    cpu: torch.Tensor
    named: dict[str, torch.Tensor]
    python: tuple[Any, ...] | None
    numpy: tuple[Any, ...] | None

    @staticmethod
    def take(generators: Mapping[str, torch.Generator], *, everything: bool) -> RandomSnapshot:
        """The states now; with `everything` those of Python and numpy too."""
        return RandomSnapshot(
            cpu=torch.get_rng_state(),
            named={name: one.get_state() for name, one in generators.items()},
            python=random.getstate() if everything else None,
            numpy=tuple(np.random.get_state()) if everything else None,
        )

    def is_now(self) -> bool:
        """Whether torch's global generator stands where it stood."""
        return torch.equal(self.cpu, torch.get_rng_state())

    @contextlib.contextmanager
    def replayed(self, generators: Mapping[str, torch.Generator]) -> Iterator[None]:
        """Draws come from these states inside. Behind it the global generators are what they were:
        only the named ones have moved on.
        """
        before = RandomSnapshot.take({}, everything=self.python is not None)
        self.put_back(generators)
        self._put_back_globals()
        try:
            yield
        finally:
            before._put_back_globals()

    def put_back(self, generators: Mapping[str, torch.Generator]) -> None:
        """Sets the named generators."""
        for name, one in generators.items():
            if name in self.named:
                one.set_state(self.named[name])

    def _put_back_globals(self) -> None:
        torch.set_rng_state(self.cpu)
        if self.python is not None:
            random.setstate(self.python)
        if self.numpy is not None:
            np.random.set_state(self.numpy)


def pack(*snapshots: RandomSnapshot | None) -> str:
    """Snapshots as text, fit for JSON: up to 4 KB a generator, less for one that moved little
    between two of them.
    """
    states: list[bytes] = []

    def place_of(state: torch.Tensor) -> int:
        states.append(state.numpy().tobytes())
        return len(states[-1])

    plain = [
        snapshot
        and {
            "cpu": place_of(snapshot.cpu),
            "named": {name: place_of(state) for name, state in snapshot.named.items()},
            "python": snapshot.python,
            "numpy": snapshot.numpy and list(map(_listed, snapshot.numpy)),
        }
        for snapshot in snapshots
    ]
    head = json.dumps(plain).encode()
    return base64.b64encode(zlib.compress(b"\n".join((head, b"".join(states))), 1)).decode()


def unpack(text: str) -> list[RandomSnapshot | None]:
    """What `pack` was given. Throws StateError for what the global generators would not take; the
    named ones are asked by `check_fits`.
    """
    try:
        raw = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), _MOST_BYTES)
        head, _, states = raw.partition(b"\n")
        stream = io.BytesIO(states)
        return [None if plain is None else _snapshot(plain, stream) for plain in json.loads(head)]
    except (zlib.error, ValueError, TypeError, RuntimeError, LookupError, OverflowError,
            AttributeError) as error:  # fmt: skip
        raise _damaged(error) from None


def check_fits(snapshot: RandomSnapshot, generators: Mapping[str, torch.Generator]) -> None:
    """Throws StateError where a named generator would not take its state."""
    try:
        for name, one in generators.items():
            if name in snapshot.named:
                torch.Generator(one.device).set_state(snapshot.named[name])
    except (RuntimeError, TypeError) as error:
        raise _damaged(error) from None


def _damaged(error: Exception) -> StateError:
    return StateError(
        f"the state's random numbers are damaged ({error}); give a state as state_dict() returned "
        f"it"
    )


def _snapshot(plain: dict[str, Any], states: io.BytesIO) -> RandomSnapshot:
    """Global states are checked by giving them to generators of no use."""

    def tensor(size: int) -> torch.Tensor:
        return torch.frombuffer(bytearray(states.read(size)), dtype=torch.uint8)

    python, numpy = plain["python"], plain["numpy"]
    snapshot = RandomSnapshot(
        cpu=tensor(plain["cpu"]),
        named={name: tensor(size) for name, size in plain["named"].items()},
        python=python and tuple(tuple(p) if isinstance(p, list) else p for p in python),
        numpy=numpy and tuple(np.array(n, np.uint32) if isinstance(n, list) else n for n in numpy),
    )
    torch.Generator().set_state(snapshot.cpu)
    if snapshot.python is not None:
        random.Random().setstate(snapshot.python)
    if snapshot.numpy is not None:
        np.random.RandomState().set_state(snapshot.numpy)
    return snapshot


def _listed(item: Any) -> Any:
    return item.tolist() if isinstance(item, np.ndarray) else item
