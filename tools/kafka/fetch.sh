#!/usr/bin/env bash
# Puts the jars of a real Apache Kafka broker into the user's cache folder, once, for the tests of
# the kafka tier. Without Maven and Java it says so and succeeds: that tier is then skipped.
set -euo pipefail
cd "$(dirname "$0")"
version=$(sed -n '/kafka_2.13/{n;s/[^0-9.]//g;p;}' pom.xml)

cache=${XDG_CACHE_HOME:-$HOME/.cache}
[ "$(uname)" = Darwin ] && cache=$HOME/Library/Caches
jars=$cache/marketlog/kafka-$version

# A folder of an earlier version of this script lacks the tools.
[ -e "$jars/kafka-tools-$version.jar" ] && exit 0
for program in java mvn; do
  if ! command -v "$program" >/dev/null; then
    echo "kafka: no $program on PATH: the tests on real Kafka will be skipped" >&2
    exit 0
  fi
done

mkdir -p "$cache/marketlog"
staging=$(mktemp -d "$jars.XXXXXX")
trap 'rm -rf "$staging"' EXIT
echo "kafka: fetching Apache Kafka $version into $jars"
mvn -q -B -Dstyle.color=never dependency:copy-dependencies -DoutputDirectory="$staging"
# A rename, so that a broken download never looks complete.
if [ -d "$jars" ]; then
  cp "$staging"/*.jar "$jars"
else
  mv "$staging" "$jars"
fi
