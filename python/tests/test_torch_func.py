"""torch.func: batches of whatever argument, their gradients, and the FLOPs that torch's counter finds.

Forward: a batch has the bits of its calls one by one, as a row has whatever other rows there are. Gradients: of -1, 0
and 1 with the identity every sum is a whole number below 2^24, so that they are the same in whatever order they are
added up.
"""

import itertools
import warnings

import pytest
import torch
from support import generator
from torch.func import functional_call, grad, jacrev, vmap
from torch.utils.flop_counter import FlopCounterMode
from torch_support import DTYPES, D, F, T, seeded

import gatefold.torch as gt

BATCH = 3
SHAPES = {
    "act_and_mul": [(T, F), (T, F)],
    "act_and_mul packed": [(T, 2 * F)],
    "gemm_gated": [(T, D), (T, F), (F, D), (F,)],
    "gate_up": [(T, D), (F, D), (F, D), (F,), (F,)],
    "gate_up packed": [(T, D), (2 * F, D), (2 * F,)],
    "mlp": [(T, D), (F, D), (F, D), (D, F), (F,), (F,), (D,)],
    "mlp packed": [(T, D), (2 * F, D), (D, F), (2 * F,), (D,)],
}
FUNCTIONS = {
    "act_and_mul": lambda gate, up, how: gt.act_and_mul(gate, up, layout="separate", **how),
    "act_and_mul packed": lambda gate, how: gt.act_and_mul(gate, layout="interleaved_up_gate", block=8, **how),
    "gemm_gated": lambda x, gate, weight, bias, how: gt.gemm_gated(x, gate, weight, bias=bias, **how),
    "gate_up": lambda x, gate, up, gate_bias, up_bias, how: gt.gate_up(
        x, gate, up, gate_bias=gate_bias, up_bias=up_bias, layout="separate", **how),
    "gate_up packed": lambda x, gate, bias, how: gt.gate_up(x, gate, gate_bias=bias, layout="up_gate", **how),
    "mlp": lambda x, gate, up, down, gate_bias, up_bias, down_bias, how: gt.mlp(
        x, gate, up, down, gate_bias=gate_bias, up_bias=up_bias, down_bias=down_bias, layout="separate", **how),
    "mlp packed": lambda x, gate, down, bias, down_bias, how: gt.mlp(
        x, gate, None, down, gate_bias=bias, down_bias=down_bias, layout="gate_up", **how),
}  # fmt: skip
names = pytest.mark.parametrize("name", SHAPES)


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    """Torch warns where it has no rule, and where a gradient is lost."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def batches(name, most=12):
    """Which arguments are batched: all ways but none of them, or a fresh sample of so many."""
    ways = [dims for dims in itertools.product((0, None), repeat=len(SHAPES[name])) if 0 in dims]
    if len(ways) <= most:
        return ways
    return [ways[i] for i in generator().choice(len(ways), most, replace=False)]


def batched_shapes(name, dims):
    return [(BATCH, *shape) if dim == 0 else shape for shape, dim in zip(SHAPES[name], dims)]


def signs(shapes):
    """-1, 0 and 1."""
    rng = generator()
    return [torch.from_numpy(rng.integers(-1, 2, shape)).to(torch.float32) for shape in shapes]


def one_of(arguments, dims, i):
    return [argument if dim is None else argument[i] for argument, dim in zip(arguments, dims)]


@names
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_batch_is_its_calls_one_by_one(name, dtype):
    for dims in batches(name):
        arguments = seeded(batched_shapes(name, dims), dtype)
        function = lambda *a: FUNCTIONS[name](*a, {"activation": "silu"})  # noqa: E731
        with torch.no_grad():
            found = vmap(function, in_dims=dims)(*arguments)
        for i in range(BATCH):
            assert torch.equal(found[i], function(*one_of(arguments, dims, i))), dims


@names
@pytest.mark.parametrize("save", [False, True])
def test_gradients_of_a_batch(name, save):
    if save and not name.startswith(("gate_up", "mlp")):
        pytest.skip("saves nothing")
    how = {"activation": "identity", **({"save_pre_activations": True} if save else {})}
    function = lambda *a: FUNCTIONS[name](*a, how)  # noqa: E731
    numbers = tuple(range(len(SHAPES[name])))
    of_sum = grad(lambda *a: function(*a).sum(), argnums=numbers)
    for dims in batches(name):
        arguments = signs(batched_shapes(name, dims))
        expected = [of_sum(*one_of(arguments, dims, i)) for i in range(BATCH)]
        found = vmap(of_sum, in_dims=dims)(*arguments)
        for number in numbers:
            for i in range(BATCH):
                assert torch.equal(found[number][i], expected[i][number]), (dims, number)
        for argument in arguments:  # the gradient of the batch, asked for outside
            argument.requires_grad_()
        vmap(function, in_dims=dims)(*arguments).sum().backward()
        for number, dim in enumerate(dims):
            each = torch.stack([gradients[number] for gradients in expected])
            assert torch.equal(arguments[number].grad, each.sum(0) if dim is None else each), (dims, number)


def test_the_batch_may_be_any_dimension_and_batches_may_nest():
    x, gate, down = seeded([(T, BATCH, 2, D), (2 * F, D), (D, F)], torch.float32)
    function = lambda x: gt.mlp(x, gate, None, down, layout="gate_up", activation="silu")  # noqa: E731
    expected = function(x)
    assert torch.equal(vmap(function, in_dims=1, out_dims=1)(x), expected)
    assert torch.equal(vmap(vmap(function, in_dims=1, out_dims=1))(x), expected)
    values = x[..., : 2 * (D // 2)].movedim(0, 2)
    of_values = lambda gate: gt.act_and_mul(gate, layout="gate_up", activation="silu")  # noqa: E731
    assert torch.equal(vmap(of_values, in_dims=2, out_dims=2)(values), of_values(values))


def test_gradients_of_each_sample():
    """As differential privacy wants them: by torch.func's own recipe, out of one backward."""
    block = gt.GatedMLP(D, F, activation="identity")
    names, shapes = zip(*((name, weight.shape) for name, weight in block.named_parameters()))
    weights = dict(zip(names, signs(shapes)))
    (x,) = signs([(BATCH, T, D)])
    of_sample = grad(lambda weights, x: functional_call(block, weights, (x,)).sum())
    found = vmap(of_sample, in_dims=(None, 0))(weights, x)
    for i in range(BATCH):
        for name, expected in of_sample(weights, x[i]).items():
            assert torch.equal(found[name][i], expected)


def test_jacobians_by_rows():
    x, gate, up = signs([(D,), (F, D), (F, D)])
    found = jacrev(lambda x: gt.gate_up(x[None], gate, up, layout="separate", activation="identity")[0])(x)
    assert torch.equal(found, (up @ x)[:, None] * gate + (gate @ x)[:, None] * up)


def test_second_derivatives_of_a_batch_are_refused():
    x, gate, up = seeded([(BATCH, T, D), (F, D), (F, D)], torch.float32)
    function = lambda x: gt.gate_up(x, gate, up, layout="separate", activation="silu").sum()  # noqa: E731
    with pytest.raises(NotImplementedError, match="gate_up: its backward was differentiated"):
        vmap(grad(lambda x: grad(function)(x).sum()))(x)


@pytest.mark.parametrize(("name", "products"), [
    ("act_and_mul", 0), ("gemm_gated", 1), ("gate_up", 2), ("gate_up packed", 2), ("mlp", 3), ("mlp packed", 3),
])  # fmt: skip
def test_torch_counts_the_flops(name, products):
    arguments = seeded(SHAPES[name], torch.float32)
    for how in ({}, {"out": torch.empty(T, D if name.startswith("mlp") else F)}):
        with FlopCounterMode(display=False) as counter:
            FUNCTIONS[name](*arguments, {"activation": "silu", **how})
        assert counter.get_total_flops() == products * 2 * T * D * F
