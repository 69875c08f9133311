"""`brimful demo`: the whole path on the Python standard library of this machine, in five steps.

Tokenize and write shards; look at the lengths; compare packing strategies; load beside torch under
a simulated training step; train a tiny transformer.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

import brimful as bf
from brimful.cli.bench import machine
from brimful.cli.compare import Ranks, compare
from brimful.cli.histogram import length_histogram, print_histogram
from brimful.cli.meter import Measured
from brimful.cli.pack import notes, print_comparison
from brimful.cli.stdlib import Shards, standard_library, write_shards
from brimful.cli.text import (
    brief,
    count,
    duration,
    make_console,
    percent,
    print_filled,
    print_path,
    print_table,
)
from brimful.extras import require

SPARKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class DemoConfig:
    """Sizes of the demo. seconds_per_slot: what the simulated training step costs."""

    files: int | None = None  # of the standard library; None: all
    seq_len: int = 4096
    batch_size: int = 8
    seconds_per_slot: float = 0.4e-6
    train_batch_size: int = 2
    train_steps: int = 60
    seed: int = 17


def run(*, out: Path | None = None, config: DemoConfig | None = None) -> None:
    """Runs all steps and prints what each one gives. Shards stay in `out`, if it is given."""
    config = config or DemoConfig()
    console = make_console()
    began = time.perf_counter()
    require("torch", "demo", "the demo")
    about = machine()
    console.print(
        f"brimful {about['brimful']}, torch {about['torch']}, Python {about['python']}, "
        f"{about['cores']} cores"
    )
    if out is None:
        with tempfile.TemporaryDirectory(prefix="brimful-demo-") as folder:
            _steps(console, Path(folder) / "shards", config)
    else:
        _steps(console, out, config)
        console.print("\nThe shards are kept. Look at them with")
        print_path(console, "  brimful inspect ", out)
    console.print(f"\nDone in {time.perf_counter() - began:.0f} s.")


def _steps(console: Console, folder: Path, config: DemoConfig) -> None:
    _heading(console, 1, "Tokenize, and write shards")
    with console.status("tokenizing"):
        shards = write_shards(standard_library(), folder, limit=config.files)
    corpus = shards.corpus
    _print_shards(console, shards)

    lengths = corpus.lengths
    _heading(console, 2, "Lengths of the documents, in tokens")
    print_histogram(console, length_histogram(lengths))

    _heading(console, 3, f"Pack into bins of {count(config.seq_len)} tokens")
    ranks = Ranks(batch_size=config.batch_size)
    comparisons, _ = compare(lengths, config.seq_len, ranks=ranks)
    print_comparison(console, comparisons, corpus.num_tokens)
    print_filled(console, f"\n{notes(comparisons, ranks)}")

    _heading(console, 4, "Feed a training step, beside torch's DataLoader")
    _race(console, corpus, config)

    _heading(console, 5, "Train a tiny transformer")
    _train(console, corpus, shards, config)


def _heading(console: Console, number: int, text: str) -> None:
    console.print(f"\n{number}  {text}\n", style="bold")


def _print_shards(console: Console, shards: Shards) -> None:
    done = shards.prepared
    skipped = f", {done.skipped} skipped (not UTF-8)" if done.skipped else ""
    print_path(console, "from     ", shards.root)
    console.print(f"texts    {count(done.documents)} files of {done.bytes / 1e6:.1f} MB{skipped}")
    console.print(f"tokens   {count(done.tokens)}, {shards.tokenizer}")
    console.print(
        f"shards   {shards.num_bytes / 1e6:.1f} MB, {done.dtype}; "
        f"tokenized and written in {duration(done.seconds)}"
    )


def _race(console: Console, corpus: bf.Corpus, config: DemoConfig) -> None:
    from brimful.cli.race import race

    rows = f"{config.batch_size} x {count(config.seq_len)}"
    console.print(
        f"Simulated: a step only sleeps, {config.seconds_per_slot * 1e6:g} us for each slot of "
        f"its batch.\n"
        f"Every loader delivers all documents once, shuffled, in batches of {rows}.\n"
        "torch pads: a document a row, long ones cut into several rows, each batch\n"
        "as wide as its longest row. brimful packs by best_fit_decreasing.\n"
    )
    with console.status("drawing an epoch from each loader"):
        results = race(
            corpus,
            batch_size=config.batch_size,
            seq_len=config.seq_len,
            seconds_per_slot=config.seconds_per_slot,
            seed=config.seed,
        )
    print_table(
        console,
        ["loader", "epoch", "effective\ntokens/s", "utilization", "stall", "first\nbatch"],
        [_race_row(m) for m in results],
    )
    console.print(
        "\neffective tokens: those with a label. stall: share of the epoch in which the\n"
        "loop waited for a batch. The first batch is timed apart."
    )


def _race_row(m: Measured) -> list[str]:
    return [
        m.name,
        duration(m.seconds),
        brief(m.effective_tokens_per_second),
        percent(m.utilization),
        percent(m.stall_share),
        duration(m.first_batch_seconds),
    ]


def _train(console: Console, corpus: bf.Corpus, shards: Shards, config: DemoConfig) -> None:
    from brimful.cli.toy import FIELDS, ToyConfig, fold_vocabulary, train

    toy = ToyConfig()
    classes, own = fold_vocabulary(shards.counts, toy.classes)
    loader = bf.DataLoader(
        corpus,
        batch_size=config.train_batch_size,
        seq_len=toy.seq_len,
        packing="best_fit_decreasing",
        shuffle=True,
        seed=config.seed,
        fields=FIELDS,
    )
    rows = f"{config.train_batch_size} x {toy.seq_len}"
    console.print(
        f"{toy.layers} layers, width {toy.width}, {toy.heads} heads, one CPU thread, "
        f"batches of {rows}.\n"
        "Attention stays inside documents: the mask is made of document_ids.\n"
        f"The vocabulary is folded: the {count(toy.classes - 1)} most frequent tokens, "
        f"{percent(own)} of all,\nkeep a class of their own, the rest share one.\n"
    )
    with console.status("training"):
        result = train(loader, classes, toy, steps=config.train_steps, seed=config.seed)
    stats = loader.stats()
    loader.close()
    losses = result.losses
    shown = max(len(losses) // 10, 1)
    console.print(
        f"loss   {losses[0]:.2f} at the first step, {sum(losses[-shown:]) / shown:.2f} on average "
        f"over the last {shown} of {len(losses)}"
    )
    if console.encoding.lower().startswith("utf"):
        console.print(f"       {sparkline(losses)}")
    console.print(
        f"speed  {duration(result.seconds / len(losses))} a step, "
        f"{brief(result.tokens / result.seconds)} effective tokens/s; "
        f"utilization {percent(stats.utilization)}"
    )


def sparkline(values: list[float], width: int = 60) -> str:
    """Means of `width` (or fewer) equal runs of values, lowest to highest as eight bar heights."""
    runs = min(width, len(values))
    edges = [i * len(values) // runs for i in range(runs + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    low, high = min(means), max(means)
    scale = (len(SPARKS) - 1) / (high - low) if high > low else 0.0
    return "".join(SPARKS[round((m - low) * scale)] for m in means)
