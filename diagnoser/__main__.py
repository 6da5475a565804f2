"""`python -m diagnoser`."""

import sys

from diagnoser.cli import main

sys.exit(main())
