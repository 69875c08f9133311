"""What a loader takes as arguments, what it refuses, and what it says of itself."""

import copy

import numpy as np
import pytest

import brimful as bf
from truth import corpus_of, pieces


def test_settings_that_make_no_sense_are_refused():
    corpus = corpus_of([4])
    for settings_ in (
        {"batch_size": 0},
        {"batch_size": True},
        {"batch_size": 2.0},
        {"num_workers": -1},
        {"timeout": -1},
        {"seq_len": 0},
        {"seq_len": None},
        {"packing": "best"},
        {"balance": "tokens"},
        {"max_segments": 0},
        {"overlong": "cut"},
        {"layout": "row"},
        {"tail": "drop"},
        {"window": 0},
        {"depth": 0},
        {"rank": 1, "world_size": 1},
        {"rank": 1},
        {"num_workers": 0, "prefetch_factor": 2},
        {"num_workers": 0, "persistent_workers": True},
        {"sampler": [0]},
        {"batch_sampler": [[0]]},
        {"ingest": True},
        {"seed": 2**64},
        {"batch_size": 2**20, "seq_len": 2**20},
        {"num_workers": 2**40},
        {"drop_last": "yes"},
        {"shuffle": "x"},
        {"timeout": "a"},
        {"batch_size": np.float64(2)},
    ):
        with pytest.raises(bf.PlanError):
            bf.DataLoader(corpus, **{"seq_len": 4, **settings_})
    with pytest.raises(TypeError, match="unexpected keyword argument 'seqlen'; did you mean seq_l"):
        bf.DataLoader(corpus, 2, seqlen=64)
    with pytest.raises(TypeError, match="did you mean prefetch_factor"):
        bf.DataLoader(corpus, seq_len=64, prefetch=2)
    with pytest.raises(TypeError, match="sequence_length"):
        bf.DataLoader(corpus, seq_len=4, sequence_length=4)


def test_overlong_documents_are_refused_at_once_by_their_number_in_the_corpus():
    corpus = corpus_of([1] * 1000 + [50])
    with pytest.raises(bf.PlanError, match="document 1000 has 50 tokens"):
        bf.DataLoader(corpus, seq_len=8, overlong="error", window=10, shuffle=True)
    assert len(list(bf.DataLoader(corpus, seq_len=50, overlong="error"))) == 21


def test_numpy_numbers_and_none_are_taken_as_users_write_them():
    loader = bf.DataLoader(
        corpus_of([4] * 6), np.int64(2), seq_len=np.int32(8), fields=None, num_workers=None,
        rank=np.int64(0), world_size=np.int64(1), shuffle=None, pin_memory_device="",
        timeout=np.float32(2.5),
    )  # fmt: skip
    loader.set_epoch(np.int64(3))
    assert [len(pieces(batch)) for batch in loader] == [4, 2]
    assert loader.config.fields == bf.LoaderConfig.fields
    assert type(loader.config.batch_size) is int
    assert (type(loader.config.timeout), loader.config.timeout) == (float, 2.5)


def test_iterators_are_not_copied_in_silence():
    iterator = iter(bf.DataLoader(corpus_of([4]), seq_len=4))
    with pytest.raises(NotImplementedError, match="cannot be pickled or copied"):
        copy.copy(iterator)


def test_ranks_come_from_torchruns_environment(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    config = bf.DataLoader(corpus_of([4]), seq_len=4).config
    assert (config.rank, config.world_size) == (1, 3)
    config = bf.DataLoader(corpus_of([4]), seq_len=4, rank=0, world_size=2).config
    assert (config.rank, config.world_size) == (0, 2)


@pytest.mark.parametrize(
    ("packing", "instead"), [("optimal", "best_fit_decreasing"), ("balanced", "balance=")]
)
def test_strategies_for_whole_sets_are_refused_with_what_to_use(packing, instead):
    with pytest.raises(bf.PlanError, match=f"{packing}.*bf.pack.*{instead}"):
        bf.DataLoader(corpus_of([4]), seq_len=4, packing=packing)


def test_a_loader_says_what_it_is():
    loader = bf.DataLoader(corpus_of([1] * 1786), 8, seq_len=4096, rank=1, world_size=2)
    assert repr(loader) == (
        "<brimful.DataLoader: 1,786 documents, batch_size 8, seq_len 4096, streaming, rank 1 of 2>"
    )
