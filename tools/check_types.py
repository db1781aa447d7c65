"""mypy --strict over the packages and over every folder of tests: `make check`.

Tests are no packages, and each folder has a `conftest`: mypy takes one folder at a time.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MYPY = Path(sys.executable).with_name("mypy")

AS_IT_CAME = ("compare.py", "mutate.py", "fleet.py", "floor.py")
"""Scripts of tests/ that are kept as they came."""
LEFT_OUT = {
    "tests/sim": "planted bugs replace names inside of modules, which no type may allow",
}


def packages() -> list[str]:
    """Every package of ours."""
    found = sorted(ROOT.glob("*/*/src/raybus/*/py.typed")) + sorted(ROOT.glob("*/src/raybus/*/__init__.py"))
    return list(dict.fromkeys(f"raybus.{path.parent.name}" for path in found))


def folders() -> list[str]:
    """Every folder of tests, relative to the repository."""
    found = [*ROOT.glob("libs/*/tests"), *ROOT.glob("services/*/tests"), *ROOT.glob("*/tests"), *ROOT.glob("tests/*")]
    names = [str(path.relative_to(ROOT)) for path in sorted(found) if any(path.glob("*.py"))]
    return [name for name in names if name not in LEFT_OUT]


def check(*arguments: str, path: str = "") -> bool:
    """Run mypy; `path`: where modules of tests are looked for beside the packages."""
    done = subprocess.run(
        [str(MYPY), "--no-error-summary", *arguments],
        cwd=ROOT,
        env=os.environ | {"MYPYPATH": path},
        check=False,
    )
    return done.returncode == 0


def main() -> int:
    """Exit status 1 when anything is wrong."""
    good = check(*(word for name in packages() for word in ("-p", name)))
    exclude = "|".join(AS_IT_CAME)
    for name in folders():
        good &= check(name, "--exclude", exclude, path=os.pathsep.join((name, "tests/integration")))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
