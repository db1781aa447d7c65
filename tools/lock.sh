#!/bin/sh
# Writes requirements.lock: versions and hashes of all third-party packages, without any index's name (ADR 0001).
set -eu
cd "$(dirname "$0")/.."
UV=$(command -v uv || echo .venv-uv/bin/uv)
"$UV" lock -q
"$UV" export -q --no-emit-workspace --all-groups --all-packages --no-header -o requirements.lock
