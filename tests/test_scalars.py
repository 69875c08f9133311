"""Figures for loggers: flat names and numbers, shown with TensorBoard."""

from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

import brimful as bf
from brimful.profiling.scalars import scalars
from truth import mixed


def loader_of() -> bf.DataLoader:
    corpus = mixed({"web": [5, 9, 3] * 20, "code": [7, 4] * 20})
    return bf.DataLoader(corpus, seq_len=16, batch_size=2, num_workers=2)


def test_nested_figures_are_flat_and_what_is_no_number_is_left_out():
    figures = {"a": 1, "b": {"c": 2.5, "d": None}, "e": ({"f": 3}, 4), "g": "text", "h": True}
    assert scalars(figures) == {"a": 1, "b/c": 2.5, "e/0/f": 3, "e/1": 4, "h": True}
    assert scalars(figures, "x/").keys() == {"x/a", "x/b/c", "x/e/0/f", "x/e/1", "x/h"}
    assert scalars({}) == {}


def test_every_kind_of_figures_can_be_logged():
    loader = loader_of()
    with bf.profile(loader) as p:
        for _ in p:
            loader.log(loss=1.5)
    stats = loader.stats()
    flat = scalars(stats.as_dict(), "data/")
    assert flat["data/tokens"] == stats.tokens
    assert flat["data/exposure/web/tokens"] == stats.exposure["web"]["tokens"]
    assert flat["data/threads/1/fill"] == stats.threads[1].fill
    assert not any("starvation" in name for name in flat), "not measured without a device"
    assert scalars(p.stats().as_dict())["batches"] == stats.batches
    assert scalars(loader.timeline[-1].as_dict())["logged/loss"] == 1.5
    torchs = bf.DataLoader(list(range(4)))
    list(torchs)
    assert scalars(torchs.stats().as_dict())["batches"] == 4


def test_tensorboard_shows_what_stats_say(tmp_path: Path):
    loader = loader_of()
    wanted = []
    with SummaryWriter(tmp_path) as writer:
        for batch in loader:
            for name, value in scalars(loader.stats().as_dict(), "data/").items():
                writer.add_scalar(name, value, batch.step)
            wanted.append((batch.step, loader.stats().tokens))
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("data/tokens")] == wanted
    assert "data/exposure/code/tokens" in events.Tags()["scalars"]
