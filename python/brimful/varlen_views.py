"""Views of a batch for kernels that attend over variable lengths: each gives the keyword arguments
that one consumer takes, straight from `cu_seqlens`. Nothing is read from a device, so nothing waits
for it; tokens are not copied.

Kernels that need CUDA packages cannot be run everywhere: a docstring says what a view was checked
against, and what was only read in the sources of the version that it names.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from brimful import masks
from brimful._core import PlanError
from brimful.views import Views, checked_window


@dataclass(frozen=True)
class PackedSeqParams:
    """Megatron-LM's class of this name, where megatron.core is not imported."""

    qkv_format: str
    cu_seqlens_q: Any
    cu_seqlens_kv: Any
    cu_seqlens_q_padded: Any
    cu_seqlens_kv_padded: Any
    max_seqlen_q: int
    max_seqlen_kv: int


class VarlenViews(Views):
    """What `Batch` offers to varlen consumers. Rows are flattened for them: tokens are [1, total]
    or [total, ...], a row's start is a boundary, and a tail is a segment of its own.
    """

    __slots__ = ()

    def transformers(self, *, seq_idx: bool = False) -> dict[str, Any]:
        """Arguments of a model of transformers: `model(**batch.transformers())`. Needed under
        flash-attention. Under sdpa, eager and flex models look for documents in positions, so that
        these must restart in each (as they do by default); where they continue, give such models
        `model(**batch, attention_mask=batch.dense_mask())`, or `block_mask()` for flex.

        The batch's `input_ids`, `labels`, `shift_labels` and `position_ids`, flattened to
        [1, total]; `cu_seq_lens_q` and `cu_seq_lens_k`, one and the same tensor; `max_length_q` and
        `max_length_k`, Python ints; and `use_cache=False`, because with a cache models look for no
        documents. There is no `attention_mask`: flash attention would go by it instead.

        Args:
            seq_idx: adds `seq_idx`, for hybrid models with state-space layers, which leak state
                from document to document without it.

        Checked with transformers 5.24: a Llama whose attention goes by these arguments alone gives
        each document the logits that it has by itself; all fields equal those of
        DataCollatorWithFlattening. That flash-attention takes them so was read in its sources.

        Raises:
            PlanError: no `position_ids` in the batch, without which models count positions over all
                documents; a share of a context-parallel group.
        """
        self._refuse_share("transformers()", "Megatron-LM takes shares: packed_seq_params()")
        if "position_ids" not in self:
            raise PlanError(
                "position_ids are not in this batch, and models would count positions on from "
                'document to document: ask for them with fields=("input_ids", ..., "position_ids")'
            )
        names = ("input_ids", "labels", "shift_labels", "position_ids")
        arguments = {name: self[name].reshape(1, -1) for name in names if name in self}
        if seq_idx:
            arguments["seq_idx"] = self.seq_idx().reshape(1, -1)
        return arguments | {
            "cu_seq_lens_q": self.cu_seqlens,
            "cu_seq_lens_k": self.cu_seqlens,
            "max_length_q": self.max_seqlen,
            "max_length_k": self.max_seqlen,
            "use_cache": False,
        }

    def flash_attn(self, *, window: int | None = None) -> dict[str, Any]:
        """Arguments of `flash_attn_varlen_func(q, k, v, **batch.flash_attn())`, q, k and v of the
        shape [total, heads, dim].

        Args:
            window: keys that a token sees, itself included. (flash-attention counts those before
                it: it is given window - 1.)

        Read in the sources of flash-attn 2.8.3 (2 and hopper), not run here. The first versions of
        flash_attn.cute take no `max_seqlen_q` and `max_seqlen_k`: leave them out there.
        """
        self._refuse_share("flash_attn()", "a ring of ranks takes cu_seqlens and max_seqlen")
        arguments: dict[str, Any] = {
            "cu_seqlens_q": self.cu_seqlens,
            "cu_seqlens_k": self.cu_seqlens,
            "max_seqlen_q": self.max_seqlen,
            "max_seqlen_k": self.max_seqlen,
            "causal": True,
        }
        if window is not None:
            arguments["window_size"] = (checked_window(window) - 1, 0)
        return arguments

    def varlen_attn(self, *, window: int | None = None) -> dict[str, Any]:
        """Arguments of torch's own `varlen_attn(q, k, v, **batch.varlen_attn())`
        (torch.nn.attention.varlen), q, k and v of the shape [total, heads, dim].

        Args:
            window: keys that a token sees, itself included.

        Checked against the signature in torch 2.13; the kernel, which needs CUDA, was not run here.
        torch 2.10 says `is_causal=True` where later ones have `window_size`.
        """
        self._refuse_share("varlen_attn()", "a ring of ranks takes cu_seqlens and max_seqlen")
        return {
            "cu_seq_q": self.cu_seqlens,
            "cu_seq_k": self.cu_seqlens,
            "max_q": self.max_seqlen,
            "max_k": self.max_seqlen,
            "window_size": (-1 if window is None else checked_window(window) - 1, 0),
        }

    def transformer_engine(self, *, window: int | None = None) -> dict[str, Any]:
        """Arguments of TransformerEngine's `DotProductAttention` for the format "thd".

        `cu_seqlens_q` and `cu_seqlens_kv` count real tokens, `..._padded` are where segments begin.
        Without alignment gaps the two are the same object, which keeps flash-attention eligible.
        A tail is a segment as long as it is. In a share of a context-parallel group these speak of
        the whole batch, as TransformerEngine wants, which takes every document to be cut by itself.

        Args:
            window: keys that a token sees, itself included.

        Read in the sources of TransformerEngine (commit d0067d0d), not run here.

        Raises:
            PlanError: a share of a context-parallel group that is cut by sequences.
        """
        if self.cp_split == "sequence":
            raise PlanError(
                f"this batch is share {self.cp_rank} of {self.cp_size} of sequences, and in the "
                'format "thd" every document is cut by itself: ask the loader for '
                'cp_split="document", with an align= that is a multiple of 2 x cp_size'
            )
        real = self._real_cu_seqlens()
        arguments: dict[str, Any] = {
            "qkv_format": "thd",
            "attn_mask_type": "padding_causal",
            "cu_seqlens_q": real,
            "cu_seqlens_kv": real,
            "cu_seqlens_q_padded": self.cu_seqlens,
            "cu_seqlens_kv_padded": self.cu_seqlens,
            "max_seqlen_q": self.max_seqlen,
            "max_seqlen_kv": self.max_seqlen,
        }
        if window is not None:
            arguments["window_size"] = (checked_window(window) - 1, 0)
        return arguments

    def packed_seq_params(self) -> Any:
        """Megatron-LM's PackedSeqParams: its own class once megatron.core is imported, else one of
        the same fields. What it says is what `transformer_engine()` says.

        Checked against the class of megatron-core 0.16.1; attention was not run here.
        """
        module = sys.modules.get("megatron.core.packed_seq_params")
        made: Any = PackedSeqParams if module is None else module.PackedSeqParams
        arguments = self.transformer_engine()
        del arguments["attn_mask_type"]
        return made(**arguments)

    def xformers(self) -> dict[str, list[int]]:
        """Arguments of xFormers' `BlockDiagonalMask.from_seqlens(**batch.xformers())`: lengths as
        Python ints. Then `.make_causal()`, and `.make_local_attention(window)` of the causal one,
        where a token counts itself; q, k and v are [1, total, heads, dim].

        Checked with xformers 0.0.35: its masks equal `dense_mask()`, windows too. Its kernels were
        not run here.
        """
        self._refuse_share("xformers()", "packed_seq_params() is for shares")
        return {"q_seqlen": np.diff(self._real_ends()).tolist()}

    def nested(self) -> dict[str, Any]:
        """Arguments of `torch.nested.nested_tensor_from_jagged(values, **batch.nested())`, values
        of the shape [total, ...]: int64 offsets, and the shortest and longest segment as Python
        ints, which spares a question to the device. An alignment gap is the end of its segment.

        Checked with torch 2.13 on CPU, where there is no causal attention over such tensors.
        """
        self._refuse_share("nested()", "packed_seq_params() is for shares")
        ends = self._real_ends()
        return {
            "offsets": self._tensor(ends.astype(np.int64)),
            "min_seqlen": int(np.diff(ends).min()),
            "max_seqlen": self.max_seqlen,
        }

    def seq_idx(self) -> Any:
        """int32, of the shape of the columns: the number of each token's segment in `cu_seqlens`,
        a tail's like any other. For causal-conv1d and Mamba-2 (`seq_idx=`). A fresh tensor at each
        call: ask once a batch.

        Checked with the reference of causal-conv1d 1.7.0, which is written in torch: each segment
        comes out as it does alone. Its kernels, and those of mamba-ssm 2.3.2, were only read: they
        compare neighbours, so that numbers need not begin at 0 in each row.
        """
        self._refuse_share("seq_idx()", "state-space layers need whole sequences")
        return self._tensor(masks.seq_idx(self._real_ends()).reshape(self._shape()))

    def linear_attention(self) -> dict[str, Any]:
        """Arguments of flash-linear-attention's kernels: `cu_seqlens` [segments + 1], and the same
        on the host, which spares a question to the device. q, k and v are [1, total, heads, dim].

        Its kernels remember what they derive from `cu_seqlens` by the identity of the tensor. The
        tensors of a batch are its own and never written again, so what is remembered stays true;
        give the same ones to all layers.

        Read in the sources of fla-core 0.6.0, not run here.
        """
        self._refuse_share("linear_attention()", "its kernels make shares themselves")
        host = self.cu_seqlens
        if not self._on_host():
            host = sys.modules["torch"].from_numpy(self.cu_seqlens_host)
        return {"cu_seqlens": self.cu_seqlens, "cu_seqlens_cpu": host}

    def _real_cu_seqlens(self) -> Any:
        """Offsets of the real tokens alone; cu_seqlens itself where there are no gaps."""
        if int(self.lengths.sum()) == self.cu_seqlens_host[-1]:
            return self.cu_seqlens
        ends = np.zeros(len(self.cu_seqlens_host), np.int32)
        np.cumsum(self.lengths, out=ends[1 : len(self.lengths) + 1])
        ends[len(self.lengths) + 1 :] = ends[len(self.lengths)]
        return self._tensor(ends)
