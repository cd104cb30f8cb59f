#!/bin/sh
# Runs a compiler command. What ptxas reports on stderr goes to <object>.ptxas; everything else stays on stderr.
object=
previous=
for argument in "$@"; do
  [ "$previous" = "-o" ] && object=$argument
  previous=$argument
done
[ -n "$object" ] || exec "$@"

log=$object.log
"$@" 2>"$log"
code=$?
report='^(ptxas info|[[:space:]]+[0-9]+ bytes stack frame)'
grep -E "$report" "$log" >"$object.ptxas"
grep -Ev "$report" "$log" >&2
rm -f "$log"
exit $code
