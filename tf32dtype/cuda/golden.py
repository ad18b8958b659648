"""`python -m tf32dtype.cuda.golden --out DIR`: see `tf32dtype.golden.command`."""

import sys

from ..golden.command import main

if __name__ == "__main__":
    sys.exit(main())
