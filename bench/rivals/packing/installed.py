"""Finding one module of a package whose other parts need more packages than a packer does."""

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def file_of(package: str, path: str) -> Path | None:
    """A file of an installed package, which is not imported; None where it is not installed."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    file = Path(spec.submodule_search_locations[0], path)
    return file if file.is_file() else None


def module_alone(package: str, path: str) -> ModuleType | None:
    """That file as a module of its own; it must not import its neighbours."""
    file = file_of(package, path)
    if file is None:
        return None
    spec = spec_from_file_location(f"{package}_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
