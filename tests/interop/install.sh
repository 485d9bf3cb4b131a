#!/usr/bin/env bash
# Installs the npm packages of package.json into DIR (never into the checkout).
# Usage: install.sh DIR      A second run with the same package.json does nothing.
set -euo pipefail

if [ $# -ne 1 ]; then
  echo "usage: install.sh DIR" >&2
  exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)

# The copy of package.json is written last: it stands for "everything is there".
if cmp -s "$here/package.json" "$dir/package.json" && [ -d "$dir/node_modules/moleculer" ]; then
  exit 0
fi
rm -rf "$dir/node_modules" "$dir/package.json"
staging=$(mktemp -d "$dir/.staging.XXXXXX")
trap 'rm -rf "$staging"' EXIT
cp "$here/package.json" "$staging/"
(cd "$staging" && npm install --no-package-lock --no-audit --no-fund --loglevel=error >&2)
mv "$staging/node_modules" "$dir/node_modules"
cp "$here/package.json" "$dir/package.json"
