#!/bin/sh
# Lock requirements with hashes for Python 3.12 to 3.14 and every system: `sh scripts/lock.sh`.
# With --check: say whether every lock has what its .in asks for, without a network.
set -eu
cd "$(dirname "$0")/.."

if [ "${1:-}" = --check ]; then
    exec .venv/bin/python -m scripts.check_locks
fi
for kind in base dev prod; do
    .venv/bin/uv pip compile --universal --python-version 3.12 --generate-hashes --no-emit-index-url \
        --no-header --no-annotate --quiet "requirements/$kind.in" -o "requirements/$kind.txt"
done
