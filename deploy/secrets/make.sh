#!/bin/sh
# Writes the secrets that docker-compose.yml mounts, each once; what exists stays.
set -eu
cd "$(dirname "$0")"
umask 077
# The containers run as other users, and compose mounts a file with the mode that it has: the files can be read by whoever
# reaches them, and this folder lets only its owner, and root, reach them.
chmod 700 .
for name in clickhouse_password redis_password pepper analyst_password reader_password; do
  [ -s "$name" ] || head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$name"
  chmod 444 "$name"
done
chmod 400 analyst_password # only its hash is mounted
for user in analyst reader; do
  [ ! -s "$user.xml" ] || continue
  if command -v sha256sum >/dev/null; then hash=$(sha256sum <"${user}_password"); else hash=$(shasum -a 256 <"${user}_password"); fi
  sed "s/[A-Z]*_PASSWORD_SHA256/${hash%% *}/" "../clickhouse/$user.xml" >"$user.xml.new"
  chmod 444 "$user.xml.new"
  mv "$user.xml.new" "$user.xml"
done
