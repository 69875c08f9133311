"""Views of a batch for kernels that take a mask: block masks of FlexAttention, dense masks of
scaled_dot_product_attention. Rows stay rows. Nothing is read from a device.
"""

from __future__ import annotations

from typing import Any

from brimful import masks
from brimful.extras import require
from brimful.views import Views


class MaskViews(Views):
    """What `Batch` offers to kernels with masks: causal attention inside segments. A tail sees
    itself, so that no query is without a key.

    `window` counts the keys that a token sees, itself included. `prefix_lengths` [segments] are the
    first tokens of each segment, which all of its tokens see.
    """

    __slots__ = ()

    def flex(
        self,
        block_size: int | tuple[int, int] = 128,
        *,
        window: int | None = None,
        prefix_lengths: Any = None,
    ) -> dict[str, Any]:
        """Arguments of `flex_attention(q, k, v, **batch.flex())`: `block_mask`, as below."""
        return {
            "block_mask": self.block_mask(block_size, window=window, prefix_lengths=prefix_lengths)
        }

    def block_mask(
        self,
        block_size: int | tuple[int, int] = 128,
        *,
        window: int | None = None,
        prefix_lengths: Any = None,
    ) -> Any:
        """FlexAttention's BlockMask [rows, 1, L, L], on the device of the batch. Models of
        transformers take it as `attention_mask`, under `attn_implementation="flex_attention"`.

        Its mask_mod looks into tensors of the shape of the columns and nothing else, so that
        flex_attention is compiled once for batches of one shape, however documents vary.

        Checked with torch 2.13, compiled, on CPU: a Llama of transformers 5.24 gives each document
        the logits that it has by itself.

        Raises:
            PlanError: see `brimful.masks.block_mask`; a share of a context-parallel group.
            ModuleNotFoundError: torch is not installed.
        """
        self._refuse_share("block_mask()", "packed_seq_params() is for shares")
        require("torch", "torch", "batch.block_mask")
        return masks.block_mask(
            self._real_ends(),
            block_size,
            window=window,
            prefix_lengths=prefix_lengths,
            rows=self._shape()[0],
            device=getattr(self.cu_seqlens, "device", None),
        )

    def sdpa(
        self, dtype: Any = bool, *, window: int | None = None, prefix_lengths: Any = None
    ) -> dict[str, Any]:
        """Arguments of `scaled_dot_product_attention(q, k, v, **batch.sdpa())`: `attn_mask`, as
        `dense_mask` makes it. `is_causal` must stay away. Under a mask torch has no flash kernel;
        `flex` and `varlen_attn` are faster.
        """
        return {"attn_mask": self.dense_mask(dtype, window=window, prefix_lengths=prefix_lengths)}

    def dense_mask(
        self, dtype: Any = bool, *, window: int | None = None, prefix_lengths: Any = None
    ) -> Any:
        """A mask [rows, 1, L, L]: True where a query may see a key, or, in a float dtype of torch
        or numpy, 0 there and -inf elsewhere, to be added to scores. Models of transformers take it
        as `attention_mask`: either under sdpa, the latter under eager. It has L times the slots of
        the batch.

        Checked with torch 2.13 on CPU: a Llama of transformers 5.24 gives each document the logits
        that it has by itself.

        Raises:
            PlanError: see `brimful.masks.dense`; a share of a context-parallel group.
        """
        self._refuse_share("dense_mask()", "packed_seq_params() is for shares")
        if self._on_host():
            return masks.dense(
                self.cu_seqlens[: len(self.lengths) + 1],
                window=window,
                prefix_lengths=prefix_lengths,
                rows=self._shape()[0],
                dtype=dtype,
            )
        return self._dense_on_device(dtype, window, prefix_lengths)

    def _dense_on_device(self, dtype: Any, window: int | None, prefix_lengths: Any) -> Any:
        """One expression where the batch is: to send a dense mask takes longer than to attend."""
        torch = require("torch", "torch", "batch.dense_mask")
        # Of no slots, on the host: takes and refuses the same dtypes.
        kind = masks.dense(torch.zeros(1, dtype=torch.int32, device="cpu"), dtype=dtype).dtype
        rows, width = self._shape()
        at = torch.arange(width, device=self.cu_seqlens.device)
        row = torch.arange(rows, device=self.cu_seqlens.device)[:, None, None]
        sees = self.block_mask(window=window, prefix_lengths=prefix_lengths).mask_mod
        seen = sees(row, 0, at[:, None], at).reshape(rows, 1, width, width)
        if kind == torch.bool:
            return seen
        return torch.zeros_like(seen, dtype=kind).masked_fill_(~seen, -torch.inf)
