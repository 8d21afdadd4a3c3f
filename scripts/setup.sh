#!/bin/sh
# Make .venv with the locked requirements: `sh scripts/setup.sh base|dev`.
# Does nothing when they are installed already. Says in one sentence what is missing.
set -eu
cd "$(dirname "$0")/.."
kind=${1:-base}
lock=requirements/$kind.txt

complain() {
    echo "error: $1" >&2
    exit 1
}

# A command that only says "not found" (a shim) is no Python: each is tried by running it.
find_python() {
    for name in python3.13 python3.14 python3.12 python3; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; then
            echo "$name"
            return
        fi
    done
    return 1
}

if ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; then
    python=$(find_python) || complain \
        "Python 3.12 or newer is needed and none was found; install python3.13 and try again."
    echo "Making .venv with $("$python" --version) ..."
    rm -rf .venv
    "$python" -m venv .venv >/dev/null 2>&1 || complain \
        "$python has no venv module; install it (Debian: apt install python3-venv) and try again."
fi

# The stamp bears the lock's checksum, so a changed lock installs again.
sum=$(cksum <"$lock")
stamp=.venv/installed-$kind
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$sum" ]; then
    echo "Installing $lock ..."
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
        --require-hashes -r "$lock" || complain \
        "The packages of $lock could not be installed; see the lines above, check the network and try again."
    echo "$sum" >"$stamp"
    # The development lock holds the base.
    if [ "$kind" = dev ]; then cksum <requirements/base.txt >.venv/installed-base; fi
fi
