#!/usr/bin/env bash
# Makes the archives of a release of this commit as a snapshot, which publishes nothing, and looks into each of them. Takes minutes: the program
# is compiled for four platforms. With --here it makes the one for this machine alone, as the gate does.
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() { echo "release: $*" >&2; exit 1; }
sums() { if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
config=tools/goreleaser/goreleaser.yaml platforms="linux_amd64 linux_arm64 darwin_amd64 darwin_arm64"
goreleaser=$(tools/goreleaser/fetch.sh)
"$goreleaser" check --quiet --config "$config"
if [ "${1:-}" = --here ]; then
  sed -e "s/^    goos: .*/    goos: [$(go env GOOS)]/" -e "s/^    goarch: .*/    goarch: [$(go env GOARCH)]/" "$config" >"$scratch/here.yaml"
  config=$scratch/here.yaml platforms=$(go env GOOS)_$(go env GOARCH)
fi
"$goreleaser" release --snapshot --clean --config "$config"

cd bin/release
listed=$(ls ./*_checksums.txt)
sums --check --quiet "$listed"
for platform in $platforms; do
  archive=$(ls ./marketlog_*_"$platform".tar.gz)
  base=${archive%.tar.gz}
  for file in "$archive" "$base.cdx.json"; do
    grep -q "  ${file#./}\$" "$listed" || fail "$listed has no ${file#./}"
  done
  tar -xzf "$archive" -C "$scratch"
  root=$scratch/$base
  for file in marketlog LICENSE README.md completions/marketlog.bash completions/_marketlog completions/marketlog.fish \
    man/marketlog.1 man/marketlog-run.1 man/marketlog-engine-fetch.1; do
    [ -s "$root/$file" ] || fail "$archive has no $file"
  done
  [ -x "$root/marketlog" ] || fail "marketlog in $archive cannot be run"
  # What the binary was built for, and that the commit is in it: the version comes from there.
  built=$(go version -m "$root/marketlog")
  for setting in "GOOS=${platform%_*}" "GOARCH=${platform#*_}" CGO_ENABLED=0 -trimpath=true "vcs.revision=$(git rev-parse HEAD)"; do
    grep -q "build[[:space:]]$setting\$" <<<"$built" || fail "marketlog in $archive was not built with $setting"
  done
  parts=$(node -p 'const b = JSON.parse(require("fs").readFileSync(process.argv[1])); b.bomFormat === "CycloneDX" ? b.components.length : 0' "$base.cdx.json")
  [ "$parts" -gt 50 ] || fail "$base.cdx.json names $parts modules"
  if [ "$platform" = "$(go env GOOS)_$(go env GOARCH)" ]; then
    said=$("$root/marketlog" version)
    version=$(awk '$1 == "mod" {print $3}' <<<"$built")
    case $said in "marketlog $version "*) ;; *) fail "$archive says it is $said, and was built as $version" ;; esac
    echo "release: $said"
  fi
  echo "release: $archive is whole: $(tar -tzf "$archive" | wc -l) files, $parts modules in its bill of materials"
done
