"""What the tests of gatefold.torch share: tensors as NumPy arrays of the same memory, and the operations' arguments."""

import ml_dtypes
import numpy as np
import torch
from support import generator, normal

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
ROUNDING = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
NUMPY = {torch.float32: np.float32, torch.float16: np.float16, torch.bfloat16: ml_dtypes.bfloat16}
T, D, F = 5, 67, 24


def as_numpy(tensor):
    """The same memory, or None as it is."""
    if tensor is None:
        return None
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def as_torch(array):
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def random(rng, shape, dtype, scale=1.0):
    return as_torch(np.ascontiguousarray(normal(rng, shape, NUMPY[dtype], scale)))


def apart(tensor, margin=3):
    """The same tensor with `margin` NaN between rows."""
    wide = torch.full((*tensor.shape[:-1], tensor.shape[-1] + margin), torch.nan, dtype=tensor.dtype)
    wide[..., : tensor.shape[-1]] = tensor
    return wide[..., : tensor.shape[-1]]


def seeded(shapes, dtype, scale=0.5):
    """Fresh tensors of the shapes; a failing test shows the seed."""
    rng = generator()
    return [random(rng, shape, dtype, scale) for shape in shapes]


class Poisoned:
    """An output of NaN amid canaries."""

    def __init__(self, shape, dtype, margin=2):
        self.frame = torch.full((*shape[:-1], shape[-1] + margin), 77.0, dtype=dtype)
        self.out = self.frame[..., : shape[-1]]
        self.out.fill_(torch.nan)

    def assert_frame_untouched(self):
        assert (self.frame[..., self.out.shape[-1] :] == 77.0).all()
