"""What an item of a dataset is, so that pieces of documents can be given as items of the same kind.

Token ids alone, or a dict of them with labels or masks; lists, arrays or tensors of some dtype: a
collate function gets what torch's loader would give it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.torch_module import torch_if_installed

_IGNORE_LABEL = -100
_MASKED = ("labels", "loss_mask")

Tokens = npt.NDArray[np.int64]
Mask = npt.NDArray[np.uint8] | None  # None: every token is trained


class ItemForm:
    """The form of the items of one dataset: what `item` is, one of them.

    Args:
        item: token ids, or a dict with `input_ids`.
        masked: some items tell which of their tokens are trained. Where this one does not, the form
            has `labels` for them.

    Attributes:
        masked: whether items of this form tell it.
    """

    def __init__(self, item: Any, *, masked: bool = False) -> None:
        labelled = isinstance(item, Mapping) and any(item.get(key) is not None for key in _MASKED)
        if masked and not labelled:
            item = dict(item) if isinstance(item, Mapping) else {"input_ids": item}
            item["labels"] = item["input_ids"]
        self._columns: dict[str, Callable[[Any], Any]] | None = None
        if isinstance(item, Mapping):
            self._columns = {
                key: _as_kind_of(value)
                for key, value in item.items()
                if key in _VALUES and value is not None
            }
        else:
            self._alone = _as_kind_of(item)
        self.masked = masked or labelled

    def make(self, tokens: Tokens, mask: Mask) -> Any:
        """An item of these tokens [n], with mask [n]."""
        if self._columns is None:
            return self._alone(tokens)
        return {key: give(_VALUES[key](tokens, mask)) for key, give in self._columns.items()}


def own_form(*, masked: bool) -> ItemForm:
    """The form of what torch cannot run as a dataset, such as files: int64 tensors of token ids
    (arrays where torch is not installed); with loss masks, dicts of `input_ids` and `labels`.
    """
    torch = torch_if_installed()
    empty = np.empty(0, np.int64)
    values = empty if torch is None else torch.from_numpy(empty)
    return ItemForm(values, masked=masked)


def _labels(tokens: Tokens, mask: Mask) -> npt.NDArray[Any]:
    return tokens if mask is None else np.where(mask, tokens, _IGNORE_LABEL)


def _loss_mask(tokens: Tokens, mask: Mask) -> npt.NDArray[Any]:
    return np.ones(tokens.size, np.uint8) if mask is None else mask


# By the key of a dict: its values, from the tokens and their mask.
_VALUES: dict[str, Callable[[Tokens, Mask], npt.NDArray[Any]]] = {
    "input_ids": lambda tokens, _: tokens,
    "labels": _labels,
    "loss_mask": _loss_mask,
    "attention_mask": lambda tokens, _: np.ones(tokens.size, np.int64),
}


def _as_kind_of(value: Any) -> Callable[[npt.NDArray[Any]], Any]:
    """A function that gives an array as what `value` is: a tensor, an array, a tuple or a list."""
    if hasattr(value, "detach"):
        torch = torch_if_installed()
        dtype = value.dtype
        return lambda array: torch.from_numpy(array).to(dtype)
    if isinstance(value, np.ndarray):
        kind = value.dtype
        return lambda array: array.astype(kind)
    is_bool = len(value) > 0 and isinstance(value[0], bool)
    sequence = tuple if isinstance(value, tuple) else list
    if is_bool:
        return lambda array: sequence(array.astype(bool).tolist())
    return lambda array: sequence(array.tolist())
