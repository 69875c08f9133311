"""The same program with torch's DataLoader and with brimful's: what both did, compared whole."""

import random
import re
import warnings

import numpy as np
import torch
from torch.utils import data

import brimful as bf
from brimful.drop_in.torch_loader import TorchLoader

WORKERS = (0, 1, 2)


def same(program):
    """Runs `program(DataLoader)` with both classes under the same seeds. What it returned or
    raised, the warnings it gave, and where it left the global generators, must be equal.

    Returns what it returned, or the exception.
    """
    torchs, ours = (_outcome(program, kind) for kind in (data.DataLoader, _made))
    assert ours == torchs
    return torchs[0]


def _made(*args, **arguments):
    loader = bf.DataLoader(*args, **arguments)
    assert isinstance(loader, TorchLoader)
    return loader


def _outcome(program, kind):
    torch.manual_seed(11)
    random.seed(12)
    np.random.seed(13)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(program(kind))
        except Exception as error:
            result = type(error), _message(error)
    told = [(one.category, _message(one.message)) for one in caught]
    return result, told, torch.rand(1).item(), random.random(), np.random.rand()


def _message(error):
    """Without what differs by design: names of classes, addresses and processes."""
    text = re.sub(r"0x[0-9a-f]+|pid\(s\) [\d, ]+", "#", str(error))
    text = re.sub(r"TorchLoader|\w+\.<locals>\._made", "DataLoader", text)
    return re.sub(r'File ".*', "", re.sub(r"\b(Watched|_\w+Process)\w*\b", "Iterator", text))


def plain(value):
    """Tensors and arrays as kind, dtype and list, all the way down, in containers of their kind."""
    if isinstance(value, torch.Tensor):
        return "tensor", str(value.dtype), value.is_pinned(), value.tolist()
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return type(value).__name__, [(key, plain(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value).__name__, [plain(item) for item in value]
    return value
