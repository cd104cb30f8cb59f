"""Faults in the Swap-FFN step on the CPU."""
from bug import Bug

OPTIONS = ["-DGATEFOLD_CUDA=OFF", "-DGATEFOLD_TOOLS=OFF"]
PROGRAMS = ["swap_ffn/test_swap_ffn"]
TARGETS = ["test_swap_ffn"]

ROWS = "src/swap_ffn/cpu_rows.cpp"
STEP = "src/swap_ffn/cpu_executor.cpp"
ALL = "*"

BUGS = [
    Bug("rms", "leaves a row's last element out", ROWS, "d < count; ++d) sum +=", "d < count - 1; ++d) sum +=", ALL),
    Bug("rms", "forgets eps", ROWS, "static_cast<double>(count) + eps)", "static_cast<double>(count) + 0.0 * eps)", ALL),
    Bug("rms", "keeps the first MLP's for the second", STEP, "if (again) measure_rows(c_, block);", "", ALL),
    Bug("rms", "keeps that of the state that was swapped out", ROWS,
        "    map = exchange_lanes(map, decision.choice);\n    measure_row(c, block, row);",
        "    map = exchange_lanes(map, decision.choice);", ALL),
    Bug("decisions", "take the last of equals", ROWS, "first_largest(logits)}",
        "[&] { std::array<double, banks> back{logits[3], logits[2], logits[1], logits[0]}; "
        "return 3 - first_largest(back); }()}", ALL),
    Bug("decisions", "swap where sigmoid is 1/2", ROWS, "return {swap > 0.0,", "return {swap >= 0.0,", ALL),
    Bug("decisions", "forget router_norm", STEP,
        "load(weights[router_w], c_.dtype, i) * load(weights[router_norm], c_.dtype, i % D)",
        "load(weights[router_w], c_.dtype, i)", ALL),
    Bug("swaps", "leave the map as it was", ROWS, "    map = exchange_lanes(map, decision.choice);\n",
        "    static_cast<void>(map);\n", ALL),
    Bug("swaps", "take the choice for the bank", ROWS, "banks + lane(map, decision.choice)) *",
        "banks + decision.choice) *", ALL),
    Bug("weights", "have gate's rows for up's", STEP, "fold_columns(weights[up_w],", "fold_columns(weights[gate_w],", ALL),
    Bug("weights", "have heads and width of the basis exchanged", STEP, "(k * c_.collapse_width + r) * D",
        "(r * c_.collapse_heads + k) * D", ALL),
    Bug("weights", "have every head of a core count alike", STEP,
        "to_floats(tables.alpha, prepared + prepared_.alpha);",
        "to_floats(std::vector<double>(tables.alpha.size(), 1.0 / static_cast<double>(c_.collapse_heads)), "
        "prepared + prepared_.alpha);", ALL),
    Bug("weights", "have ffn_norm left out of gate's", STEP,
        "fold_columns(weights[gate_w], weights[ffn_norm], c_.dtype, F, D, prepared + prepared_.gate);",
        "std::memcpy(prepared + prepared_.gate, weights[gate_w], static_cast<std::size_t>(F * c_.row_bytes()));", ALL),
    Bug("MLPs", "are one less in an event", STEP,
        "if (Status status = run_mlp(o, layout, block, k > 0, clock); !status.ok()) return status;",
        "if (k == 1) continue;\n"
        "        if (Status status = run_mlp(o, layout, block, k > 0, clock); !status.ok()) return status;", ALL),
    Bug("collapse", "adds a later sequence to what was there", ROWS, "if (core == 0) {", "if (row == 0) {", ALL),
    Bug("preparation", "is computed in the caller's floating-point environment", "src/api/guarded.hpp",
        "  const UsualFloatEnvironment environment;\n", "", ALL),
]
