"""A checkpointer in the form of torchtitan's, and the forms in which its loaders keep their states.

It holds a dict of Stateful objects and hands it to torch.distributed.checkpoint as it is, a folder
a step. Its own loader puts the state of each data-parallel rank under a key of its own.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp

import brimful as bf


@dataclasses.dataclass
class TrainState:
    """The number of steps that were taken."""

    step: int = 0

    def state_dict(self) -> dict[str, Any]:
        return {"step": torch.tensor(self.step, dtype=torch.int32)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.step = int(state["step"])


@dataclasses.dataclass
class PerRank:
    """A loader whose state lies under its data-parallel rank, beside the number of ranks."""

    loader: bf.DataLoader

    def state_dict(self) -> dict[str, Any]:
        config = self.loader.config
        state = self.loader.state_dict()
        return {f"dp_rank_{config.rank}": state, "world_size": config.world_size}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        config = self.loader.config
        assert state["world_size"] == config.world_size
        self.loader.load_state_dict(state[f"dp_rank_{config.rank}"])


class Checkpointer:
    """Saves a dict of states under the numbers of steps, and loads the last complete one."""

    def __init__(self, folder: Path, states: dict[str, Any]) -> None:
        self._folder, self._states = folder, states

    def save(self, step: int) -> None:
        dcp.save(self._states, checkpoint_id=self._folder / f"step-{step}")

    def load(self) -> int:
        """The step of the checkpoint, or 0 where there is none; torch writes .metadata at last."""
        complete = (path.parent.name for path in self._folder.glob("step-*/.metadata"))
        step = max((int(name.removeprefix("step-")) for name in complete), default=0)
        if step:
            dcp.load(self._states, checkpoint_id=self._folder / f"step-{step}")
        return step
