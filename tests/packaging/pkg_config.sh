#!/bin/sh
# Builds and runs both consumers with what pkg-config says.   pkg_config.sh LIBDIR CC CXX [--static]
set -eu
libdir=$1 cc=$2 cxx=$3 static=${4:-}
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

PKG_CONFIG_PATH=$libdir/pkgconfig
LD_LIBRARY_PATH=$libdir
export PKG_CONFIG_PATH LD_LIBRARY_PATH
cflags=$(pkg-config --cflags gatefold)
libs=$(pkg-config --libs $static gatefold)

# The flags are lists of words.
# shellcheck disable=SC2086
"$cc" -std=c11 "$here/consumer.c" $cflags $libs -o "$work/consumer_c"
# shellcheck disable=SC2086
"$cxx" -std=c++20 "$here/consumer.cpp" $cflags $libs -o "$work/consumer_cpp"
"$work/consumer_c"
"$work/consumer_cpp"
