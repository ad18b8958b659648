"""`python -m tf32dtype` is the command `tf32dtype`."""

import sys

from .cli import main

sys.exit(main())
