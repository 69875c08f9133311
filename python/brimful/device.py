"""Whether an accelerator can be used. Asking needs no driver, and importing asks nothing."""

from brimful import _core


def available() -> bool:
    """True when this build has a CUDA backend and the driver shows at least one device.

    The first call loads the driver where there is one; it creates no context on any device.
    """
    return _core.device_available()


def why_not() -> str:
    """Why no device can be used, as one sentence for a person; empty when one can.

    The reasons told apart: a build without the CUDA backend, a driver that is absent or older than
    the CUDA runtime of the build (the runtime reports both as one), no device shown to this
    process, and any other failure of the driver, with the name and number of its error.
    """
    return _core.device_why_not()
