"""tests/cuda/check_wgmma_code.py on texts as cuobjdump writes them: what a kernel must hold, and what it must not."""
import importlib.util
from pathlib import Path

PATH = Path(__file__).resolve().parents[1] / "cuda/check_wgmma_code.py"
SPEC = importlib.util.spec_from_file_location("check_wgmma_code", PATH)
check = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check)

GATE_UP = "_ZN8gatefold4cuda4sm906kernelINS1_5ShapeIL_ZNS1_12tile_256x192EEN7cutlass10bfloat16_tELNS1_7ProductE1EEEEEv"
IN_PARTS = GATE_UP.replace("ProductE1E", "ProductE4E")

# As ptxas 13.0 compiled it: P0 is what the loop's condition left.
STALE = """
        /*33b0*/                   R2UR UR4, R14 ;                          /* 0x000000000e0472ca */
        /*33c0*/                   UISETP.GE.AND UP0, UPT, UR4, 0x1, UPT ;  /* 0x000000010400788c */
        /*33d0*/               @P0 R2UR UR5, R12 ;                          /* 0x000000000c0502ca */
        /*33e0*/                   PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0 ;
        /*33f0*/                   PLOP3.LUT P1, PT, PT, PT, UP0, 0x80, 0x0 ;
        /*3400*/               @P1 R2UR UR4, R8 ;
        /*3410*/                   PLOP3.LUT P1, PT, PT, PT, UP0, 0x80, 0x0 ;
        /*3420*/              @UP0 UTMAPF.L2.3D [UR4], [UR8] ;
"""
# The same with the row set under the condition itself, and where it is set whatever the condition.
IN_ORDER = STALE.replace("@P0 R2UR UR5", "@P1 R2UR UR5").replace(
    "UISETP.GE.AND UP0, UPT, UR4, 0x1, UPT ;", "PLOP3.LUT P1, PT, PT, PT, UP0, 0x80, 0x0 ;")  # fmt: skip
UNCONDITIONAL = STALE.replace("@P0 R2UR UR5", "R2UR UR5")
USUAL = "HGMMA.64x192x16.F32.BF16 R24, gdesc[UR12], R24 ;\nUTMALDG.3D [UR8], [UR4] ;\n"


def test_a_coordinate_under_a_stale_predicate_is_found():
    found = check.stale_predicates(STALE)
    assert found == ["@P0 R2UR UR5, R12 ; before @UP0 UTMAPF.L2.3D [UR4], [UR8] ;"]


def test_coordinates_set_in_order_are_not():
    assert check.stale_predicates(IN_ORDER) == []
    assert check.stale_predicates(UNCONDITIONAL) == []


def test_a_tile_leaves_by_the_copy_engine_unless_its_sums_are_in_parts():
    stored = USUAL + "UTMASTG.2D [UR8], [UR4] ;\n"
    assert check.problems_of(GATE_UP, stored) == []
    assert check.problems_of(GATE_UP, USUAL) == [f"{GATE_UP}: no UTMASTG"]
    assert check.problems_of(IN_PARTS, USUAL) == []
    assert check.problems_of(IN_PARTS, stored) == [f"{IN_PARTS}: unexpected UTMASTG"]


def test_local_memory_and_products_by_warp_are_found():
    stored = USUAL + "UTMASTG.2D [UR8], [UR4] ;\nSTL [R1], R2 ;\nHMMA.16816.F32 R4, R8, R12, R4 ;\n"
    assert check.problems_of(GATE_UP, stored) == [f"{GATE_UP}: unexpected HMMA", f"{GATE_UP}: unexpected STL"]


# As ptxas 13.0 compiles cluster_arrive and cluster_wait; and an arrival with .release, or none said.
RELAXED = """
        /*0400*/                   MEMBAR.ALL.CTA ;
        /*0480*/                   UCGABAR_ARV ;
        /*04c0*/                   UCGABAR_WAIT ;
        /*04d0*/                   CCTL.IVALL ;
        /*69a0*/                   MEMBAR.ALL.GPU ;
"""
RELEASE = RELAXED.replace("MEMBAR.ALL.CTA", "MEMBAR.ALL.GPU")


def test_a_wait_for_memory_before_the_blocks_meet_is_found():
    assert check.memory_barriers_before_meeting(RELAXED) == []
    assert check.memory_barriers_before_meeting(RELEASE) == ["MEMBAR.ALL.GPU ; before the blocks have met"]
    assert check.problems_of_copies(GATE_UP, RELEASE) == [f"{GATE_UP}: MEMBAR.ALL.GPU ; before the blocks have met"]


def test_a_kernel_whose_blocks_do_not_meet_may_wait_for_memory():
    assert check.memory_barriers_before_meeting("MEMBAR.ALL.GPU ;\n") == []


# As ptxas 13.0 compiles a load by a lone thread, and by an elected lane.
BY_A_THREAD = """
        /*4ed0*/               @P1 R2UR UR12, R24 ;
        /*4f30*/                   UTMALDG.3D.MULTICAST [UR8], [UR6], UR5 ;
        /*4f40*/               @P0 BRA.U.ANY 0x4ea0 ;
"""
BY_AN_ELECTED_LANE = """
        /*4bf0*/                   ELECT P0, URZ, PT ;
        /*4f20*/                   UTMALDG.3D.MULTICAST [UR8], [UR16], UR34 ;
        /*4f30*/                   SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R19+URZ+0x34000], RZ ;
"""


def test_a_copy_in_a_loop_over_lanes_is_found():
    stored = USUAL + "UTMASTG.2D [UR8], [UR4] ;\n"
    looped = "UTMALDG.3D.MULTICAST [UR8], [UR6], UR5 ; in a loop over lanes"
    assert check.problems_of(GATE_UP, stored + BY_A_THREAD) == [f"{GATE_UP}: {looped}"]
    assert check.problems_of(GATE_UP, stored + BY_AN_ELECTED_LANE) == []
    store_looped = "UTMASTG.2D [UR8], [UR4] ; in a loop over lanes"
    assert check.problems_of(GATE_UP, stored + "@P1 BRA.U.ANY 0x40f0 ;\n") == [f"{GATE_UP}: {store_looped}"]
    decode = GATE_UP.replace("4sm90", "11sm90_decode")
    assert check.problems_of_copies(decode, BY_A_THREAD) == [f"{decode}: {looped}"]
    assert not check.PRODUCT.search(decode)


# As ptxas 13.0 compiles two wgmmas of a k-step, of a slot's number as it lies in a lane, and of one that was shuffled.
OUT_OF_LANES = """
        /*1820*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR16], R24 ;
        /*1830*/                   R2UR UR18, R10 ;
        /*1840*/                   R2UR UR19, R11 ;
        /*18a0*/                   HGMMA.64x128x16.F32.BF16 R88, gdesc[UR28], R88 ;
"""
IN_UNIFORM_REGISTERS = """
        /*15f0*/                   R2UR UR11, R5 ;
        /*16a0*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24 ;
        /*16b0*/                   UIADD3 UR4, UR11, 0x200, URZ ;
        /*1700*/                   HGMMA.64x128x16.F32.BF16 R88, gdesc[UR4], R88, gsb0 ;
        /*1710*/               @P1 BRA 0x14c0 ;
        /*1720*/                   R2UR UR11, R6 ;
        /*1730*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24 ;
"""


def test_descriptors_brought_out_of_lanes_are_found():
    found = ["2 R2UR before HGMMA.64x128x16.F32.BF16 R88, gdesc[UR28], R88 ;"]
    assert check.descriptors_out_of_lanes(OUT_OF_LANES) == found
    assert check.descriptors_out_of_lanes(IN_UNIFORM_REGISTERS) == []
