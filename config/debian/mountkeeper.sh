#!/bin/sh
# Mountkeeper by the Node.js that came with it, wherever both lie.
lib=$(dirname "$(readlink -f "$0")")/../lib/mountkeeper
# A version that did not come up: the one before runs instead of it.
if [ -r "$lib.former/instead-of" ]; then
  MOUNTKEEPER_INSTEAD_OF=$(cat "$lib.former/instead-of")
  export MOUNTKEEPER_INSTEAD_OF
  lib=$lib.former
fi
exec "$lib/bin/node" "$lib/dist/core/main.js" "$@"
