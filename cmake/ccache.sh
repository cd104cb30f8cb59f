#!/bin/sh
# ccache, to which paths below the sources are relative ones: clones of the repository share what they have compiled.
CCACHE_BASEDIR=${0%/cmake/*} CCACHE_NOHASHDIR=true exec ccache "$@"
