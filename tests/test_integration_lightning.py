"""Lightning's trainer over native loaders: the batches of the plain loop, and exact resumes."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import brimful as bf
import tiny_llama
from truth import corpus_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Lightning imports what is deprecated
    import lightning
    from lightning.pytorch.callbacks import GradientAccumulationScheduler, ModelCheckpoint

    from brimful.integrations.lightning import DataModule

# What Lightning says of itself, of its checkpoints' other parts, and of an experiment of its own.
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:`isinstance\(treespec, LeafSpec\)` is deprecated"),
    pytest.mark.filterwarnings("ignore:The dirpath has changed from"),
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty"),
    pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`, callbacks used to"),
    pytest.mark.filterwarnings("ignore:.*`dataloader_iter`"),
]
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Models as small as these only wait for each other's threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


LENGTHS = [int(n) for n in np.random.default_rng(0).integers(5, 60, 60)]
HOW: dict[str, Any] = {"batch_size": 2, "seq_len": 64, "shuffle": True, "num_workers": 1}


class Watcher(lightning.LightningModule):
    """Notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(()))
        self.seen: list[tuple[Any, ...]] = []

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        numbers = (self.current_epoch, batch_idx, batch.epoch, batch.micro_batch, batch.step)
        self.seen.append((*numbers, placed(batch)))
        return self.weight * batch["input_ids"].float().mean()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=1e-6)


class Validated(Watcher):
    """And what it is validated on, but for the sanity check."""

    def __init__(self) -> None:
        super().__init__()
        self.validated: list[list[int]] = []

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        if not self.trainer.sanity_checking:
            if batch_idx == 0:
                self.validated.append([])
            self.validated[-1] += batch.documents.tolist()
        self.log("items", float(batch.num_items))


def trainer(folder: Any = None, **how: Any) -> Any:
    quiet = {
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "accelerator": "cpu",
    }
    if folder is None:
        quiet["enable_checkpointing"] = False
    return lightning.Trainer(default_root_dir=folder, **(quiet | how))


def saving(folder: Path, **when: Any) -> Any:
    return ModelCheckpoint(dirpath=folder, filename="{step}", save_top_k=-1, **when)


def data(**how: Any) -> DataModule:
    return DataModule(corpus_of(LENGTHS), **(HOW | how))


def plain(epochs: int, **how: Any) -> list[tuple[Any, ...]]:
    """What the watcher notes of the loop without a trainer."""
    loader = bf.DataLoader(corpus_of(LENGTHS), **(HOW | how))
    return [
        (epoch, i, epoch, batch.micro_batch, batch.step, placed(batch))
        for epoch in range(epochs)
        for i, batch in enumerate(loader)
    ]


def placed(batch: Any) -> tuple[tuple[int, int], ...]:
    """Documents and places in them of a batch's segments."""
    return tuple(zip(batch.documents.tolist(), batch.starts.tolist(), strict=True))


def test_epochs_of_the_trainer_are_those_of_the_plain_loop() -> None:
    model = Watcher()
    trainer(max_epochs=3).fit(model, datamodule=data())
    assert model.seen == plain(3)


def test_epochs_of_unequal_length_are_whole() -> None:
    how = {"batch_size": 1, "buffer": 2, "seed": 5}
    loader = bf.DataLoader(corpus_of(LENGTHS), **(HOW | how))
    lengths = [len(list(loader)) for _ in range(4)]
    assert lengths[0] < max(lengths)
    assert lengths[0] > min(lengths)
    model = Watcher()
    trainer(max_epochs=4).fit(model, datamodule=data(**how))
    assert model.seen == plain(4, **how)


# Every moment at which Lightning saves, and every way to count what there is to do.
RUNS: dict[str, dict[str, Any]] = {
    "epochs": {"max_epochs": 2, "every": 5},
    "the last batch of an epoch": {"max_epochs": 2, "every": 17},
    "ends of epochs": {"max_epochs": 3},
    "steps": {"max_epochs": -1, "max_steps": 27, "every": 8},
    "steps, the last batch of an epoch": {"max_epochs": -1, "max_steps": 40, "every": 17},
    "steps, ends of epochs": {"max_epochs": -1, "max_steps": 40},
    "steps, a part of each epoch": {"max_steps": 20, "limit_train_batches": 6},
    "steps, validation": {"max_steps": 40, "every": 17, "val": True},
    "steps, validation, ends": {"max_steps": 40, "val": True},
    "accumulation": {"max_epochs": 2, "accumulate_grad_batches": 3, "every": 4},
    "a part of each epoch": {"max_epochs": 3, "limit_train_batches": 6, "every": 3},
    "a part of each epoch, ends": {"max_epochs": 3, "limit_train_batches": 6},
    "validation": {"max_epochs": 2, "every": 5, "val": True},
    "validation, ends": {"max_epochs": 2, "val": True},
    "validation within": {"max_epochs": 2, "val": True, "val_check_interval": 0.5},
    "mixed precision": {"max_epochs": 2, "every": 7, "precision": "bf16-mixed"},
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_goes_on_from_each_of_its_checkpoints(name: str, tmp_path: Path) -> None:
    how = dict(RUNS[name])
    every, val = how.pop("every", None), how.pop("val", False)
    when = {"every_n_epochs": 1} if every is None else {"every_n_train_steps": every}

    def run(folder: Path, checkpoint: Any = None) -> list[tuple[Any, ...]]:
        model = Validated() if val else Watcher()
        module = data(val=corpus_of([9] * 20) if val else None)
        made = trainer(folder, callbacks=[saving(folder, **when)], **how)
        made.fit(model, datamodule=module, ckpt_path=checkpoint, weights_only=True)
        return model.seen

    whole = run(tmp_path / "whole")
    accumulate = how.get("accumulate_grad_batches", 1)
    assert all(entry[0] == entry[2] and entry[3] == entry[1] % accumulate for entry in whole)
    saved = sorted((tmp_path / "whole").iterdir())
    assert len(saved) >= 2
    for path in saved:
        step = int(path.stem.partition("=")[2].partition("-")[0])
        rest = run(tmp_path / path.stem, path)
        assert rest == whole[len(whole) - len(rest) :]
        assert all(entry[4] >= step for entry in rest if accumulate == 1)
        assert whole[len(whole) - len(rest) - 1][4] == whole_steps(whole)[step - 1]


@pytest.mark.parametrize("how", [{"max_epochs": 2}, {"max_epochs": -1, "max_steps": 30}])
def test_a_batch_that_is_not_finished_comes_again(how: dict[str, Any], tmp_path: Path) -> None:
    """An exception, or a signal, makes Lightning save in the middle of a batch."""

    class Saves(lightning.Callback):
        def on_exception(self, trainer: Any, *_: Any) -> None:
            trainer.save_checkpoint(path)

    class Fails(Watcher):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            if batch.step in at:
                at.remove(batch.step)
                raise OSError("away")
            return super().training_step(batch, batch_idx)

    at = {0, 1, 7, 16, 17, 22, 28}
    seen: list[Any] = []
    path = tmp_path / "saved.ckpt"
    for _ in range(len(at) + 1):
        model = Fails()
        made = trainer(callbacks=[Saves()], **how)
        with contextlib.suppress(OSError):
            made.fit(model, datamodule=data(), ckpt_path=path if path.exists() else None)
        seen += model.seen
    assert not at
    assert [entry[2:] for entry in seen] == [entry[2:] for entry in plain(2)][: len(seen)]
    assert len(seen) == how.get("max_steps", 34)


def test_a_run_goes_on_that_was_stopped_often(tmp_path: Path) -> None:
    seen: list[Any] = []
    path = None
    for steps in range(3, 42, 3):
        model = Watcher()
        made = trainer(
            tmp_path, max_steps=steps, callbacks=[saving(tmp_path, every_n_train_steps=3)]
        )
        made.fit(model, datamodule=data(), ckpt_path=path)
        path = tmp_path / f"step={steps}.ckpt"
        seen += model.seen
    assert [entry[2:] for entry in seen] == [entry[2:] for entry in plain(3)][:39]


def test_overfitting_sees_the_same_batches_each_epoch() -> None:
    model = Watcher()
    trainer(max_epochs=3, overfit_batches=2).fit(model, datamodule=data())
    assert [entry[-1] for entry in model.seen] == 3 * [entry[-1] for entry in plain(1)[:2]]


def whole_steps(whole: list[tuple[Any, ...]]) -> list[int]:
    """Numbers of the optimizer steps of a run, in order."""
    return list(dict.fromkeys(entry[4] for entry in whole))


class TinyLlama(lightning.LightningModule):
    """The loss of a step is summed over its micro-batches and divided by the step's labels."""

    def __init__(self) -> None:
        super().__init__()
        self.model = tiny_llama.model()
        self.losses: list[float] = []

    def training_step(self, batch: Any) -> Any:
        loss = self.model(**batch, use_cache=False, num_items_in_batch=batch.num_items_step).loss
        if batch.micro_batch == 0:
            self.losses.append(0.0)
        self.losses[-1] += loss.item()
        return loss * self.trainer.accumulate_grad_batches

    def configure_optimizers(self) -> Any:
        return tiny_llama.optimizer(self.model)


@pytest.mark.slow
@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_llama_learns_as_in_the_plain_loop_and_after_an_interruption(
    accumulate: int, tmp_path: Path
) -> None:
    steps = 200

    def run(folder: Path, checkpoint: Any = None) -> list[float]:
        model = TinyLlama()
        module = DataModule(tiny_llama.loader(accumulate=accumulate))
        how = {"max_epochs": -1, "max_steps": steps, "accumulate_grad_batches": accumulate}
        made = trainer(folder, callbacks=[saving(folder, every_n_train_steps=77)], **how)
        made.fit(model, datamodule=module, ckpt_path=checkpoint)
        return model.losses

    losses = run(tmp_path / "whole")
    expected = tiny_llama.plain_losses(tiny_llama.loader(accumulate=accumulate), steps)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert np.mean(losses[-10:]) < 0.7 * np.mean(losses[:10])
    again = run(tmp_path / "again", tmp_path / "whole" / "step=77.ckpt")
    np.testing.assert_allclose(again, losses[77:], rtol=1e-5)


def states_in(thing: Any) -> int:
    """Loader states anywhere in a checkpoint."""
    if isinstance(thing, dict):
        return ("fingerprint" in thing) + sum(map(states_in, thing.values()))
    return sum(map(states_in, thing)) if isinstance(thing, list | tuple) else 0


@pytest.mark.parametrize("handed", ["module", "loader in a module", "loader"])
def test_a_checkpoint_holds_the_state_once(handed: str, tmp_path: Path) -> None:
    loader = bf.DataLoader(corpus_of(LENGTHS), **HOW)
    made = trainer(tmp_path, max_steps=5, callbacks=[saving(tmp_path, every_n_train_steps=5)])
    if handed == "loader":
        made.fit(Watcher(), loader)
    else:
        module = data() if handed == "module" else DataModule(loader)
        made.fit(Watcher(), datamodule=module)
        assert module.loader.stats().batches >= 5
    checkpoint = torch.load(tmp_path / "step=5.ckpt", weights_only=True)
    assert states_in(checkpoint) == 1


def test_a_loader_handed_to_the_trainer_is_the_plain_loop_and_goes_on_in_a_module(
    tmp_path: Path,
) -> None:
    loader = bf.DataLoader(corpus_of(LENGTHS), **HOW)
    model = Watcher()
    made = trainer(tmp_path, max_epochs=2, callbacks=[saving(tmp_path, every_n_train_steps=10)])
    made.fit(model, loader)
    assert model.seen == plain(2)
    for step in (10, 20, 30):
        rest = Watcher()
        trainer(max_epochs=2).fit(rest, datamodule=data(), ckpt_path=tmp_path / f"step={step}.ckpt")
        assert rest.seen == model.seen[step:]


def test_a_loader_handed_to_the_trainer_is_evaluated_in_order() -> None:
    model = Validated()
    evaluation = bf.DataLoader(corpus_of([9] * 20), seq_len=64)
    trainer(max_epochs=2).fit(model, bf.DataLoader(corpus_of(LENGTHS), **HOW), evaluation)
    assert [[d for d in found if d >= 0] for found in model.validated] == 2 * [list(range(20))]
    assert model.seen == plain(2)


def test_a_loader_handed_to_the_trainer_goes_on_within_the_last_epoch(tmp_path: Path) -> None:
    """What does not hold, and why there is a module: Lightning ends a resumed epoch too early."""

    def run(folder: Path, checkpoint: Any = None) -> Any:
        model = Watcher()
        saver = saving(folder, every_n_train_steps=5)
        made = trainer(folder, max_epochs=1, callbacks=[saver])
        made.fit(model, bf.DataLoader(corpus_of(LENGTHS), **HOW), ckpt_path=checkpoint)
        return model.seen

    whole = run(tmp_path / "whole")
    rest = run(tmp_path / "rest", tmp_path / "whole" / "step=5.ckpt")
    assert rest == whole[5 : 5 + len(rest)]
    assert 0 < len(rest) < len(whole) - 5


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "bf16-true", "64-true"])
def test_batches_stay_whole_under_every_precision(precision: str) -> None:
    class Model(Watcher):
        hooked = 0

        def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
            self.hooked += 1
            return batch

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            assert isinstance(batch, bf.Batch)
            assert batch.transformers()["cu_seq_lens_q"][-1] == 128
            assert batch["input_ids"].dtype == torch.int64
            floats.add(batch["loss_weights"].dtype)
            return super().training_step(batch, batch_idx)

    floats: set[torch.dtype] = set()
    model = Model()
    fields = ("input_ids", "position_ids", "loss_weights")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "You have overridden `on_before_batch_transfer`")
        trainer(max_epochs=1, precision=precision).fit(model, datamodule=data(fields=fields))
    kinds = {"bf16-true": torch.bfloat16, "64-true": torch.float64}
    assert floats == {kinds.get(precision, torch.float32)}
    assert model.hooked == len(model.seen) == len(plain(1))


def test_a_step_that_fetches_by_itself_gets_batches() -> None:
    class Model(Watcher):
        def training_step(self, dataloader_iter: Iterator[Any]) -> Any:
            batch, batch_idx, _ = next(dataloader_iter)
            return super().training_step(batch, batch_idx)

    model = Model()
    trainer(max_epochs=2, precision="bf16-mixed").fit(model, datamodule=data())
    assert model.seen == plain(2)


def test_evaluation_sees_each_document_once_each_time() -> None:
    module = data(val=corpus_of([9] * 21), test=corpus_of([9] * 5), eval_settings={"batch_size": 1})
    model = Validated()
    model.test_step = model.validation_step  # type: ignore[method-assign]
    made = trainer(max_epochs=3, val_check_interval=0.5)
    made.fit(model, datamodule=module)
    made.test(model, datamodule=module, verbose=False)
    assert len(model.validated) == 7
    assert len({tuple(documents) for documents in model.validated[:6]}) == 1
    for documents, count in ((model.validated[0], 21), (model.validated[6], 5)):
        assert [d for d in documents if d >= 0] == list(range(count))


def test_a_second_fit_goes_on_with_the_next_epoch_and_a_new_trainer_begins_anew() -> None:
    module, model = data(), Watcher()
    made = trainer(max_epochs=1)
    made.fit(model, datamodule=module)
    made.fit_loop.max_epochs = 3
    made.fit(model, datamodule=module)
    assert [entry[2:] for entry in model.seen] == [entry[2:] for entry in plain(3)]
    again = Watcher()
    trainer(max_epochs=1).fit(again, datamodule=module)
    assert [entry[-1] for entry in again.seen] == [entry[-1] for entry in plain(1)]


def test_a_run_that_is_over_takes_its_last_checkpoint_in_silence(tmp_path: Path) -> None:
    saver = saving(tmp_path, every_n_train_steps=5)
    trainer(tmp_path, max_steps=5, callbacks=[saver]).fit(Watcher(), datamodule=data())
    model = Watcher()
    module = data()
    trainer(max_steps=5).fit(model, datamodule=module, ckpt_path=tmp_path / "step=5.ckpt")
    del module
    assert model.seen == []


def test_evaluation_of_a_checkpoint_does_not_move_training(tmp_path: Path) -> None:
    saver = saving(tmp_path, every_n_train_steps=5)
    trainer(tmp_path, max_steps=5, callbacks=[saver]).fit(Watcher(), datamodule=data())
    module, model = data(val=corpus_of([9] * 9)), Validated()
    path = tmp_path / "step=5.ckpt"
    trainer().validate(model, datamodule=module, ckpt_path=path, verbose=False)
    trainer(max_steps=3, num_sanity_val_steps=0).fit(model, datamodule=module)
    assert model.seen == plain(1)[:3]


def test_without_a_trainer_it_is_the_loader() -> None:
    module = data()
    with pytest.raises(bf.PlanError, match="no loader yet"):
        module.loader  # noqa: B018
    passes = [list(module.train_dataloader()) for _ in range(2)]
    whole = [entry[-1] for entry in plain(2)]
    assert [placed(batch) for batches in passes for batch in batches] == whole
    assert len(module.train_dataloader()) > 0
    told = str(DataModule("shards/", val=[[1, 2]], test=corpus_of([9])))
    assert told.startswith("<DataModule: train shards/, val list, test <brimful.Corpus: 1 document")
    begun = list(islice(module.train_dataloader(), 3))
    assert {batch.epoch for batch in begun} == {2}


def test_a_checkpoint_of_another_corpus_is_refused(tmp_path: Path) -> None:
    saver = saving(tmp_path, every_n_train_steps=5)
    trainer(tmp_path, max_steps=5, callbacks=[saver]).fit(Watcher(), datamodule=data())
    path = tmp_path / "step=5.ckpt"
    with pytest.raises(bf.StateError, match="seq_len: 64 in the state, 32 here"):
        trainer(max_steps=9).fit(Watcher(), datamodule=data(seq_len=32), ckpt_path=path)
    other = {"batch_size": 3}
    with pytest.raises(bf.StateError, match="allow_batch_change=True"):
        trainer(max_steps=9).fit(Watcher(), datamodule=data(**other), ckpt_path=path)
    model = Watcher()
    module = data(**other, allow_batch_change=True)
    trainer(max_epochs=1).fit(model, datamodule=module, ckpt_path=path)
    found = [piece for entry in model.seen for piece in entry[-1] if piece[0] >= 0]
    whole = [piece for entry in plain(1)[5:] for piece in entry[-1] if piece[0] >= 0]
    assert found == whole


def test_a_checkpoint_within_an_epoch_that_holds_no_state_is_refused(tmp_path: Path) -> None:
    class Other(DataModule):
        """Lightning keeps a module's part under the name of its class."""

    saver = saving(tmp_path, every_n_train_steps=5)
    trainer(tmp_path, max_epochs=1, callbacks=[saver]).fit(Watcher(), datamodule=data())
    other = Other(corpus_of(LENGTHS), **HOW)
    with pytest.raises(bf.StateError, match=r"behind batch 5 of epoch 0 and holds no state"):
        trainer(max_epochs=2).fit(Watcher(), datamodule=other, ckpt_path=tmp_path / "step=5.ckpt")
    path = tmp_path / "step=5.ckpt"
    checkpoint = torch.load(path, weights_only=True)
    checkpoint["DataModule"] = {"seed": 3}
    torch.save(checkpoint, path)
    with pytest.raises(bf.StateError, match="holds seed, where loader, epoch and batches are"):
        trainer(max_epochs=2).fit(Watcher(), datamodule=data(), ckpt_path=path)


def test_settings_that_contradict_the_trainer_are_refused() -> None:
    of_two = bf.DataLoader(corpus_of(LENGTHS), **HOW, rank=0, world_size=2)
    with pytest.raises(bf.PlanError, match=r"'world_size': 2.*trainer says.*'world_size': 1"):
        trainer(max_steps=1).fit(Watcher(), datamodule=DataModule(of_two))
    with pytest.raises(bf.PlanError, match=r"'accumulate': 2.*trainer says.*'accumulate': 1"):
        trainer(max_steps=1).fit(Watcher(), datamodule=data(accumulate=2))
    with pytest.raises(bf.PlanError, match="nothing to train on"):
        trainer(max_steps=1).fit(Watcher(), datamodule=DataModule(None, **HOW))
    with pytest.raises(bf.PlanError, match="give the trainer accumulate_grad_batches"):
        trainer(max_steps=1, callbacks=[GradientAccumulationScheduler({0: 2})]).fit(
            Watcher(), datamodule=data()
        )
    with pytest.raises(bf.PlanError, match="which the trainer serves by itself"):
        trainer(max_steps=1).fit(Watcher(), datamodule=DataModule(bf.DataLoader([1])))
    with pytest.raises(bf.PlanError, match="seq_len is missing"):
        trainer(max_steps=1).fit(Watcher(), datamodule=DataModule([np.arange(9)] * 9))


def test_without_lightning_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightning.pytorch", None)
    monkeypatch.delitem(sys.modules, "brimful.integrations.lightning")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'brimful\[lightning\]'"):
        importlib.import_module("brimful.integrations.lightning")


PROGRAM = """
import sys
import test_integration_lightning as tests

folder, devices, batch_size, checkpoint = sys.argv[1:]
model = tests.Watcher()
tests.trainer(
    folder, max_epochs=2, devices=int(devices), strategy="ddp",
    callbacks=[tests.saving(folder, every_n_train_steps=5)],
).fit(model, datamodule=tests.data(batch_size=int(batch_size)), ckpt_path=checkpoint or None)
with open(f"{folder}/seen-{model.trainer.global_rank}", "w") as file:
    print(model.seen, file=file)
"""


def ranks(folder: Path, devices: int, batch_size: int, checkpoint: Any = "") -> list[list[Any]]:
    """What each rank was given, of processes that Lightning starts."""
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(PROGRAM)
    paths = [str(Path(__file__).parent), str(Path(bf.__file__).parents[1])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(program), str(folder), str(devices), str(batch_size)]
    done = subprocess.run(
        [*command, str(checkpoint)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return [eval((folder / f"seen-{rank}").read_text()) for rank in range(devices)]


@pytest.mark.slow
def test_two_ranks_share_the_stream_and_one_goes_on_with_it(tmp_path: Path) -> None:
    both = ranks(tmp_path / "two", 2, 1)
    whole = plain(2, batch_size=2)
    assert len(both[0]) == len(both[1]) == len(whole)
    for *found, one in zip(*both, whole, strict=True):
        shares = [{piece for piece in entry[-1] if piece[0] >= 0} for entry in found]
        assert not shares[0] & shares[1]
        assert shares[0] | shares[1] == {piece for piece in one[-1] if piece[0] >= 0}
        assert {entry[:5] for entry in found} == {one[:5]}
    (rest,) = ranks(tmp_path / "one", 1, 2, tmp_path / "two" / "step=5.ckpt")
    assert rest == whole[5:]
