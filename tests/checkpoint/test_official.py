"""The tool against the official safetensors package and NumPy: each reads what the other wrote, and the results agree."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from mlp_truth import DTYPES, gate_up, gemm, mlp

# With fewer tokens a few large elements decide ||h - truth||: at 17 its own spread of 5 % reaches the limits by chance,
# at 257 it is 1 %, and they are 14 standard deviations away (the error of correct rounding, over 40 draws).
TOKENS, HIDDEN, INTERMEDIATE, LAYERS = 257, 96, 168, 2


def layer_name(layer, projection):
    return f"model.layers.{layer}.mlp.{projection}.weight"


def draw_layer(rng, dtype, layer, packed):
    """One layer's tensors as a checkpoint names them."""

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(DTYPES[dtype])

    gate, up, down = draw(INTERMEDIATE, HIDDEN), draw(INTERMEDIATE, HIDDEN), draw(HIDDEN, INTERMEDIATE)
    if packed:
        halves = {layer_name(layer, "gate_up_proj"): np.concatenate([gate, up])}
    else:
        halves = {layer_name(layer, "gate_proj"): gate, layer_name(layer, "up_proj"): up}
    return halves | {layer_name(layer, "down_proj"): down}


def write_checkpoint(folder, layers, activation, sharded):
    """As Hugging Face lays it out, with the official package."""
    other = {"model.embed_tokens.weight": np.ones((3, HIDDEN), np.float32), "position_ids": np.arange(5)}
    shards = [*layers, other] if sharded else [{k: v for tensors in [*layers, other] for k, v in tensors.items()}]
    weight_map = {}
    for i, tensors in enumerate(shards):
        name = f"model-{i + 1:05}-of-{len(shards):05}.safetensors" if sharded else "model.safetensors"
        save_file(tensors, folder / name, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(tensors, name)
    if sharded:
        index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    config = {"model_type": "llama", "hidden_act": activation, "hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE}
    (folder / "config.json").write_text(json.dumps(config))


def halves_of(tensors, layer):
    if layer_name(layer, "gate_up_proj") in tensors:
        return np.split(tensors[layer_name(layer, "gate_up_proj")], 2)
    return tensors[layer_name(layer, "gate_proj")], tensors[layer_name(layer, "up_proj")]


def expect_right_outputs(output, dtype, activation, x, tensors, layer):
    """h and y in the file lie within the bounds around float64's."""
    w_gate, w_up = halves_of(tensors, layer)
    w_down = tensors[layer_name(layer, "down_proj")]
    results = load_file(output)
    assert sorted(results) == ["h", "y"]
    h, y = results["h"], results["y"]
    assert h.dtype == y.dtype == DTYPES[dtype]
    true_h = gate_up(dtype, activation, x, w_gate, w_up)
    assert true_h.worst_ratio(h) <= 1.0
    assert gemm(dtype, h, w_down).worst_ratio(y) <= 1.0
    assert mlp(dtype, true_h, w_down).worst_ratio(y) <= 1.0
    if dtype != "fp32":
        assert true_h.relative_l2(h) <= {"bf16": 1.9e-3, "fp16": 2.4e-4}[dtype]
    # The bound is one that a wrong computation fails: halves the wrong way round, and the last k-step left out.
    swapped = gate_up(dtype, activation, x, w_up, w_gate).value
    short = gate_up(dtype, activation, x[:, :-16], w_gate[:, :-16], w_up[:, :-16]).value
    assert true_h.worst_ratio(swapped) > 1.0
    assert true_h.worst_ratio(short) > 1.0


@pytest.mark.parametrize("packed", [False, True], ids=["gate_proj-up_proj", "gate_up_proj"])
@pytest.mark.parametrize("sharded", [False, True], ids=["single", "sharded"])
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_official_checkpoints_run_right(tmp_path, run_layer, rng, dtype, sharded, packed):
    layers = [draw_layer(rng, dtype, layer, packed) for layer in range(LAYERS)]
    write_checkpoint(tmp_path, layers, "silu", sharded)
    x = rng.standard_normal((TOKENS, HIDDEN)).astype(DTYPES[dtype])
    save_file({"x": x}, tmp_path / "x.safetensors")
    output = tmp_path / "out.safetensors"
    rows = run_layer(tmp_path, "--layer", 1, "--tokens", TOKENS, "--input", tmp_path / "x.safetensors", "--output", output)
    assert {"unfused", "act_and_mul", "gemm_gated", "gate_up"} <= rows.keys()
    expect_right_outputs(output, dtype, "silu", x, layers[1], layer=1)


@pytest.mark.parametrize("activation", ["gelu_pytorch_tanh", "gelu"])
def test_activation_comes_from_the_config(tmp_path, run_layer, rng, activation):
    layers = [draw_layer(rng, "fp32", 0, packed=False)]
    write_checkpoint(tmp_path, layers, activation, sharded=False)
    x = (3.0 * rng.standard_normal((TOKENS, HIDDEN))).astype(np.float32)
    save_file({"x": x}, tmp_path / "x.safetensors")
    run_layer(tmp_path, "--layer", 0, "--input", tmp_path / "x.safetensors", "--output", tmp_path / "out.safetensors")
    expect_right_outputs(tmp_path / "out.safetensors", "fp32", activation, x, layers[0], layer=0)


def test_elements_at_odd_addresses(tmp_path, run_layer, rng):
    """Old writers did not pad the header: the data may begin at any byte."""
    tensors = draw_layer(rng, "bf16", 0, packed=False)
    write_checkpoint(tmp_path, [tensors], "silu", sharded=False)
    path = tmp_path / "model.safetensors"
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = whole[8 : 8 + length].rstrip(b" ")
    header += b" " * (1 - len(header) % 2)  # an odd length
    path.write_bytes(len(header).to_bytes(8, "little") + header + whole[8 + length :])
    assert load_file(path).keys() >= tensors.keys(), "the official package reads it, too"
    x = rng.standard_normal((TOKENS, HIDDEN)).astype(DTYPES["bf16"])
    save_file({"x": x}, tmp_path / "x.safetensors")
    run_layer(tmp_path, "--layer", 0, "--input", tmp_path / "x.safetensors", "--output", tmp_path / "out.safetensors")
    expect_right_outputs(tmp_path / "out.safetensors", "bf16", "silu", x, tensors, layer=0)


@pytest.mark.parametrize("layout", ["separate", "gate_up"])
@pytest.mark.parametrize("sharded", [False, True], ids=["single", "sharded"])
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_official_package_reads_what_the_tool_wrote(tmp_path, gatefold, dtype, sharded, layout):
    folder = tmp_path / "made"
    result = gatefold(
        "checkpoint", "--hidden-size", HIDDEN, "--intermediate-size", INTERMEDIATE, "--layers", LAYERS, "--dtype", dtype,
        "--layout", layout, "--output", folder, *(["--sharded"] if sharded else []),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    files = sorted(folder.glob("*.safetensors"))
    assert len(files) == (LAYERS if sharded else 1)
    tensors = {}
    for file in files:
        with safe_open(file, framework="numpy") as opened:
            assert opened.metadata() == {"format": "pt"}
        tensors |= load_file(file)
    for layer in range(LAYERS):
        gate, up = halves_of(tensors, layer)
        down = tensors[layer_name(layer, "down_proj")]
        assert gate.shape == up.shape == (INTERMEDIATE, HIDDEN)
        assert down.shape == (HIDDEN, INTERMEDIATE)
        for weight in (gate, up, down):
            assert weight.dtype == DTYPES[dtype]
            # Rounding to nearest may reach the bound's own neighbour.
            bound = np.float64(weight.shape[1] ** -0.5) * (1.0 + 2.0**-8)
            values = weight.astype(np.float64)
            assert 0.9 * bound < np.max(np.abs(values)) <= bound
            assert abs(np.std(values) / (weight.shape[1] ** -0.5 / np.sqrt(3.0)) - 1.0) < 0.05
    if sharded:
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in tensors.values())
        for name, file in index["weight_map"].items():
            assert name in load_file(folder / file)


def test_a_truncated_file_is_one_line_and_no_output(tmp_path, gatefold, rng):
    write_checkpoint(tmp_path, [draw_layer(rng, "fp16", 0, packed=False)], "silu", sharded=False)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])
    output = tmp_path / "out.safetensors"
    output.write_bytes(b"old")
    result = gatefold("run", tmp_path, "--layer", 0, "--tokens", 1, "--output", output)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "model.safetensors" in result.stderr and "byte" in result.stderr
    assert result.stdout == ""
    assert output.read_bytes() == b"old"
