"""Puts this folder on the path: watcher_world.py is shared by the tests of the watcher."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
