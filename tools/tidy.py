"""Style as a test: sizes of files, functions and parameter lists (style.md §2.14). Exit status 1 with a list."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_FILE, MAX_FUNCTION, MAX_PARAMETERS, MAX_MAIN = 400, 70, 6, 50

EXCEPTIONS = {
    "tests/golden/compare.py": "the recorder of KubeRay's behaviour, kept as one file that runs anywhere",
}
"""File -> why its size is accepted."""


def problems(path: Path, name: str) -> Iterator[str]:
    """One sentence for each rule that the file breaks."""
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    limit = MAX_MAIN if path.name == "__main__.py" else MAX_FILE
    if lines >= limit:
        yield f"{name}: {lines} lines, fewer than {limit} are allowed: split it by idea"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length >= MAX_FUNCTION:
                yield f"{name}:{node.lineno}: {node.name} has {length} lines, fewer than {MAX_FUNCTION} are allowed"
            given = [a for a in (*node.args.posonlyargs, *node.args.args) if a.arg not in ("self", "cls")]
            if len(given) > MAX_PARAMETERS:
                yield f"{name}:{node.lineno}: {node.name} has {len(given)} parameters, at most {MAX_PARAMETERS}"


def main() -> int:
    """Check every Python file that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py"], check=True, capture_output=True, text=True
    ).stdout.split()
    found = [
        line for name in listed if name not in EXCEPTIONS and Path(name).exists() for line in problems(Path(name), name)
    ]
    sys.stdout.writelines(line + "\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
