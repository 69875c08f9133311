"""Random loaders, interrupted in every way and resumed in every geometry, until time is up.

Each run makes a corpus and settings from its number, delivers a few epochs without interruption as
the reference, and then again in segments: other world sizes, threads, depths and layouts for each,
ended at a random batch by a break, a close, an exception, a timeout, a full ring or a killed
process. Every batch is checked token by token; rows must come in the order of the reference, and
the counts must account for every document.

    python tests/soak.py --seconds 600 --seed 1
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import brimful as bf
from truth import check, document

EPOCHS = 3
# A row is its pieces: (document, start, length).
Row = list[tuple[int, int, int]]


class Run:
    """One random corpus with settings that fix its order."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.folder = folder
        self.corpus, self.lengths = self._make_corpus()
        self.bins_per_step = self.random.choice([1, 2, 4, 6, 12])
        self.settings = self._make_settings()

    def _make_corpus(self) -> tuple[bf.Corpus, dict[str, list[int]]]:
        rng = self.random
        lengths, corpora, first = {}, {}, 0
        for s in range(rng.choice([1, 1, 2, 3, 5])):
            count = rng.choice([1, 7, 40, 90])
            lengths[f"source{s}"] = [rng.choice([0, 1, 3, 9, 17, 30, 70]) for _ in range(count)]
            documents = [document(first + i, n) for i, n in enumerate(lengths[f"source{s}"])]
            corpora[f"source{s}"] = self._open(documents, self.folder / f"{self.seed}.{s}")
            first += count
        if len(corpora) == 1 and rng.random() < 0.7:
            return corpora["source0"], lengths
        how: dict[str, Any] = {}
        if rng.random() < 0.8:
            shares = {name: rng.choice([0.5, 1.0, 2.0]) for name in corpora}
            how["weights"] = shares
            how["unit"] = rng.choice(["tokens", "documents"])
            how["when_dry"] = rng.choice(["repeat", "repeat", "drop", "stop"])
            if how["when_dry"] == "repeat" and rng.random() < 0.5:
                other = {name: rng.choice([0.5, 1.0, 2.0]) for name in corpora}
                how["weights"] = [(0, shares), (rng.choice([1, 100, 1000, 3000]), other)]
            if how["when_dry"] == "repeat" and rng.random() < 0.3:
                how["epoch_tokens"] = rng.choice([500, 2000])
        return bf.mix(corpora, **how), lengths

    def _open(self, documents: list[Any], folder: Path) -> bf.Corpus:
        if self.random.random() < 0.5:
            return bf.open(documents)
        with bf.ShardWriter(folder, dtype="int64") as writer:
            for tokens in documents:
                writer.add(tokens)
        return bf.open(folder)

    def _make_settings(self) -> dict[str, Any]:
        rng = self.random
        settings = {
            "seq_len": rng.choice([8, 16, 33]),
            "packing": rng.choice(bf_packings()),
            "overlong": rng.choice(["split", "split", "truncate", "drop"]),
            "window": rng.choice([1, 7, 30, 16384]),
            "shuffle": rng.choice([False, True, True, "block"]),
            "shuffle_block": rng.choice([1, 3, 16]),
            "seed": rng.randrange(2**64),
            "buffer": rng.choice([1, 4, 256]),
            "balance": rng.choice([None, None, "attention"]),
            "drop_last": rng.random() < 0.3,
        }
        if rng.random() < 0.3:
            settings["skip"] = [rng.randrange(12), range(20, 20 + rng.randrange(1, 30))]
        if settings["packing"] not in ("pad", "bucket") and rng.random() < 0.2:
            settings["max_segments"] = rng.choice([1, 3])
        if rng.random() < 0.3:
            settings["align"] = rng.choice(divisors(settings["seq_len"]))
        if rng.random() < 0.3:
            settings["carry_label"] = True
        return settings

    def loader(self, split: tuple[int, int, int], rank: int, **how: Any) -> bf.DataLoader:
        world_size, batch_size, accumulate = split
        return bf.DataLoader(
            self.corpus,
            **self.settings,
            **{"fields": self.fields()[0], **how},
            world_size=world_size,
            rank=rank,
            batch_size=batch_size,
            accumulate=accumulate,
        )

    def fields(self) -> list[list[str] | None]:
        if "carry_label" in self.settings:
            return [["input_ids", "shift_labels"], ["input_ids", "shift_labels", "loss_weights"]]
        return [None, ["input_ids"], ["input_ids", "labels", "document_ids"]]

    def random_split(self) -> tuple[int, int, int]:
        world_size = self.random.choice(divisors(self.bins_per_step))
        batch_size = self.random.choice(divisors(self.bins_per_step // world_size))
        return world_size, batch_size, self.bins_per_step // world_size // batch_size


def bf_packings() -> list[str]:
    from brimful.config import PACKINGS

    return list(PACKINGS)


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def rows_of(batch: bf.Batch, loader: bf.DataLoader) -> list[Row]:
    """The pieces of each row, after a check of every token."""
    check(batch, loader)
    cu = np.asarray(batch.cu_seqlens)
    in_rows = loader.config.layout == "rows"
    width = batch["input_ids"].shape[1] if in_rows else loader.config.seq_len
    rows: dict[int, Row] = {}
    for s, d in enumerate(batch.documents):
        if d >= 0:
            piece = (int(d), int(batch.starts[s]), int(batch.lengths[s]))
            rows.setdefault(int(cu[s]) // width, []).append(piece)
    return [rows[number] for number in sorted(rows)]


class Epochs:
    """Batches to the end of the last epoch, also behind an error; some epochs have none."""

    def __init__(self, loader: bf.DataLoader) -> None:
        self.loader = loader
        self.iterator: Iterator[bf.Batch] = iter(())

    def __iter__(self) -> Epochs:
        return self

    def __next__(self) -> bf.Batch:
        while (batch := next(self.iterator, None)) is None:
            if self.loader.state_dict()["cursor"]["epoch"] >= EPOCHS:
                raise StopIteration
            self.iterator = iter(self.loader)
        return batch


def patient(iterator: Iterator[bf.Batch], kept: list[Any]) -> bf.Batch | None:
    """The next batch, whatever was late or full meanwhile."""
    while True:
        try:
            return next(iterator, None)
        except bf.LoaderTimeout:
            continue
        except bf.RingExhausted:
            assert kept, "a full ring although no batch is kept"
            kept.clear()


def state_of(loaders: list[bf.DataLoader]) -> dict[str, Any]:
    """The one state of all ranks, as a checkpoint holds it."""
    states = [json.loads(json.dumps(loader.state_dict())) for loader in loaders]
    assert all(state == states[0] for state in states), "ranks differ in their states"
    return states[0]


class Segment:
    """Some batches on all ranks of a random geometry, from a state."""

    def __init__(self, run: Run, state: dict[str, Any] | None) -> None:
        rng = run.random
        split = run.random_split()
        self.random = random.Random(rng.random())
        varlen = run.settings["packing"] != "bucket" and rng.random() < 0.4
        how = {
            "layout": "varlen" if varlen else "rows",
            "tail": "keep",
            "num_workers": rng.choice([0, 1, 2, 4]),
            "depth": rng.choice([1, 2, 4, 9]),
            "timeout": rng.choice([0, 0, 0.001]),
            "io": rng.choice(["mmap", "pread"]),
            "positions": rng.choice(["restart", "continue"]),
            "fields": rng.choice(run.fields()),
        }
        if rng.random() < 0.3:
            how["max_slots"] = rng.choice([2, 5, 12])
        self.split = split
        self.loaders = [run.loader(split, rank, **how) for rank in range(split[0])]
        if state is not None:
            for loader in self.loaders:
                loader.load_state_dict(state)
        self.kept: list[Any] = []

    def deliver(self, batches: int, rows_left: int) -> Iterator[tuple[list[Row], dict[str, Any]]]:
        """The rows of each round over all ranks in the order of the plan, and the state behind.

        Behind the last row it asks once more, so that the end is noticed and counted.
        """
        iterators = [Epochs(loader) for loader in self.loaders]
        for _ in range(batches):
            per_rank = [patient(iterator, self.kept) for iterator in iterators]
            if per_rank[0] is None:
                assert not any(per_rank), "ranks differ in their number of batches"
                assert rows_left == 0, f"{rows_left} rows are missing at the end"
                yield [], state_of(self.loaders)
                return
            if self.random.random() < 0.5:
                self.kept += per_rank[-3:]
            rows = [
                rows_of(batch, loader)
                for batch, loader in zip(per_rank, self.loaders, strict=True)
                if batch is not None
            ]
            most = max(map(len, rows))
            in_order = [own[j] for j in range(most) for own in rows if j < len(own)]
            rows_left -= len(in_order)
            yield in_order, state_of(self.loaders)

    def end(self) -> None:
        """In one of the ways in which loops end."""
        way = self.random.choice(["close", "error", "leave", "others"])
        if way == "close":
            for loader in self.loaders:
                loader.close()
        elif way == "others":  # that run side by side, and begin other epochs
            others = [iter(loader) for loader in self.loaders for _ in range(2)]
            for other in others:
                patient(other, self.kept)
        elif way == "error":
            try:
                patient(iter(self.loaders[0]), self.kept)
                raise ZeroDivisionError
            except ZeroDivisionError:
                pass
        self.kept.clear()


def killed_segment(
    run: Run, state: dict[str, Any] | None, batches: int, rows_left: int
) -> Iterator[tuple[list[Row], dict[str, Any]]]:
    """As Segment.deliver, in a process of its own that is killed while it goes on."""
    segment_seed = run.random.random()
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        run.random = random.Random(segment_seed)
        with os.fdopen(writable, "w") as pipe:
            for rows, behind in Segment(run, state).deliver(10**9, rows_left):
                print(json.dumps([rows, behind]), file=pipe, flush=True)
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as pipe:
        for _, line in zip(range(batches), pipe, strict=False):
            rows, behind = json.loads(line)
            yield [[(d, s, n) for d, s, n in row] for row in rows], behind
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), f"a process ended with status {status}"


def soak_once(seed: int, folder: Path) -> Counter[str]:
    """One run. Says what it did; throws AssertionError where something is not as it must be."""
    run = Run(seed, folder)
    rng = run.random
    try:
        reference = run.loader((1, run.bins_per_step, 1), 0, num_workers=0)
    except bf.PlanError:
        return Counter(refused=1)  # a mixture that these settings cannot follow
    steps = [rows_of(batch, reference) for batch in Epochs(reference)]
    wanted = [row for step in steps for row in step]

    did: Counter[str] = Counter(runs=1)
    found: list[Row] = []
    state: dict[str, Any] | None = None
    totals: dict[str, Any] | None = None
    while len(found) < len(wanted) or state is None:
        batches = rng.choice([0, 1, 2, 5, 20, 100])
        left = len(wanted) - len(found)
        did["segments"] += 1
        if batches and left and rng.random() < 0.15:
            did["kills"] += 1
            for rows, behind in killed_segment(run, state, batches, left):
                found += rows
                state = behind
            continue
        segment = Segment(run, state)
        state = state_of(segment.loaders)
        for rows, behind in segment.deliver(batches, left):
            found += rows
            state = behind
            did["batches"] += 1
        if state["cursor"]["epoch"] == EPOCHS:
            totals = segment.loaders[0].stats().as_dict()
        segment.end()
    assert len(found) == len(wanted), f"{len(found)} rows, {len(wanted)} without interruption"
    if run.settings["balance"] is None and run.settings["packing"] != "bucket":
        assert found == wanted, "another order than without interruption"
    end = 0
    for number, step in enumerate(steps):  # what else is dealt by work keeps its step
        begin, end = end, end + len(step)
        assert sorted(found[begin:end]) == sorted(step), f"step {number} has other rows"
    did["rows"] += len(found)
    if totals is not None:  # the last segment may have ended just before the end was noticed
        did["accounts"] += 1
        account(run, found, totals, reference)
    return did


def account(run: Run, found: list[Row], totals: dict[str, Any], reference: bf.DataLoader) -> None:
    """Every document was delivered or is in the counts, source by source."""
    expected = reference.stats().as_dict()
    for counts in (totals["all_ranks"], expected["all_ranks"]):
        del counts["dummy_rows"]  # depends on how steps were dealt
        if run.settings["packing"] == "bucket":
            del counts["slots"]  # likewise: batches are as wide as their longest row
    for name in ("all_ranks", "exposure", "dropped", "skipped"):
        assert totals[name] == expected[name], name
    begun: Counter[int] = Counter(d for row in found for d, start, _ in row if start == 0)
    tokens: Counter[int] = Counter()
    for row in found:
        for d, _, n in row:
            tokens[d] += n
    rule = run.corpus.rule
    first = 0
    for name, lengths in run.lengths.items():
        of_source = range(first, first + len(lengths))
        first += len(lengths)
        key = name if name in totals["exposure"] else next(iter(totals["exposure"]))
        exposure, dropped, skipped = (
            totals[what][key] for what in ("exposure", "dropped", "skipped")
        )
        assert exposure["documents"] == sum(begun[d] for d in of_source)
        assert exposure["tokens"] == sum(tokens[d] for d in of_source)
        if rule is None:
            lost = dropped["tokens"] + skipped["tokens"]
            assert exposure["tokens"] + lost == EPOCHS * sum(lengths)
        if totals["all_ranks"]["dropped_tokens"] + totals["all_ranks"]["skipped_tokens"] == 0:
            for d, n in zip(of_source, lengths, strict=True):
                assert tokens[d] == n * begun[d], f"document {d} is not whole"
            if rule is None or rule.when_dry != "stop":
                passes = {begun[d] for d, n in zip(of_source, lengths, strict=True) if n}
                assert max(passes, default=0) - min(passes, default=0) <= 1, (name, passes)


def soak(seconds: float, first_seed: int) -> Counter[str]:
    """Runs from this number on, until time is up."""
    did: Counter[str] = Counter()
    end = time.monotonic() + seconds
    seed = first_seed
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of dropped tokens and unused states
            try:
                did += soak_once(seed, Path(folder))
            except BaseException:
                print(f"run {seed} failed: python tests/soak.py --seconds 0 --seed {seed}")
                raise
        seed += 1
    return did


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    did = soak(arguments.seconds, arguments.seed)
    print(", ".join(f"{count:,} {what}" for what, count in did.items()))


if __name__ == "__main__":
    sys.exit(main())
