#!/bin/sh
# Makes .venv from requirements.lock (hash-pinned) and installs every package of the workspace into it, editable.
# uv is taken from the PATH or installed beside the environment; indexes and proxies are those that pip and uv are configured with.
set -eu
cd "$(dirname "$0")/.."
UV_VERSION=0.13.9
export UV_PYTHON_DOWNLOADS=never
PYTHON=${PYTHON:-python3.11}
command -v "$PYTHON" >/dev/null 2>&1 || PYTHON=python3
"$PYTHON" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || {
    echo "setup: Python 3.11 is needed and $PYTHON is $("$PYTHON" -V 2>&1); set PYTHON=/path/to/python3.11 (Debian: apt-get install python3.11 python3.11-venv)" >&2; exit 1; }
UV=$(command -v uv || true)
if [ -z "$UV" ]; then
    [ -x .venv-uv/bin/uv ] || { "$PYTHON" -m venv .venv-uv && .venv-uv/bin/pip install -q "uv==$UV_VERSION"; }
    UV=$PWD/.venv-uv/bin/uv
fi
stamp=$(cat requirements.lock pyproject.toml libs/*/pyproject.toml services/*/pyproject.toml cli/pyproject.toml dev/pyproject.toml tools/setup.sh | sha256sum)
[ -x .venv/bin/python ] && [ "$(cat .venv/.raybus-stamp 2>/dev/null || true)" = "$stamp" ] && exit 0
[ -x .venv/bin/python ] || "$UV" venv -q --python "$PYTHON" .venv
"$UV" pip sync -q --python .venv/bin/python --require-hashes requirements.lock
editable=
for package in libs/* services/* cli dev; do editable="$editable -e ./$package"; done
# shellcheck disable=SC2086
"$UV" pip install -q --python .venv/bin/python --no-deps $editable
echo "$stamp" > .venv/.raybus-stamp
