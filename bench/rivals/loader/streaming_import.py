"""MosaicML Streaming, imported without torchvision, of which rows of tokens need nothing."""

import sys
from types import ModuleType

# These look for torchvision too, and do without.
import transformers.feature_extraction_utils
import transformers.tokenization_utils_base  # noqa: F401

for name, attribute in (
    ("torchvision", None),
    ("torchvision.datasets", "VisionDataset"),
    ("torchvision.transforms", None),
    ("torchvision.transforms.functional", "to_tensor"),
):
    module = ModuleType(name)
    if attribute is not None:
        setattr(module, attribute, object)
    sys.modules.setdefault(name, module)

from streaming import MDSWriter, StreamingDataset  # noqa: E402
from streaming.base.util import clean_stale_shared_memory  # noqa: E402

__all__ = ["MDSWriter", "StreamingDataset", "clean_stale_shared_memory"]
