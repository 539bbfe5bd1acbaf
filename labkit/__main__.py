"""``python -m labkit`` is ``labkit``."""

import sys

from labkit.cli import main

sys.exit(main())
