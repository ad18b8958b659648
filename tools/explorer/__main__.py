import sys

from .build import BuildError, build

try:
    print(build())
except BuildError as error:
    sys.exit(str(error))
