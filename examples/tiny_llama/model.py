"""The model: Transformers' own Llama over bytes, 0.43 million weights, of which gated MLPs are 69 %."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

LENGTH = 256  # bytes that it sees at a time
COMMITTED = Path(__file__).parent / "weights"


def build(dtype: torch.dtype = torch.float32) -> LlamaForCausalLM:
    """With fresh weights, by torch's generator."""
    config = LlamaConfig(
        vocab_size=256, hidden_size=96, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=1024, tie_word_embeddings=True, bos_token_id=None,
        eos_token_id=None, pad_token_id=None, attn_implementation="sdpa",
    )  # fmt: skip
    return LlamaForCausalLM(config).to(dtype)


def save(model: LlamaForCausalLM, path: Path) -> None:
    """In bf16, as checkpoints of large models are published."""
    path.parent.mkdir(parents=True, exist_ok=True)
    state = model.state_dict()
    del state["lm_head.weight"]  # the embedding again
    save_file({name: tensor.bfloat16().contiguous() for name, tensor in state.items()}, path)


def load(path: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """The stored weights in another type: fp32 holds every bf16 number, fp16 those that are not tiny."""
    model = build()
    missing, unexpected = model.load_state_dict(load_file(path), strict=False)
    if set(missing) != {"lm_head.weight"} or unexpected:
        raise SystemExit(f"{path}: lacks {missing}, and {unexpected} is not in the model")
    model.tie_weights()
    return model.to(dtype).eval()


def weight_files(folder: Path) -> list[Path]:
    files = sorted(folder.glob("seed*.safetensors"))
    if not files:
        raise SystemExit(f"{folder}: holds no seed*.safetensors; train.py writes them")
    return files
