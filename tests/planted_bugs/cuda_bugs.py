"""Faults in the CUDA kernels. To be run on a machine that has the GPU."""
from bug import Bug

OPTIONS = ["-DGATEFOLD_CPU=OFF"]
PROGRAMS = ["cuda/gatefold_cuda_tests"]

SM90 = "*Products*sm90*:*Exact*sm90*:*RelativeL2*sm90*"
SM80 = "*Products*sm80*:*Exact*sm80*:*RelativeL2*sm80*"
VECTORS = "*Numeric*vectors*:*Exact*vectors*"

BUGS = [
    Bug("sm90", "drops a last k-step that is not whole", "src/cuda/sm90/geometry.cpp",
        "ceil_div(problem.hidden_size, Config::tile_k)",
        "std::max<std::int64_t>(1, problem.hidden_size / Config::tile_k)", SM90),
    Bug("sm90", "skips a last tile of columns that is not whole", "src/cuda/sm90/geometry.cpp",
        "tiles_of(problem.intermediate_size, config.columns(), config.cluster_n)",
        "tiles_of(std::max<std::int64_t>(config.columns(), problem.intermediate_size / config.columns() * "
        "config.columns()), config.columns(), config.cluster_n)", SM90),
    Bug("sm90", "splits tiles whose boxes are not full", "src/cuda/sm90/geometry.cpp",
        "c.halves() == 2 && full_boxes &&", "c.halves() == 2 && (full_boxes || tiles > 0) &&", SM90),
    Bug("sm90", "brings the body's blocks again after the body", "src/cuda/sm90/loader.cuh",
        "at.repetition += body_blocks;", "at.repetition += 0 * body_blocks;", SM90),
    Bug("sm90", "computes a first half twice", "src/cuda/sm90/scheduler.cuh",
        "(at - whole) % 2 == 1 ?", "(at - whole) % 2 == 2 ?", SM90),
    Bug("sm90", "skips the first tile of every launch but the first", "src/cuda/sm90/launch.cuh",
        "g.leg_begin = g.leg_end)", "g.leg_begin = g.leg_end + 1)", "*Large*Rounds*"),
    Bug("sm90", "stays in a block that it has brought", "src/cuda/sm90/loader.cuh",
        "at = {0, at.repetition + 1};", "at = {0, at.repetition};", SM90),
    Bug("sm90", "swaps gate and up", "src/cuda/sm90/epilogue.cuh",
        "act(acc(make_coord(0, half, group), slab, 0), acc(make_coord(0, half, group + up), slab, 0),",
        "act(acc(make_coord(0, half, group + up), slab, 0), acc(make_coord(0, half, group), slab, 0),", SM90),
    Bug("sm90", "leaves out a slab that has tokens", "src/cuda/sm90/scheduler.cuh",
        "half || left <= stride ?", "half || left <= stride + 64 ?", SM90),
    Bug("sm90", "leaves out a box that is not full of tokens", "src/cuda/sm90/loader.cuh",
        "(geometry_.tokens - tile.first_row + box_rows - 1) / box_rows",
        "(geometry_.tokens - tile.first_row) / box_rows", SM90),
    Bug("sm90", "asks for the same tile's weights again at its end", "src/cuda/sm90/feeder.cuh",
        "bring(of_next ? at.next : at.now,", "bring(of_next && k_steps < 0 ? at.next : at.now,", SM90),
    Bug("sm90", "stores a first slab twice", "src/cuda/sm90/epilogue.cuh",
        "first_slab = stage / passes * staged;", "first_slab = stage / passes / slabs * staged;", SM90),
    Bug("sm90", "swaps gate and up of transposed tiles", "src/cuda/sm90/transposed_epilogue.cuh",
        "act(tCrC(make_coord(0, half, group), 0, 0), tCrC(make_coord(0, half, group), 1, 0),",
        "act(tCrC(make_coord(0, half, group), 1, 0), tCrC(make_coord(0, half, group), 0, 0),", SM90),
    Bug("sm90", "stores eight tokens in the others' place", "src/cuda/sm90/transposed_epilogue.cuh",
        "lane / 16 * 8 + lane % 8", "(1 - lane / 16) * 8 + lane % 8", SM90),
    Bug("sm80", "drops a last k-tile that is not whole", "src/cuda/sm80/launch.cuh",
        "ceil_div(problem.hidden_size, config.tile_k)",
        "std::max<std::int64_t>(1, problem.hidden_size / config.tile_k)", SM80),
    Bug("sm80", "reads whole chunks past the end of a sum", "src/cuda/sm80/tile_loader.cuh",
        "min(max(params_.sum_bytes - k_ - far * far_chunk, 0), 16)",
        "params_.sum_bytes - k_ - far * far_chunk > 0 ? 16 : 0", SM80),
    Bug("sm80", "reads whole lines past the end of a sum", "src/cuda/sm80/line_loader.cuh",
        "left_ != 1 || (rows_ & last_chunk) != 0 ? rows_ : 0", "rows_", SM80),
    Bug("sm80", "takes every interleaving for even distances", "src/cuda/sm80/cost_model.cpp",
        "!layout.interleaved() || lines % layout.block == 0 || layout.block % columns == 0",
        "lines > 0 && columns > 0 && layout.block >= 0", SM80),
    Bug("sm80", "reads weights of the next k-block over ones still wanted", "src/cuda/sm80/rolling_mainloop.cuh",
        "if (last && i % 2 == 1) read_b", "if (last && i % 2 == 0) read_b", SM80),
    Bug("sm80", "swaps gate and up in groups of eight", "src/cuda/sm80/gating.hpp",
        "{n / 8 % 2 == 0 ? Half::gate : Half::up,", "{n / 8 % 2 != 0 ? Half::gate : Half::up,", SM80),
    Bug("sm80", "computes a first half twice", "src/cuda/sm80/raster.hpp",
        "coord.second = halves % 2 == 1;", "coord.second = halves % 2 == 2;", SM80),
    Bug("sm80", "skips the last row of tokens", "src/cuda/sm80/epilogue.cuh",
        "if (row >= params_.tokens || ", "if ((row + 1 >= params_.tokens && row > 0) || ", SM80),
    Bug("vectors", "skips the last 16 bytes of one long row", "src/cuda/elementwise/act_and_mul_kernel.cuh",
        "if (column >= columns) return;", "if (column + 1 >= columns && column > 0) return;", VECTORS),
]
