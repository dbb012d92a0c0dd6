#!/bin/sh
# Writes the secrets that docker-compose.yml mounts, each once; what exists stays.
set -eu
cd "$(dirname "$0")"
umask 077
# The containers run as other users, and compose mounts a file with the mode that it has: the files can be read by whoever
# reaches them, and this folder lets only its owner, and root, reach them.
chmod 700 .
for name in clickhouse_password redis_password pepper analyst_password; do
  [ -s "$name" ] || head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$name"
  chmod 444 "$name"
done
chmod 400 analyst_password # only its hash is mounted
if [ ! -s analyst.xml ]; then
  if command -v sha256sum >/dev/null; then hash=$(sha256sum <analyst_password); else hash=$(shasum -a 256 <analyst_password); fi
  sed "s/ANALYST_PASSWORD_SHA256/${hash%% *}/" ../clickhouse/analyst.xml >analyst.xml.new
  chmod 444 analyst.xml.new
  mv analyst.xml.new analyst.xml
fi
