#!/bin/sh
# Mountkeeper by the Node.js that came with it, wherever both lie.
lib=$(dirname "$(readlink -f "$0")")/../lib/mountkeeper
exec "$lib/bin/node" "$lib/dist/core/main.js" "$@"
