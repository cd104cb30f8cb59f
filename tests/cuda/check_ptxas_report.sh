#!/bin/sh
# No kernel may spill registers or have a stack frame, where accumulators would lie that a function is called with: every
# *.ptxas report below the given folder says "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" for every
# kernel, and there is a report for each object.
folder=$1
reports=$(find "$folder" -name '*.cu.o.ptxas')
objects=$(find "$folder" -name '*.cu.o' | wc -l)
kernels=0
failed=0
for report in $reports; do
  here=$(grep -c 'bytes spill stores' "$report")
  kernels=$((kernels + here))
  if [ "$here" -eq 0 ]; then
    echo "$report: reports no kernel"
    failed=1
  fi
  if grep -B1 'bytes spill stores' "$report" | grep -E '[1-9][0-9]* bytes spill (stores|loads)'; then
    echo "$report: a kernel spills"
    failed=1
  fi
  if grep -B1 -E '[1-9][0-9]* bytes stack frame' "$report"; then
    echo "$report: a kernel has a stack frame"
    failed=1
  fi
done
count=$(echo "$reports" | grep -c .)
if [ "$count" -ne "$objects" ] || [ "$objects" -eq 0 ]; then
  echo "$folder: $objects CUDA objects, but $count reports"
  failed=1
fi
echo "$kernels kernels in $count objects"
exit $failed
