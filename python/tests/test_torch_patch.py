"""patch on models that Transformers makes: numbers, what it refuses, the way back; GatedMLP and the stateless layers."""

import copy

import kernels
import peft
import pytest
import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from torch_support import DTYPES, seeded

import gatefold.torch as gt
from gatefold.torch import layers

MODELS = ["Llama", "Mistral", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Gemma3Text", "Phi3", "Granite", "Olmo2", "Glm4"]
PACKED = {"Phi3", "Glm4"}
SIZES = {
    "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 64,
    "num_key_value_heads": 2, "vocab_size": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def model_of(name, dtype=torch.float32, **changes):
    config = getattr(transformers, f"{name}Config")(**{**SIZES, **changes})
    model = getattr(transformers, f"{name.removesuffix('Text')}ForCausalLM")(config).eval().to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():  # biases are zero at first, which would hide them
            if parameter.ndim == 1 and not parameter.any():
                parameter.normal_(std=0.02)
    return model


def small(name, **changes):
    return model_of(name, hidden_size=64, intermediate_size=96, num_hidden_layers=1, head_dim=16, **changes)


def tokens():
    return torch.randint(3, 128, (2, 32))


def distance(found, truth):
    return ((found.double() - truth).norm() / truth.norm()).item()


@pytest.mark.parametrize("name", MODELS)
@dtypes
def test_patched_models_are_no_farther_from_double_precision(name, dtype):
    model = model_of(name, dtype)
    truth = copy.deepcopy(model).double()
    (x,) = seeded([(2, 32, SIZES["hidden_size"])], dtype, 1.0)
    ids = tokens()
    with torch.no_grad():
        wanted, wanted_logits = truth.model.layers[0].mlp(x.double()), truth(ids).logits
        stock, stock_logits = model.model.layers[0].mlp(x), model(ids).logits
        report = gt.patch(model)
        found, logits = model.model.layers[0].mlp(x), model(ids).logits
        report.undo()
        assert torch.equal(model(ids).logits, stock_logits)
        assert torch.equal(model.model.layers[0].mlp(x), stock)
    assert len(report.changed) == 2 and not report.left_alone
    assert {change.layout for change in report.changed} == {"gate_up" if name in PACKED else "separate"}
    # h is rounded once where the stock module rounds gate, up, the activation and h.
    assert distance(found, wanted) <= (1.1 if dtype == torch.float32 else 0.7) * distance(stock, wanted)
    assert distance(logits, wanted_logits) <= 1.1 * distance(stock_logits, wanted_logits)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_patched_models(name):
    """Both are first order in fp32's rounding away from double precision; a wrong formula is far away."""
    model = small(name)
    truth = copy.deepcopy(model).double()
    patched = copy.deepcopy(model)
    gt.patch(patched)
    ids = tokens()
    for one in (model, truth, patched):
        one(ids, labels=ids).loss.backward()
    parameters = zip(model.named_parameters(), truth.parameters(), patched.parameters())
    for (where, stock), exact, found in parameters:
        allowed = 4 * max(distance(stock.grad, exact.grad), 2.0**-20)
        assert distance(found.grad, exact.grad) <= allowed, where


class Operations(TorchDispatchMode):
    """Counts what torch does."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += 1
        return function(*args, **(kwargs or {}))


def test_no_weight_is_copied():
    model = small("Phi3")
    before = [(parameter.data_ptr(), id(parameter)) for parameter in model.parameters()]
    with Operations() as operations:
        gt.patch(model)
    assert operations.count == 0  # so nothing was allocated either
    assert [(parameter.data_ptr(), id(parameter)) for parameter in model.parameters()] == before
    with torch.no_grad(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        model.model.layers[0].mlp(torch.ones(3, 64))
    assert not [event for event in profile.events() if event.name == "aten::copy_"]


def test_patched_models_compile_without_a_break_and_can_be_copied():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    model = small("Llama", mlp_bias=True)
    gt.patch(model)
    layer = model.model.layers[0].mlp
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for count in (0, 1, 2, 30):
        (x,) = seeded([(count, 64)], torch.float32)
        assert torch.equal(compiled(x), layer(x))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 3
    again = copy.deepcopy(layer)
    with torch.no_grad():
        again.gate_proj.weight.zero_(), again.gate_proj.bias.zero_()
    assert (again(x) == layer.down_proj.bias).all() and not torch.equal(again(x), layer(x))


def test_patched_models_can_be_saved_whole(tmp_path):
    model = small("Llama")
    gt.patch(model)
    ids = tokens()
    torch.save(model, tmp_path / "model.pt")
    loaded = torch.load(tmp_path / "model.pt", weights_only=False)
    with torch.no_grad():
        assert torch.equal(loaded(ids).logits, model(ids).logits)
        loaded.model.layers[0].mlp.down_proj.weight.zero_()  # its own, and no other's
        assert not loaded.model.layers[0].mlp(torch.ones(1, 64)).any()
        assert model.model.layers[0].mlp(torch.ones(1, 64)).any()


@pytest.mark.parametrize("model", [None, "model", [torch.nn.Linear(2, 2)]], ids=["None", "str", "list"])
def test_what_is_no_module_is_refused(model):
    with pytest.raises(TypeError, match=rf"model: {type(model).__name__}, not a torch.nn.Module"):
        gt.patch(model)


def reason(model, name="model.layers.0.mlp"):
    report = gt.patch(model)
    assert not report.changed
    (left,) = [left for left in report.left_alone if left.name.endswith(name)]
    assert left.reason in str(report)
    return left.reason


class Half(torch.Tensor):
    pass


@pytest.mark.filterwarnings("ignore")  # torch's own, of its quantisation
def test_what_is_left_alone_and_why():
    model = small("Llama")
    model.model.layers[0].mlp.up_proj.register_forward_hook(lambda *a: None)
    assert reason(model) == "up_proj has hooks"
    assert "float64" in reason(small("Llama").double())
    assert "no activation" in reason(small("Llama", hidden_act="mish"))
    model = small("Llama")
    model.model.layers[0].mlp.down_proj = torch.nn.utils.parametrizations.weight_norm(model.model.layers[0].mlp.down_proj)
    assert "ParametrizedLinear" in reason(model)
    model = small("Llama")
    linear = model.model.layers[0].mlp.gate_proj
    linear.weight = torch.nn.Parameter(linear.weight.data.as_subclass(Half))
    assert "gate_proj.weight is a Half, not a plain tensor" == reason(model)
    model = small("Llama")
    model.model.layers[0].mlp.up_proj.bfloat16()
    assert "element types differ" in reason(model)
    quantised = torch.ao.quantization.quantize_dynamic(small("Phi3"), {torch.nn.Linear}, torch.qint8)
    assert "quantized" in reason(quantised)


class Multiplied(torch.nn.Module):
    def __init__(self, change):
        super().__init__()
        self.gate_proj, self.up_proj = torch.nn.Linear(8, 16), torch.nn.Linear(8, 16)
        self.down_proj, self.act_fn, self.change = torch.nn.Linear(16, 8), torch.nn.SiLU(), change

    def forward(self, x):
        return self.change(self, x)


NOT_GATED = {
    "a multiplier outside": lambda s, x: s.down_proj(s.act_fn(s.gate_proj(x)) * s.up_proj(x)) * 0.5,
    "a multiplier inside": lambda s, x: s.down_proj(s.act_fn(s.gate_proj(x) * 0.5) * s.up_proj(x)),
    "dropout": lambda s, x: s.down_proj(torch.nn.functional.dropout(s.act_fn(s.gate_proj(x)) * s.up_proj(x), 0.1)),
    "two inputs": lambda s, x: s.down_proj(s.act_fn(s.gate_proj(x)) * s.up_proj(x + 1)),
    "a condition": lambda s, x: s.down_proj(s.act_fn(s.gate_proj(x)) * s.up_proj(x)) if x.sum() > 0 else x,
    "no product": lambda s, x: s.down_proj(s.act_fn(s.gate_proj(x)) + s.up_proj(x)),
    "a step beside": lambda s, x: (s.up_proj(x * 2), s.down_proj(s.act_fn(s.gate_proj(x)) * s.up_proj(x)))[1],
    "a residual": lambda s, x: x + s.down_proj(s.act_fn(s.gate_proj(x)) * s.up_proj(x)),
}


@pytest.mark.parametrize("change", NOT_GATED.values(), ids=NOT_GATED)
def test_another_forward_is_left_alone(change):
    report = gt.patch(torch.nn.Sequential(Multiplied(change)))
    assert not report.changed and len(report.left_alone) == 1
    with pytest.raises(RuntimeError, match="strict"):
        gt.patch(torch.nn.Sequential(Multiplied(change)), strict=True)


OTHERWISE_WRITTEN = {
    "the product's other order": lambda s, x: s.down_proj(s.up_proj(x) * s.act_fn(s.gate_proj(x))),
    "a function": lambda s, x: s.down_proj(torch.nn.functional.silu(s.gate_proj(x)) * s.up_proj(x)),
    "the halves' names exchanged": lambda s, x: s.down_proj(s.act_fn(s.up_proj(x)) * s.gate_proj(x)),
}


@pytest.mark.parametrize("change", OTHERWISE_WRITTEN.values(), ids=OTHERWISE_WRITTEN)
def test_the_forward_says_which_layer_is_which(change):
    module = Multiplied(change)
    (x,) = seeded([(5, 8)], torch.float32)
    expected = copy.deepcopy(module).double()(x.double())
    stock = module(x)
    report = gt.patch(module)
    assert len(report.changed) == 1
    assert distance(module(x), expected) <= max(1.1 * distance(stock, expected), 2.0**-22)


def test_a_module_that_contradicts_its_configuration_is_an_error():
    model = small("Llama")
    model.model.layers[0].mlp.intermediate_size = 100
    with pytest.raises(ValueError, match=r"mlp.intermediate_size is 100, but gate_proj has 96 rows"):
        gt.patch(model)
    model = small("Llama")
    model.config.hidden_act = "gelu"
    with pytest.raises(ValueError, match="config says gelu, but its activation is silu"):
        gt.patch(model)


def test_adapters_before_and_after():
    ids = tokens()
    adapter = peft.LoraConfig(target_modules=["up_proj"], init_lora_weights=False)
    before = peft.get_peft_model(small("Llama"), adapter)
    assert "up_proj is a peft." in reason(before) and "adapter" in reason(before)
    model = small("Llama")
    report = gt.patch(model)
    with torch.no_grad():
        adapted = peft.get_peft_model(model, adapter)
        with pytest.warns(RuntimeWarning, match=r"LlamaMLP steps aside.*up_proj is a peft\."):
            found = adapted(ids).logits
        report.undo()
        assert torch.equal(adapted(ids).logits, found)


def test_a_second_patch_and_a_second_undo():
    model = small("Llama")
    report = gt.patch(model)
    assert reason(model) == "already patched"
    report.undo()
    report.undo()
    assert "forward" not in vars(model.model.layers[0].mlp)


@pytest.mark.parametrize("name", ["Llama", "Phi3"])
def test_a_state_dict_loads_into_gated_mlp(name):
    stock = small(name).model.layers[0].mlp
    layer = gt.GatedMLP(64, 96, packed=name == "Phi3")
    layer.load_state_dict(stock.state_dict())
    (x,) = seeded([(2, 5, 64)], torch.float32)
    report = gt.patch(stock)
    assert torch.equal(layer(x), stock(x))
    assert len(report.changed) == 1
    layer(x).sum().backward()
    assert all(parameter.grad is not None for parameter in layer.parameters())
    with pytest.raises(ValueError, match="activation: 'tanh'"):
        gt.GatedMLP(64, 96, activation="tanh")


@pytest.mark.parametrize(("name", "layer"), [("Llama", layers.SeparateGatedMLP), ("Phi3", layers.PackedGatedMLP)])
def test_hugging_face_s_kernels_maps_the_stateless_layers(monkeypatch, name, layer):
    """By the package itself, with its own checks of the layer's form."""
    model = small(name)
    stock = model.model.layers[0].mlp
    (x,) = seeded([(2, 5, 64)], torch.float32)
    report = gt.patch(model)
    expected = stock(x)
    report.undo()

    class Repository:
        layer_name = layer.__name__

        def load(self):
            return layer

    for attribute in ("kernel_layer_name", "kernel_condition"):  # put back after the test
        monkeypatch.setattr(type(stock), attribute, None, raising=False)
    kernels.replace_kernel_forward_from_hub(type(stock), "GatedMLP")
    mode = kernels.Mode.TRAINING | kernels.Mode.TORCH_COMPILE
    with kernels.use_kernel_mapping({"GatedMLP": {"cpu": {mode: Repository()}}}, inherit_mapping=False):
        kernels.kernelize(model, mode=mode, device="cpu", use_fallback=False)
    assert stock.forward.__func__ is layer.forward
    assert torch.equal(stock(x), expected)
