"""Settings every test shares."""

import os

from hypothesis import settings

# In CI the examples are the same every time; on a developer's machine each run looks somewhere new.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")
