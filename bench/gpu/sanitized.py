"""Runs every kernel once, for compute-sanitizer: small, so that its slowness does not matter."""

from __future__ import annotations

from gpu import timing
from gpu.block_masks import mask_kernel
from gpu.kernels import expansion, measure_unpad


def main() -> None:
    for slots, documents in ((1, 1), (5000, 7), (70_000, 300)):
        kernel, keep = expansion(slots, documents)
        timing.launch(kernel)
        timing.synchronize()
        kernel, keep = mask_kernel(slots, documents, None)
        timing.launch(kernel)
        timing.synchronize()
        del keep
    measure_unpad(3, 500)


if __name__ == "__main__":
    main()
