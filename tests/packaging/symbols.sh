#!/bin/sh
# The library exports what its headers declare, no less and no more, and its SONAME carries the major version.
#   symbols.sh LIBRARY MAJOR HEADER...
set -eu
library=$1 major=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm --dynamic --defined-only "$library" | awk '{ print $NF }' | sort >"$work/exported"
sed -nE 's/^GATEFOLD_API .*[ *](gatefold_[a-z_]+)\(.*/\1/p' "$@" | sort >"$work/declared"
[ -s "$work/declared" ] || { echo "no declaration was found in $*"; exit 1; }
diff "$work/declared" "$work/exported" || { echo "declared (<) and exported (>) differ"; exit 1; }

soname=$(readelf --dynamic "$library" | sed -nE 's/.*\(SONAME\).*\[(.*)\]/\1/p')
[ "$soname" = "libgatefold.so.$major" ] || { echo "SONAME is $soname, expected libgatefold.so.$major"; exit 1; }
echo "$(wc -l <"$work/exported") symbols, SONAME $soname"
