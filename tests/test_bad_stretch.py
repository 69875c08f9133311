"""From a spike of the loss to its documents, and on to a run that leaves them out."""

import warnings
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import corpus_of

POISON = {117, 118, 119}  # documents that a model cannot learn


def spiky_run(**how: Any) -> tuple[bf.DataLoader, list[int]]:
    """A run that logs a loss which is high where a batch holds such documents; and its steps."""
    loader = bf.DataLoader(
        corpus_of([10 + n % 7 for n in range(200)]),
        **{"seq_len": 32, "batch_size": 2, "packing": "best_fit", "window": 200} | how,
    )
    steps = []
    for batch in loader:
        bad = len(POISON & set(batch.documents.tolist()))
        loader.log(loss=2.0 + 0.01 * (batch.step % 4) + 5.0 * bad)
        steps.append(batch.step)
    return loader, steps


def test_r05_from_a_spike_to_its_documents_to_a_run_without_them():
    loader, steps = spiky_run()
    timeline = loader.timeline
    spikes = timeline.spikes("loss")
    assert spikes
    held = [timeline.documents(step) for step in spikes]
    suspects = set(np.concatenate([step.documents for step in held]).tolist())
    assert suspects & POISON
    assert timeline.beside(spikes[0]).changes[0].name == "loss"

    bad = [row.step for row in timeline if row.logged["loss"] > 4]
    assert spikes[0] == bad[0]
    again, again_steps = spiky_run(skip=bad)
    assert again_steps == [step for step in steps if step not in bad]
    assert again.timeline.spikes("loss") == []
    assert max(row.logged["loss"] for row in again.timeline) < 4

    stats, whole = again.stats(), loader.stats()
    assert stats.skipped_steps == len(bad)
    assert stats.skipped_tokens == sum(int(timeline.documents(s).lengths.sum()) for s in bad)
    assert stats.tokens + stats.skipped_tokens == whole.tokens
    assert stats.skipped_documents + stats.documents == whole.documents
    assert all(again.documents(step).skipped for step in bad)


@settings(max_examples=15)
@given(
    st.sampled_from([1, 2, 3]), st.sampled_from(["best_fit", "streaming", "concat"]), st.booleans()
)
def test_r05_whatever_the_split_the_documents_of_the_bad_steps_are_left_out_and_counted(
    accumulate: int, packing: str, shuffle: bool
):
    how = {"accumulate": accumulate, "packing": packing, "shuffle": shuffle, "batch_size": 1}

    def poisoned(step: bf.StepDocuments) -> bool:
        return bool(POISON & set(step.documents.tolist()))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader, _ = spiky_run(**how)
        timeline = loader.timeline
        bad = [row.step for row in timeline if poisoned(timeline.documents(row.step))]
        again, steps = spiky_run(**how, skip=bad)
    assert not set(steps) & set(bad)
    assert all(row.logged["loss"] < 3 for row in again.timeline)
    assert again.stats().skipped_steps == len(bad) > 0
    assert again.stats().tokens + again.stats().skipped_tokens == loader.stats().tokens
