"""gatefold.h through ctypes: the structs, the functions, and failures as exceptions."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p
from pathlib import Path

NATIVE = Path(__file__).parent / "native"

OPS = {"act_and_mul": 1, "gemm": 2, "gemm_gated": 3, "gate_up": 4, "mlp": 5}
LAYOUTS = {"separate": 1, "gate_up": 2, "up_gate": 3, "interleaved_gate_up": 4, "interleaved_up_gate": 5}
ACTIVATIONS = {
    "silu": 1, "gelu_tanh": 2, "gelu_erf": 3, "relu": 4, "sigmoid": 5, "identity": 6, "swiglu_clamped": 7,
}  # fmt: skip
DTYPES = {"float32": 1, "float16": 2, "bfloat16": 3}
BIASES = {"gate_bias": 1, "up_bias": 2, "down_bias": 4}
FLAG_BATCH_INVARIANT = 1
CPU = 1


class Error(RuntimeError):
    """A failure of the library. `status` is gatefold.h's gatefold_status; the message names what disagrees."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class InvalidArgument(Error, ValueError):
    """A value is wrong, or two values disagree (GATEFOLD_ERROR_INVALID_ARGUMENT)."""


class Unsupported(Error, NotImplementedError):
    """Valid, but no implementation, or not the forced one, can do it here (GATEFOLD_ERROR_UNSUPPORTED)."""


class OutOfMemory(Error, MemoryError):
    """Host memory ran out while a plan was made (GATEFOLD_ERROR_OUT_OF_MEMORY)."""


ERRORS = {1: InvalidArgument, 2: Unsupported, 4: OutOfMemory}


class Desc(ctypes.Structure):
    """gatefold_desc."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("op", c_int),
        ("dtype", c_int),
        ("device", c_int),
        ("layout", c_int),
        ("block", c_int64),
        ("activation", c_int),
        ("limit", c_float),
        ("alpha", c_float),
        ("beta", c_float),
        ("hidden_size", c_int64),
        ("intermediate_size", c_int64),
        ("ld_x", c_int64),
        ("ld_gate", c_int64),
        ("ld_up", c_int64),
        ("ld_down", c_int64),
        ("ld_out", c_int64),
        ("implementation", c_char_p),
        ("biases", c_uint64),
        ("chunk_tokens", c_int64),
        ("flags", c_uint64),
    ]


class Args(ctypes.Structure):
    """gatefold_args."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("tokens", c_int64),
        ("x", c_void_p),
        ("gate", c_void_p),
        ("up", c_void_p),
        ("down", c_void_p),
        ("out", c_void_p),
        ("workspace", c_void_p),
        ("workspace_size", c_size_t),
        ("stream", c_void_p),
        ("gate_bias", c_void_p),
        ("up_bias", c_void_p),
        ("down_bias", c_void_p),
    ]


class DeviceInfo(ctypes.Structure):
    """gatefold_device_info."""

    _fields_ = [
        ("name", ctypes.c_char * 128),
        ("features", ctypes.c_char * 128),
        ("threads", c_int),
        ("memory_bytes", c_size_t),
    ]


class ErrorReport(ctypes.Structure):
    """gatefold_error_report."""

    _fields_ = [
        ("max_abs", c_double),
        ("mean_abs", c_double),
        ("relative_l2", c_double),
        ("max_bound_ratio", c_double),
        ("violations", c_int64),
        ("worst_row", c_int64),
        ("worst_column", c_int64),
    ]


def _load_openmp() -> None:
    """Sees that the process has one OpenMP runtime: with two alive, calls that alternate are ten times slower.

    Whoever asks for libgomp.so.1 gets the one that is loaded first: what is loaded already, torch's own where torch is
    installed (it may be imported later), the system's, and last the wheel's, for a machine that has none of them.
    """
    name = "libgomp.so.1"
    try:
        ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        return
    except OSError:
        pass
    torch = importlib.util.find_spec("torch")
    folders = torch.submodule_search_locations if torch is not None else None
    for path in [*(str(Path(folder, "lib", name)) for folder in folders or ()), name, str(NATIVE / "openmp" / name)]:
        try:
            ctypes.CDLL(path)
            return
        except OSError:
            continue
    # Then loading the library says what is missing.


def _load() -> ctypes.CDLL:
    _load_openmp()
    library = ctypes.CDLL(str(NATIVE / "libgatefold.so"))
    signatures = {
        "gatefold_last_error": (c_char_p, []),
        "gatefold_version": (c_char_p, []),
        "gatefold_plan_create": (c_int, [POINTER(Desc), POINTER(c_void_p)]),
        "gatefold_plan_destroy": (None, [c_void_p]),
        "gatefold_plan_workspace_size": (c_int, [c_void_p, c_int64, POINTER(c_size_t)]),
        "gatefold_run": (c_int, [c_void_p, POINTER(Args)]),
        "gatefold_plan_implementation": (c_char_p, [c_void_p, c_int64]),
        "gatefold_device_query": (c_int, [c_int, c_int, POINTER(DeviceInfo)]),
        "gatefold_check": (c_int, [POINTER(Desc), POINTER(Args), c_int, POINTER(ErrorReport), POINTER(c_double)]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


library = _load()


def check(status: int) -> None:
    """Raises the exception of a status other than success, with the library's own message."""
    if status != 0:
        raise ERRORS.get(status, Error)(status, library.gatefold_last_error().decode())


def cpu_threads() -> int:
    """The threads that a plan made now on the CPU would use."""
    info = DeviceInfo()
    check(library.gatefold_device_query(CPU, 0, byref(info)))
    return info.threads
