"""What holds for all tests.

No deadlines of hypothesis, as a busy machine would break them: speed is for bench/. Ctrl-C acts as
in a terminal: what a shell starts in the background ignores it, and so would the programs of tests.
"""

import signal
import threading

from hypothesis import settings

settings.register_profile("untimed", parent=settings(), deadline=None)
settings.load_profile("untimed")

if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
