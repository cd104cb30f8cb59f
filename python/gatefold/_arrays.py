"""NumPy arrays as the library takes them: a pointer and a leading dimension."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import _c


class Operand(NamedTuple):
    """`array` is what the library reads or writes; `ld` counts elements from row to row, 0 for packed rows."""

    array: np.ndarray
    ld: int

    @property
    def pointer(self) -> int:
        return self.array.ctypes.data


def require_array(name: str, array: object, like: np.ndarray | None = None, like_name: str = "x") -> np.ndarray:
    """Refuses what is no array of an element type that the library has, or not of `like`'s."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name}: {type(array).__name__}, not a NumPy array")
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name}: a masked array, but every element counts here: give filled(VALUE)")
    if array.dtype.name not in _c.DTYPES or not array.dtype.isnative:
        raise TypeError(f"{name}: dtype {array.dtype}, not one of {', '.join(_c.DTYPES)} in native byte order")
    if like is not None and array.dtype != like.dtype:
        raise TypeError(f"{name}: dtype {array.dtype}, but {like_name} has {like.dtype}")
    return array


def require_matrix(name: str, array: object, like: np.ndarray | None = None, like_name: str = "x") -> np.ndarray:
    """The same for an array of two dimensions."""
    array = require_array(name, array, like, like_name)
    if array.ndim != 2:
        raise ValueError(f"{name}: {array.ndim} dimensions, shape {array.shape}, not 2")
    return array


def require_shape(name: str, array: np.ndarray, shape: tuple[int, ...], why: str) -> None:
    """Refuses another shape; `why` says where the wanted one comes from."""
    if array.shape != shape:
        raise ValueError(f"{name}: shape {array.shape}, but {why} wants {shape}")


def _leading_dimension(array: np.ndarray) -> int | None:
    """None where the library can't read the rows where they lie."""
    rows, columns = array.shape
    item = array.itemsize
    if not array.flags.aligned:
        return None
    if rows == 0 or columns == 0:
        return 0
    if columns > 1 and array.strides[1] != item:
        return None
    if rows == 1 or array.strides[0] == columns * item:
        return 0
    ld, rest = divmod(array.strides[0], item)
    return ld if rest == 0 and ld >= columns else None


def input_operand(array: np.ndarray) -> Operand:
    """Rows with a stride are read where they lie; a copy is made only of what has no dense, forward rows."""
    ld = _leading_dimension(array)
    return Operand(np.array(array, order="C"), 0) if ld is None else Operand(array, ld)


def output_operand(out: np.ndarray | None, shape: tuple[int, int], like: np.ndarray, like_name: str) -> Operand:
    """`out` as it is, or a new array."""
    if out is None:
        return Operand(np.empty(shape, like.dtype), 0)
    require_matrix("out", out, like, like_name)
    require_shape("out", out, shape, "the operation")
    if not out.flags.writeable:
        raise ValueError("out: read-only")
    if not out.flags.aligned:
        raise ValueError(f"out: address {out.ctypes.data:#x}, no multiple of the element size {out.itemsize}")
    ld = _leading_dimension(out)
    if ld is None:
        raise ValueError(f"out: strides {out.strides} bytes, but elements of {out.itemsize} bytes have to lie side by side "
                         "in rows that don't overlap")  # fmt: skip
    return Operand(out, ld)


def bias_vector(name: str, bias: object, length: int, like: np.ndarray, like_name: str) -> np.ndarray:
    """A bias of `length` elements, contiguous."""
    bias = require_array(name, bias, like, like_name)
    require_shape(name, bias, (length,), "its weight")
    return bias if bias.flags.c_contiguous and bias.flags.aligned else np.array(bias, order="C")


def aligned_bytes(size: int) -> np.ndarray:
    """`size` bytes that begin at a multiple of 256, as workspaces must."""
    memory = np.empty(size + 255, np.uint8)
    start = -memory.ctypes.data % 256
    return memory[start : start + size]
