"""Puts this folder on the path: jobworld.py is shared by the tests of job-ctl."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
