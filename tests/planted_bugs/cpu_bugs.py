"""Faults in the reference and the CPU kernels."""
from bug import Bug

OPTIONS = ["-DGATEFOLD_CUDA=OFF"]
PROGRAMS = ["test_cpu_ops", "test_check"]

REFERENCE = "*Exact*reference*:*Numeric*reference*:*RelativeL2*reference*:Check*:*/Check*"
ONEDNN = "*onednn*"
VECTOR = "*vector*"

BUGS = [
    # The reference is the truth of gatefold_check as well, so what catches it must not lean on either.
    Bug("reference", "drops the last 8 products of a sum", "src/cpu/products.cpp",
        "  Products products;\n", "  Products products;\n  if (length > 8) length -= 8;\n", REFERENCE),
    Bug("reference", "drops the last chunk of a sum", "src/cpu/products.cpp",
        "begin < length; begin += chunk", "begin + 1 < (length + chunk - 1) / chunk * chunk && begin + chunk <= length;"
        " begin += chunk", REFERENCE),
    Bug("reference", "swaps gate and up", "src/core/problem.hpp",
        "half == Half::up && !problem.layout.packed()", "half == Half::gate && !problem.layout.packed()", REFERENCE),
    Bug("reference", "swaps the halves of a packed tensor", "src/core/layout.hpp",
        "(half == Half::up) != up_first()", "(half == Half::up) == up_first()", REFERENCE),
    Bug("reference", "rounds the gate to bf16 early", "src/cpu/truth.cpp",
        "  entry.gate = gate;\n", "  gate = bf16_to_float(float_to_bf16(static_cast<float>(gate)));\n"
        "  entry.gate = gate;\n", REFERENCE),
    Bug("reference", "truncates to bf16 instead of rounding", "src/core/float16.hpp",
        "(bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16", "bits >> 16", REFERENCE),
    Bug("reference", "skips the last column of a narrow tile", "src/cpu/reference.cpp",
        "      const Tile tile = truth(p, operands, range);\n      for (int i = 0; i < range.rows; ++i) {\n"
        "        for (int j = 0; j < range.columns; ++j) {",
        "      const Tile tile = truth(p, operands, range);\n      for (int i = 0; i < range.rows; ++i) {\n"
        "        for (int j = 0; j < range.columns - (range.columns < tile_rows ? 1 : 0); ++j) {", REFERENCE),

    Bug("onednn", "drops the last 8 products of a sum", "src/cpu/onednn_products.cpp",
        "    shape.depth = panels.depth;\n",
        "    shape.depth = panels.depth > 8 ? panels.depth - 8 : panels.depth;\n", ONEDNN),
    Bug("onednn", "swaps gate and up", "src/cpu/onednn_products.cpp",
        "weights_of(panel, half);", "weights_of(panel, half == Half::up && p_.op == Op::gate_up ? Half::gate : Half::up);",
        ONEDNN),
    Bug("onednn", "rounds the activated gate to bf16 early", "src/cpu/onednn_products.cpp",
        "    if (activates_) return true;\n",
        "    for (std::int64_t i = 0; i < panel.block.rows * panel.columns; ++i) {\n"
        "      std::uint32_t bits;\n"
        "      std::memcpy(&bits, panel.activated() + i, 4);\n"
        "      bits = (bits + 0x8000U) & 0xffff0000U;\n"
        "      std::memcpy(panel.activated() + i, &bits, 4);\n"
        "    }\n"
        "    if (activates_) return true;\n", ONEDNN),
    Bug("onednn", "skips the last, narrower panel of columns", "src/cpu/onednn_products.cpp",
        "(p_.intermediate_size + panels_.width - 1) / panels_.width", "p_.intermediate_size / panels_.width", ONEDNN),
    Bug("onednn", "skips the last row of an odd number of rows", "src/cpu/onednn_panels.hpp",
        "done < rows;) {", "done < rows - (rows > 1 ? rows % 2 : 0);) {", ONEDNN),
    Bug("onednn, vector", "truncates to bf16 instead of rounding", "src/cpu/vector_math.cpp",
        "(bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16", "bits >> 16", ONEDNN + ":" + VECTOR),

    Bug("vector", "swaps gate and up", "src/cpu/act_and_mul.cpp",
        "const Source gate = source(operands, Half::gate, row);\n    const Source up = source(operands, Half::up, row);",
        "const Source gate = source(operands, Half::up, row);\n    const Source up = source(operands, Half::gate, row);",
        VECTOR),
    Bug("vector", "rounds the activated gate to bf16 early", "src/cpu/act_and_mul.cpp",
        "      multiply(p_.activation, activated.data(), factor.data(), count, factor.data());\n",
        "      narrow(activated.data(), DType::bf16, count, reinterpret_cast<std::byte*>(activated.data()));\n"
        "      Buffer rounded;\n"
        "      widen(reinterpret_cast<const std::byte*>(activated.data()), DType::bf16, count, rounded.data());\n"
        "      multiply(p_.activation, rounded.data(), factor.data(), count, factor.data());\n", VECTOR),
    Bug("vector", "skips the last column of a row", "src/cpu/act_and_mul.cpp",
        "std::min(begin + width, F)", "std::min(begin + width, F - 1)", VECTOR),

    Bug("vector", "drops what is left of a sum after whole vectors", "src/cpu/dots.cpp",
        "for (; k < count; ++k)", "for (; k + 1 < count; ++k)", VECTOR),
    Bug("vector", "drops the last chunk of a sum", "src/cpu/vector_products.cpp",
        "begin < p_.hidden_size; begin += chunk", "begin == 0 || begin + chunk <= p_.hidden_size; begin += chunk", VECTOR),
    Bug("vector", "gives the last of an odd number of tokens the sums of the first", "src/cpu/dots.cpp",
        "add_tile<false, Weight>(weights, x + t * ld_x", "add_tile<false, Weight>(weights, x", VECTOR),
    Bug("vector", "swaps gate and up of the products", "src/cpu/vector_products.cpp",
        "multiply_panel(panel, Half::gate, activated);", "multiply_panel(panel, Half::up, activated);", VECTOR),
    Bug("vector", "skips the last panel of columns", "src/cpu/vector_products.cpp",
        "(p_.intermediate_size + panel_width - 1) / panel_width", "p_.intermediate_size / panel_width", VECTOR),
    Bug("vector", "skips terms of a sum where x is 0", "src/cpu/dots.cpp",
        "sums[0][i] += value(weights[i][k]) * x[k];",
        "sums[0][i] += x[k] == 0.0F ? 0.0F : value(weights[i][k]) * x[k];", VECTOR),
    Bug("vector", "makes 0 of relu(NaN)", "src/cpu/vector_math.cpp",
        "return g < 0.0F ? 0.0F : g; });", "return g > 0.0F ? g : 0.0F; });", VECTOR),
    Bug("vector", "reaches back over finished columns with a row's last piece", "src/cpu/act_and_mul.cpp",
        "      const std::int64_t count = loadable(gate.map, begin, end);\n",
        "      std::int64_t count = loadable(gate.map, begin, end);\n"
        "      if (gate.map.period == gate.map.block && begin >= piece && begin + count == end) {\n"
        "        begin = end - piece;\n        count = piece;\n      }\n", VECTOR + ":InPlace*"),
]
