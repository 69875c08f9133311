"""Settings of hypothesis: no deadlines, as a busy machine would break them; speed is for bench/."""

from hypothesis import settings

settings.register_profile("untimed", parent=settings(), deadline=None)
settings.load_profile("untimed")
