#!/bin/sh
# Makes files, each of which is on the disk before the next; prints how many in a second.
set -e
began=$(date +%s.%N)
for number in $(seq "$1"); do
    head -c 4096 /dev/urandom >"file-$number"
    sync "file-$number"
done
ended=$(date +%s.%N)
awk "BEGIN { printf \"{\\\"files_per_second\\\": %.3f}\n\", $1 / ($ended - $began) }"
