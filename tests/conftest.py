"""For all tests: a machine under load is no failure, so hypothesis sets no deadline for single examples."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
