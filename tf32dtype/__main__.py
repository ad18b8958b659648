"""`python -m tf32dtype` is the command `tf32dtype`."""

import sys

from ._cli.main import main

sys.exit(main())
