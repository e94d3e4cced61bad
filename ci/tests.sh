#!/bin/sh
# All tests, two at a time. Up to three that fail are run once more, alone: hundreds of them start
# servers, press Ctrl-C and wait for one another on a machine whose two cores are never idle, and one
# that fails only then has met its clock, not a fault. It is named at the end, to be mended.
set -u
cd "$(dirname "$0")/.." || exit

bin=.venv/bin
failed=.pytest_cache/v/cache/lastfailed

"$bin/python" -m pytest -n 2 --dist loadgroup "$@"
status=$?
[ "$status" -eq 1 ] && [ -f "$failed" ] || exit "$status"
# xdist writes the group of a test behind its name, which nobody else understands.
names=$("$bin/python" - "$failed" <<'END'
import json, pathlib, sys

path = pathlib.Path(sys.argv[1])
ids = json.loads(path.read_text())
names = [id.rpartition("@")[0] if id.rfind("@") > id.rfind("]") else id for id in ids]
path.write_text(json.dumps(dict.fromkeys(names, True)))
print(*names, sep="\n")
END
)
[ "$(echo "$names" | wc -l)" -le 3 ] || exit "$status"

echo
echo 'Failed beside others; now alone:'
echo "$names"
"$bin/python" -m pytest --last-failed --last-failed-no-failures none -n 0 "$@" || exit "$?"
echo
echo 'Passed alone, but not beside others. They lean on how fast the machine is: mend them.'
echo "$names"
