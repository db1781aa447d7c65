"""Runs inside the Python that an image will hold: writes the modules that a program needs, as byte code only.

Usage: python3.11 -I -S freeze.py STAGE OUT MODULE [LAZY ...]

STAGE is a folder with the program's own packages; importing MODULE from there tells what it needs, and LAZY names what
it and the standard library import only when they come to it. OUT receives `x/y.pyc` for modules in Python and `*.so`
for the others, with relative paths as on sys.path. Standard library only: nothing else exists there.
"""

import importlib
import py_compile
import shutil
import sys
from pathlib import Path


def freeze(stage: Path, out: Path, names: list[str]) -> None:
    before = list(sys.path)
    sys.path.insert(0, str(stage))
    for name in names:
        importlib.import_module(name)
    roots = [stage, *map(Path, before)]
    files: set[str] = {getattr(module, "__file__", None) or __file__ for module in list(sys.modules.values())}
    for file in sorted(map(Path, files - {__file__})):
        root = next(root for root in roots if root in file.parents)
        relative = file.relative_to(root)
        target = out / (relative if file.suffix == ".so" else relative.with_suffix(".pyc"))
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".so":
            shutil.copy(file, target)
            continue
        # The path in tracebacks is the one in the image, which also makes the result independent of where it was built.
        py_compile.compile(
            str(file),
            cfile=str(target),
            dfile=f"/usr/lib/python3.11/{relative}",
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )


if __name__ == "__main__":
    freeze(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
