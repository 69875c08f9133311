"""Classes derived from brimful.DataLoader, on either path, beside those derived from torch's."""

import copy
import pickle

import numpy as np
import pytest
import torch
from torch.utils import data

import brimful as bf


class Scaled(bf.DataLoader):
    """One of the user's, with arguments of its own."""

    def __init__(self, dataset, scale, **arguments):
        self.scale = scale
        super().__init__(dataset, batch_size=2, **arguments)

    def __iter__(self):
        for batch in super().__iter__():
            yield batch * self.scale


class Twice(Scaled):
    def __init__(self, dataset, **arguments):
        super().__init__(dataset, 2, **arguments)


class Rows(bf.DataLoader[int]):
    def __init__(self, dataset):
        bf.DataLoader.__init__(self, dataset, seq_len=4)


def taken(loader):
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize("num_workers", [0, 1, None])
def test_a_derived_class_is_torchs_where_the_rule_says_so(num_workers):
    loader = Twice(range(5), num_workers=num_workers)
    assert taken(loader) == [[0, 2], [4, 6], [8]]
    assert len(loader) == 3
    assert loader.scale == 2
    assert loader.explain().path == "torch"
    assert loader.stats().batches == 3
    loader.log(loss=1.5)
    assert [row.logged for row in loader.timeline] == [{}, {}, {"loss": 1.5}]
    for kind in (Twice, Scaled, bf.DataLoader, data.DataLoader):
        assert isinstance(loader, kind)
    assert not isinstance(loader, Rows)


def test_a_derived_class_is_native_where_the_rule_says_so():
    loader = Rows([np.arange(4)])
    assert type(loader) is Rows
    assert [batch["input_ids"].tolist() for batch in loader] == [[[0, 1, 2, 3]]]
    assert loader.explain().path == "native"
    assert not isinstance(loader, data.DataLoader)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_loaders_of_a_derived_class_are_copied_by_its_name(copied):
    loader = Twice(range(5))
    other = copied(loader)
    assert type(other) is type(loader)
    assert taken(other) == taken(loader)
    native = copied(Rows([np.arange(4)]))
    assert type(native) is Rows
    assert next(iter(native))["input_ids"].tolist() == [[0, 1, 2, 3]]


def test_the_class_of_such_a_loader_makes_others():
    kind = type(Twice(range(5)))
    assert kind.__name__ == "Twice"
    assert taken(kind(range(2))) == [[0, 2]]
    assert isinstance(kind(range(2), num_workers=None), Twice)


def test_a_state_goes_from_one_to_another():
    torch.manual_seed(3)
    loader = Twice(range(9), shuffle=True)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest = taken(iterator)
    other = Twice(range(9), shuffle=True)
    other.load_state_dict(state)
    assert taken(other) == rest


def test_a_derived_class_may_change_its_sampler_as_those_of_torch_do():
    class Forever:
        def __init__(self, sampler):
            self.sampler = sampler

        def __iter__(self):
            while True:
                yield from self.sampler

    def derived(base):
        class Epochs(base):
            def __init__(self, *arguments, **keywords):
                super().__init__(*arguments, **keywords)
                self._DataLoader__initialized = False
                self.batch_sampler = Forever(self.batch_sampler)
                self._DataLoader__initialized = True
                self.endless = super().__iter__()

            def __iter__(self):
                for _ in range(len(self.batch_sampler.sampler)):
                    yield next(self.endless)

        return Epochs(range(5), 2)

    ours, torchs = map(derived, (bf.DataLoader, data.DataLoader))
    assert [taken(ours), taken(ours)] == [taken(torchs), taken(torchs)]


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match="dataset"):
        bf.DataLoader.__init__(Rows.__new__(Rows))
    with pytest.raises(TypeError, match="did you mean shuffle"):
        Twice(range(3), shufle=True)
    with pytest.raises(ValueError, match="num_workers"):
        Twice(range(3), num_workers=-1)


def test_loaders_on_either_path_are_instances_of_brimfuls_class():
    assert isinstance(bf.DataLoader(range(3)), bf.DataLoader)
    assert isinstance(bf.DataLoader([np.arange(3)], seq_len=3), bf.DataLoader)
    assert not isinstance(data.DataLoader(range(3)), bf.DataLoader)
