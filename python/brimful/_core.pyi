"""
The native core of brimful. Private: use the names of the package brimful.
"""

from __future__ import annotations

__all__: list[str] = [
    "BrimfulError",
    "DeviceError",
    "FormatError",
    "LoaderTimeout",
    "PlanError",
    "ReadError",
    "RingExhausted",
    "StateError",
    "device_available",
    "device_why_not",
]

class BrimfulError(Exception):
    """
    The root of all errors that brimful raises.
    """

class FormatError(BrimfulError, ValueError):
    """
    A file, buffer or token is not what its format promises.
    """

class PlanError(BrimfulError, ValueError):
    """
    Lengths or settings that cannot be packed, mixed or planned.
    """

class StateError(BrimfulError, ValueError):
    """
    A saved state that does not belong to this corpus or these settings.
    """

class ReadError(BrimfulError, RuntimeError):
    """
    A file changed, shrank or could not be read while it was in use.
    """

class DeviceError(BrimfulError, RuntimeError):
    """
    The accelerator or its driver failed.
    """

class RingExhausted(BrimfulError, RuntimeError):
    """
    The consumer keeps every slot of the ring and max_slots forbids another.
    """

class LoaderTimeout(BrimfulError, RuntimeError):
    """
    No batch arrived within the timeout.
    """

def device_available() -> bool: ...
def device_why_not() -> str: ...
