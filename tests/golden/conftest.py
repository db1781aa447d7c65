"""Puts this folder on the path: compare.py, the recordings' own tool, is a script and no package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
