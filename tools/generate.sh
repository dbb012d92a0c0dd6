#!/usr/bin/env bash
# Generates the Go code of the events, then moves the image that `buf breaking` compares with.
# The image moves only when the change is compatible: an incompatible one is shown, and stands
# only after the image has been removed by hand, which is right while no log of that shape exists.
set -euo pipefail
cd "$(dirname "$0")/../schemas"
buf=../tools/node_modules/.bin/buf
image=events/events.binpb

"$buf" lint
"$buf" generate
if [ -f "$image" ] && ! "$buf" breaking --against "$image"; then
  echo "generate: the code is generated, but logs already written could not be read with it;" >&2
  echo "generate: if no such log exists, remove schemas/$image and run this again" >&2
  exit 1
fi
"$buf" build --exclude-source-info -o "$image"
