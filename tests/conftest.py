"""What holds for all tests."""

from hypothesis import settings

settings.register_profile("goodput", deadline=None)  # a busy machine is no failure: speed lives in bench/
settings.load_profile("goodput")
