"""What holds for all tests.

No deadlines of hypothesis, as a busy machine would break them: speed is for bench/. Ctrl-C acts as
in a terminal: what a shell starts in the background ignores it, and so would the programs of tests.
What torch says of two workers where there is one core is ignored in these programs too.
"""

import os
import signal
import threading

from hypothesis import settings

settings.register_profile("untimed", parent=settings(), deadline=None)
settings.load_profile("untimed")

os.environ["PYTHONWARNINGS"] = "ignore:This DataLoader will create"

if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
