"""gatefold bench --peer: somebody else's gate_up among the providers."""

import os
import shutil

from support import QUICK, ToolTest

PEER = os.environ["GATEFOLD_TEST_PEER"]
BUILD = os.environ["GATEFOLD_TEST_BUILD"]
CELL = ("bench", "--model", "smollm2-135m", "--tokens", "4", "--device", "cpu", "--provider", "gatefold", *QUICK)


class Peer(ToolTest):
    def test_rows(self):
        rows = self.table(*CELL, "--dtype", "fp32", "--peer", f"ones={PEER}")["rows"]
        self.assertEqual([row["provider"] for row in rows], ["gatefold", "peer-ones"])
        peer = rows[1]
        self.assertEqual(peer["implementation"], "peer-ones")
        self.assertEqual(peer["bytes_intermediate"], 0)
        self.assertGreater(peer["time_us"], 0)
        self.assertGreaterEqual(peer["memory_bytes"], 4 * 1536 * 4)

    def test_other_ops_have_no_peer(self):
        rows = self.table("bench", "gemm", *CELL[1:], "--dtype", "fp32", "--peer", f"ones={PEER}")["rows"]
        self.assertEqual([row["provider"] for row in rows], ["gatefold"])

    def test_what_the_peer_refuses(self):
        self.bad(*CELL, "--dtype", "bf16", "--peer", f"ones={PEER}", words=("peer-ones", "returned 1", "576 x 1536"))

    # A static library, which can't be loaded, is turned down as any other file is.
    def test_another_build(self):
        arguments = (*CELL, "--dtype", "bf16", "--layout", "interleaved_gate_up:8", "--peer", f"before={BUILD}")
        if not BUILD.endswith(".a"):
            rows = self.table(*arguments)["rows"]
            self.assertEqual([row["provider"] for row in rows], ["gatefold", "peer-before"])
            self.assertEqual(rows[1]["implementation"], rows[0]["implementation"])
            self.assertEqual(rows[1]["bytes_intermediate"], 0)
            self.assertGreater(rows[1]["time_us"], 0)
            self.assertGreater(rows[0]["ratio_vs_peer-before"], 0)
            self.assertEqual(rows[1]["ratio_vs_peer-before"], 1.0)
            rows = self.table(*arguments, "--impl", "reference")["rows"]
            self.assertEqual({row["implementation"] for row in rows}, {"reference"})
        else:
            self.bad(*arguments, words=("--peer", BUILD))

    def test_the_table_does_not_replace_a_peer(self):
        copy = self.folder / "peer.so"
        shutil.copy(PEER, copy)
        before = copy.read_bytes()
        self.bad(*CELL, "--dtype", "fp32", "--peer", f"ones={copy}", "--output", copy, words=("--output", "--peer"))
        self.assertEqual(copy.read_bytes(), before)

    def test_bad_peers(self):
        self.bad(*CELL, "--peer", PEER, words=("--peer", "NAME=FILE"))
        self.bad(*CELL, "--peer", "x=", words=("--peer", "NAME=FILE"))
        self.bad(*CELL, "--peer", "x=/no/such/library.so", words=("--peer", "/no/such/library.so"))
        self.bad(*CELL, "--peer", "x=libm.so.6", words=("libm.so.6", "gatefold_peer_gate_up", "gatefold.h"))

