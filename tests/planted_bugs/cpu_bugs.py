"""Faults in the reference and the CPU kernels."""
from bug import Bug

OPTIONS = ["-DGATEFOLD_CUDA=OFF", "-DGATEFOLD_TOOLS=OFF"]
TARGETS = ["test_cpu_ops", "test_check", "test_allocations", "test_unit"]
PROGRAMS = ["test_cpu_ops", "test_check", "api/test_allocations", "unit/test_unit"]

REFERENCE = "*Exact*reference*:*Numeric*reference*:*RelativeL2*reference*:Check*:*/Check*"
# Each by a kernel that it spoils: all would take a minute a bug.
AMX = "*loops_amx_bf16_bf16*"
PARTS = "*loops_amx_bf16x*"
AVX512 = "*loops_avx512*"
AVX2 = "*loops_avx2*"
PORTABLE = "*loops_portable*"
VECTOR = "*vector*"
BIAS = "*Bias*"
PANEL = "*Panel*"  # by every kernel, with weights widened or not, whatever caches the machine has

BUGS = [
    # The reference is the truth of gatefold_check as well, so what catches it must not lean on either.
    Bug("reference", "drops the last 8 products of a sum", "src/cpu/products.cpp",
        "  Products products;\n", "  Products products;\n  if (length > 8) length -= 8;\n", REFERENCE),
    Bug("reference", "drops the last chunk of a sum", "src/cpu/products.cpp",
        "begin < length; begin += chunk", "begin + 1 < (length + chunk - 1) / chunk * chunk && begin + chunk <= length;"
        " begin += chunk", REFERENCE),
    Bug("reference", "swaps gate and up", "src/core/problem.hpp",
        "second_tensor = half == Half::up &&", "second_tensor = half == Half::gate &&", REFERENCE),
    Bug("reference", "swaps the halves of a packed tensor", "src/core/layout.hpp",
        "(half == Half::up) != up_first()", "(half == Half::up) == up_first()", REFERENCE),
    Bug("reference", "rounds the gate to bf16 early", "src/cpu/truth.cpp",
        "  entry.gate = gate;\n", "  gate = bf16_to_float(float_to_bf16(static_cast<float>(gate)));\n"
        "  entry.gate = gate;\n", REFERENCE),
    Bug("reference", "truncates to bf16 instead of rounding", "src/numbers/float16.hpp",
        "(bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16", "bits >> 16", REFERENCE),
    Bug("reference", "skips the last column of a narrow tile", "src/cpu/reference.cpp",
        "      const Tile tile = truth(p, operands, range);\n      for (int i = 0; i < range.rows; ++i) {\n"
        "        for (int j = 0; j < range.columns; ++j) {",
        "      const Tile tile = truth(p, operands, range);\n      for (int i = 0; i < range.rows; ++i) {\n"
        "        for (int j = 0; j < range.columns - (range.columns < tile_rows ? 1 : 0); ++j) {", REFERENCE),

    Bug("loops", "skips what is left of a sum after whole vectors", "src/cpu/loops/tile.hpp",
        "if (k < count) multiply_step", "if (k > count) multiply_step", AVX512),
    Bug("loops", "drops the last block of a sum", "src/cpu/loops/nest.hpp",
        "begin < p.depth; begin += Policy::k_block) {\n    for_each_pass",
        "begin == 0 || begin + Policy::k_block <= p.depth; begin += Policy::k_block) {\n    for_each_pass", AVX512),
    Bug("loops, widened", "drops the last block of a sum", "src/cpu/loops/nest.hpp",
        "begin < p.depth; begin += Policy::k_block) {\n    const Block",
        "begin == 0 || begin + Policy::k_block <= p.depth; begin += Policy::k_block) {\n    const Block", PANEL),
    Bug("loops, widened", "skips what is left of a sum after whole steps", "src/cpu/loops/nest.hpp",
        "(pass.block.count + Policy::step - 1) / Policy::step * Policy::step",
        "pass.block.count / Policy::step * Policy::step", PANEL),
    Bug("loops, widened", "leaves what was there behind a row's last element", "src/cpu/loops/widened.hpp",
        "Policy::load_rest(row + k, part, static_cast<int>(count - k))", "Policy::load(row + k, part)", PANEL),
    Bug("loops, widened", "takes a tile's last row from its neighbour", "src/cpu/loops/nest.hpp",
        "scratch.row(row + 2), scratch.row(row + 3)", "scratch.row(row + 2), scratch.row(row + 2)", PANEL),
    Bug("loops, widened", "keeps the weights of the first block", "src/cpu/loops/nest.hpp",
        "    widen_weights<Policy>(p, block);", "    if (begin == 0) widen_weights<Policy>(p, block);", PANEL),
    Bug("loops, widened", "leaves the panel's last rows as they were", "src/cpu/loops/widened.hpp",
        "row < p.row_count; ++row) {\n    const auto* weights", "row + 4 < p.row_count; ++row) {\n    const auto* weights",
        PANEL),
    Bug("loops", "adds each block of a sum to nothing", "src/cpu/loops/nest.hpp",
        "const bool first = pass.block.begin == 0;", "const bool first = true;", AVX512),
    Bug("loops", "of few tokens, drops the last block of a sum", "src/cpu/loops/streams.hpp",
        "block = block_from<Policy>(block.begin + block.count, p.depth)) {\n      const TileTokens",
        "block = block_from<Policy>(block.begin + block.count, p.depth - p.depth % Policy::k_block)) {\n"
        "      const TileTokens", AVX512),
    Bug("loops", "of few tokens, adds each block of a sum to nothing", "src/cpu/loops/streams.hpp",
        "ahead, x,\n                                                  block.count, sums, block.begin == 0);",
        "ahead, x, block.count, sums, true);", AVX512),
    Bug("loops", "of the first tokens, adds each block of a sum to nothing", "src/cpu/loops/streams.hpp",
        "if (block.begin > 0) of_panel.load(sums);", "", AVX512),
    Bug("loops", "of few tokens, swaps the sums of two rows", "src/cpu/loops/streams.hpp",
        "const std::int64_t row = first + r * apart;", "const std::int64_t row = first + (r ^ 1) * apart;", AVX512),
    Bug("loops", "leaves out the last token of uneven passes", "src/cpu/loops/nest.hpp",
        "(p.tokens - token + passes - pass - 1) / (passes - pass)", "p.tokens / passes", AVX512),
    Bug("loops", "gives the last token of a tile its neighbour's sums", "src/cpu/loops/tile.hpp",
        "factors[t] = of.factor(t);", "factors[t] = of.factor(t > 0 && t + 1 == tokens ? t - 1 : t);", AVX512),
    Bug("loops", "gives the last token of a larger tile its neighbour's sums", "src/cpu/loops/tile.hpp",
        "factor = of.factor(t);", "factor = of.factor(t + 1 == tokens ? t - 1 : t);", AVX512),
    Bug("loops", "folds the wrong accumulators of a tile's last tokens", "src/cpu/loops/avx512_sums.hpp",
        "add_two<tokens - 4>(sums + 4,", "add_two<tokens - 4>(sums + 3,", AVX512),
    Bug("loops", "folds a half twice", "src/cpu/loops/avx2.cpp",
        "_mm256_permute2f128_ps(a, b, 0x31)", "_mm256_permute2f128_ps(a, b, 0x20)", AVX2),
    Bug("loops", "swaps gate and up", "src/cpu/loops/executor.cpp",
        "half_view(p_, item.operands, Half::gate)", "half_view(p_, item.operands, Half::up)", AVX512),
    Bug("loops", "loses the layout's period at a block's end", "src/cpu/loops/rows.cpp",
        "line += view.map.period - view.map.block;", "line += view.map.period - view.map.block - 1;", AVX512),
    Bug("loops", "rounds the activated gate to bf16 early", "src/cpu/loops/executor.cpp",
        "      multiply(p_.activation, item.sums, up_of(item), item.half(), up_of(item));\n",
        "      for (std::int64_t i = 0; i < item.half(); ++i) {\n"
        "        std::uint32_t bits;\n"
        "        std::memcpy(&bits, item.sums + i, 4);\n"
        "        bits = (bits + 0x8000U) & 0xffff0000U;\n"
        "        std::memcpy(item.sums + i, &bits, 4);\n"
        "      }\n"
        "      multiply(p_.activation, item.sums, up_of(item), item.half(), up_of(item));\n", AVX512),
    Bug("loops", "skips the last panel of columns", "src/cpu/loops/cut.cpp",
        "d.panels = ceil_div(columns, d.rows);", "d.panels = std::max<std::int64_t>(1, columns / d.rows);", AVX512),
    Bug("loops", "skips the last block of tokens", "src/cpu/loops/cut.cpp",
        "d.blocks = ceil_div(tokens, d.tokens);", "d.blocks = std::max<std::int64_t>(1, tokens / d.tokens);", AVX512),
    Bug("loops", "leaves out the last item", "src/cpu/loops/executor.cpp",
        "if (claimed >= items) break;", "if (claimed + 1 >= items && items > 1) break;", AVX512),
    Bug("loops", "takes a wrong guess of the next item for right", "src/cpu/loops/executor.cpp",
        "if (claimed != guessed) find_rows", "if (guessed >= items) find_rows", AVX512),
    Bug("loops", "leaves out all chunks of tokens but the first", "src/cpu/loops/executor.cpp",
        "unclaimed = 0;\n", "unclaimed = items;\n", AVX512),
    Bug("loops", "does not wait for all of a chunk's tokens to be packed", "src/cpu/loops/executor.cpp",
        "      return;\n    }\n    team.wait();\n", "      return;\n    }\n", AVX512),
    Bug("loops", "multiplies a panel with the next one's rows", "src/cpu/loops/executor.cpp",
        "run_item(item(claimed), rows[turn].data(),", "run_item(item(claimed), rows[turn ^ 1].data(),", AVX512),
    Bug("loops, vector", "makes a region of one thread", "src/cpu/threads.hpp",
        "if (threads > 1) {", "if (threads > 0) {", "*Allocations*"),
    Bug("loops", "begins every chunk of tokens with the first one's x", "src/cpu/loops/executor.cpp",
        "part.x += first * p_.ld_x * element();", "part.x += 0 * first;", AVX512),
    Bug("loops, copied x", "copies a token without its last element", "src/cpu/loops/executor.cpp",
        "static_cast<std::size_t>(p_.hidden_size * element()));",
        "static_cast<std::size_t>((p_.hidden_size - 1) * element()));", AVX512),
    Bug("loops, copied x", "reads what was copied as far apart as the caller's rows", "src/cpu/loops/executor.cpp",
        "return {operands.workspace, copied_stride()};", "return {operands.workspace, p_.ld_x * element()};", AVX512),
    Bug("loops", "folds the halves of a token's neighbour", "src/cpu/loops/avx512_sums.hpp",
        "_mm512_mask_blend_ps(0xff00, a, b)", "_mm512_mask_blend_ps(0xf000, a, b)", AVX512),
    Bug("loops", "gives a tile's last two tokens each other's rows", "src/cpu/loops/avx512_sums.hpp",
        "_mm512_setr_epi32(0, 8, 1, 9, 4, 12, 5, 13,", "_mm512_setr_epi32(0, 8, 1, 9, 5, 12, 4, 13,", AVX512),
    Bug("loops", "skips terms of a sum where x is 0", "src/cpu/loops/portable.cpp",
        "return a * b + sum; }", "return (b == Vector{} ? Vector{} : a * b) + sum; }", PORTABLE),
    Bug("loops of AMX", "takes all rows for evenly spaced", "src/cpu/loops/amx_bf16.cpp",
        "if (rows[r] - rows[r - 1] != stride) return false;", "if (rows[r] == nullptr) return false;", AMX),
    Bug("loops of AMX", "reads past the end of a sum", "src/cpu/loops/amx_bf16.cpp",
        "if (count % step == 0 && evenly_spaced", "if (count > 0 && evenly_spaced", AMX),
    Bug("loops of AMX", "begins each block's sums anew", "src/cpu/loops/amx_bf16.cpp",
        "t.begin == 0 ? zero_sums", "t.begin >= 0 ? zero_sums", AMX),
    Bug("loops of AMX", "packs the first token of a group twice", "src/cpu/loops/amx_pack.hpp",
        "(p.x + t * p.x_stride) + k", "(p.x + (t == 1 ? 0 : t) * p.x_stride) + k", AMX),
    Bug("loops of AMX", "takes the last block of x for a whole one", "src/cpu/loops/amx_pack.hpp",
        "group * steps_from<Type>(k, depth)) *", "group * steps_of(Type::block)) *", AMX),
    Bug("loops of AMX", "turns the sums of every second row", "src/cpu/loops/amx_tiles.hpp",
        "_mm512_unpackhi_ps(_mm512_load_ps(from + 32), _mm512_load_ps(from + 48))",
        "_mm512_unpackhi_ps(_mm512_load_ps(from + 32), _mm512_load_ps(from + 32))", AMX),
    Bug("loops, parts", "leaves out the products of the first part with the third", "src/cpu/loops/amx_parts.cpp",
        "if (of_x + part > 2) continue;", "if (of_x + part > 1) continue;", PARTS),
    Bug("loops, parts", "of few tokens, leaves out the third part's products", "src/cpu/loops/amx_parts.cpp",
        "    _tile_dpbf16ps(0, 7, 6);\n", "", PARTS),
    Bug("loops, parts", "skips what is left of a sum after whole steps", "src/cpu/loops/amx_split.hpp",
        "left < length ? left : length}", "left < length ? left / step * step : length}", PARTS),
    Bug("loops, parts", "adds each tile's sums to nothing", "src/cpu/loops/amx_parts.cpp",
        "add_sums<Type>(p, span.row, k < Type::sums_depth, sums)", "add_sums<Type>(p, span.row, true, sums)", PARTS),
    Bug("loops, parts", "takes what is left without the first part's rounding", "src/cpu/loops/amx_split.hpp",
        "high = without_part(high, high_bits);", "high = without_part(high, _mm512_castps_si512(high));", PARTS),
    Bug("loops, parts", "leaves sums that are infinite or NaN as they are", "src/cpu/loops/amx_parts.cpp",
        "  mend_sums<Type>(p);\n", "", PARTS),
    Bug("loops, parts", "forms a neighbour's sum anew, too", "src/cpu/loops/amx_parts.cpp",
        "at / p.tokens * tile_rows_of, at % p.tokens,", "at / p.tokens * tile_rows_of, at % p.tokens / 2 * 2,", PARTS),
    Bug("loops, parts", "lets subnormal parts be lost", "src/cpu/loops/amx_split.hpp",
        "scale = 0x1p30F;", "scale = 1.0F;", PARTS),
    Bug("loops, parts", "multiplies the parts that are being made", "src/cpu/loops/amx_parts.cpp",
        "span.run(k, Type::run), buffers.now, sums", "span.run(k, Type::run), buffers.next, sums", PARTS),
    Bug("loops, parts", "splits too few rows in the products' time and leaves the rest", "src/cpu/loops/amx_parts.cpp",
        "  splitter.finish();\n", "", PARTS),
    Bug("loops, parts", "gives most of the few tokens the kernel of many", "src/cpu/loops/products.cpp",
        "return tokens <= most_few_ ?", "return tokens < most_few_ ?", "*FewTokens*"),
    Bug("loops, parts", "gives few tokens another kernel though bits must not change", "src/cpu/loops/products.cpp",
        " || problem.batch_invariant) return", ") return", "*FewTokens*:*Chunks*"),

    Bug("loops, vector", "truncates to bf16 instead of rounding", "src/numbers/float16.hpp",
        "(bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16", "bits >> 16", AVX512 + ":" + VECTOR),

    Bug("reference", "swaps the biases of gate and up", "src/cpu/truth.cpp",
        "const auto gate_bias = biases_of(bias_view(p, o, Half::gate), p.types.weights, range);\n"
        "  const auto up_bias = biases_of(bias_view(p, o, Half::up), p.types.weights, range);",
        "const auto gate_bias = biases_of(bias_view(p, o, Half::up), p.types.weights, range);\n"
        "  const auto up_bias = biases_of(bias_view(p, o, Half::gate), p.types.weights, range);", BIAS + ":*CheckByHand*"),
    Bug("reference", "leaves the bias out of the bound", "src/cpu/truth.cpp",
        " + std::abs(gate_bias[j]);", ";", "*CheckByHand*:*CheckAgainstPlain*"),
    Bug("loops", "swaps the biases of gate and up", "src/cpu/loops/executor.cpp",
        "add_bias(bias_view(p_, item.operands, half)",
        "add_bias(bias_view(p_, item.operands, half == Half::gate ? Half::up : Half::gate)", BIAS),
    Bug("loops", "skips the bias of a panel's last rows", "src/cpu/loops/bias.cpp",
        "  }\n  for (std::int64_t group = 0; group < panel.columns; group",
        "  }\n  for (std::int64_t group = 0; group + tile_rows_of_weights <= panel.columns; group", BIAS),
    Bug("loops", "gives every panel the first one's bias", "src/cpu/loops/bias.cpp",
        "bias.map(panel.column + j)", "bias.map(j)", BIAS),
    Bug("loops", "adds the bias of gate after the activation", "src/cpu/loops/executor.cpp",
        "    finish_sums(item);\n    if (p_.op != Op::gemm) {\n"
        "      activate(p_.activation, item.sums, item.half(), item.sums);\n",
        "    if (p_.op == Op::gemm) finish_sums(item);\n    if (p_.op != Op::gemm) {\n"
        "      activate(p_.activation, item.sums, item.half(), item.sums);\n      finish_sums(item);\n", BIAS),
    Bug("composed", "leaves out the bias of down", "src/dispatch/mlp.cpp",
        "operands.up_bias = whole.down_bias;", "operands.up_bias = nullptr;", BIAS),

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

    Bug("vector", "makes 0 of relu(NaN)", "src/cpu/vector_math.cpp",
        "return g < 0.0F ? 0.0F : g; });", "return g > 0.0F ? g : 0.0F; });", VECTOR),
    Bug("vector", "reaches back over finished columns with a row's last piece", "src/cpu/act_and_mul.cpp",
        "      const std::int64_t count = loadable(gate.map, begin, end);\n",
        "      std::int64_t count = loadable(gate.map, begin, end);\n"
        "      if (gate.map.period == gate.map.block && begin >= piece && begin + count == end) {\n"
        "        begin = end - piece;\n        count = piece;\n      }\n", VECTOR + ":InPlace*"),
]
