#!/bin/sh
# Writes the secrets that docker-compose.yml mounts, each once; what exists stays.
set -eu
cd "$(dirname "$0")"
umask 077
for name in clickhouse_password redis_password pepper; do
  [ -s "$name" ] || head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$name"
  # The containers run as other users.
  chmod 444 "$name"
done
