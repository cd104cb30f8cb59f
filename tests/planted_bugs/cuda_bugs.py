"""Faults in the CUDA kernels. To be run on a machine that has the GPU."""
from bug import Bug

OPTIONS = ["-DGATEFOLD_CPU=OFF"]
PROGRAMS = ["cuda/gatefold_cuda_tests"]

SM90 = "*Products*sm90*:*Exact*sm90*:*RelativeL2*sm90*"
SM80 = "*Products*sm80*:*Exact*sm80*:*RelativeL2*sm80*"
VECTORS = "*Numeric*vectors*:*Exact*vectors*"

BUGS = [
    Bug("sm90", "drops a last k-step that is not whole", "src/cuda/sm90/launch.cuh",
        "(problem.hidden_size + Config::tile_k - 1) / Config::tile_k",
        "std::max<std::int64_t>(1, problem.hidden_size / Config::tile_k)", SM90),
    Bug("sm90", "swaps gate and up", "src/cuda/sm90/epilogue.cuh",
        "act(acc(make_coord(0, half, group), slab, 0), acc(make_coord(0, half, group + up), slab, 0),",
        "act(acc(make_coord(0, half, group + up), slab, 0), acc(make_coord(0, half, group), slab, 0),", SM90),
    Bug("sm90", "skips a last tile of columns that is not whole", "src/cuda/sm90/launch.cuh",
        "tiles_of(problem.intermediate_size, config.columns(), config.cluster_n)",
        "tiles_of(std::max<std::int64_t>(config.columns(), problem.intermediate_size / config.columns() * "
        "config.columns()), config.columns(), config.cluster_n)", SM90),
    Bug("sm80", "drops a last k-tile that is not whole", "src/cuda/sm80/launch.cuh",
        "(problem.hidden_size + config.tile_k - 1) / config.tile_k",
        "std::max<std::int64_t>(1, problem.hidden_size / config.tile_k)", SM80),
    Bug("sm80", "reads whole chunks past the end of a sum", "src/cuda/sm80/tile_loader.cuh",
        "min(max(params_.sum_bytes - k_ - far * far_chunk, 0), 16)",
        "params_.sum_bytes - k_ - far * far_chunk > 0 ? 16 : 0", SM80),
    Bug("sm80", "swaps gate and up in groups of eight", "src/cuda/sm80/gating.hpp",
        "{n / 8 % 2 == 0 ? Half::gate : Half::up,", "{n / 8 % 2 != 0 ? Half::gate : Half::up,", SM80),
    Bug("sm80", "skips the last row of tokens", "src/cuda/sm80/epilogue.cuh",
        "if (row >= params_.tokens) break;", "if (row + 1 >= params_.tokens && row > 0) break;", SM80),
    Bug("vectors", "skips the last 16 bytes of one long row", "src/cuda/elementwise/act_and_mul_kernel.cuh",
        "if (column >= columns) return;", "if (column + 1 >= columns && column > 0) return;", VECTORS),
]
