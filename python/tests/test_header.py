"""Names, numbers and structs as gatefold.h has them: the header is read, and what Python says of it compared."""

import ctypes
import re
from pathlib import Path
from typing import get_args

import pytest

import gatefold
from gatefold import _c

HEADER = (Path(__file__).parents[2] / "include" / "gatefold" / "gatefold.h").read_text()
SHORT = {"float32": "FP32", "float16": "FP16", "bfloat16": "BF16"}


def enumerators(prefix):
    return {name: int(number) for name, number in re.findall(rf"GATEFOLD_{prefix}_(\w+) = (\d+)", HEADER)}


@pytest.mark.parametrize(
    ("prefix", "known"),
    [("OP", _c.OPS), ("LAYOUT", _c.LAYOUTS), ("ACTIVATION", _c.ACTIVATIONS),
     ("DTYPE", {SHORT[name]: number for name, number in _c.DTYPES.items()}),
     ("BIAS", {name.removesuffix("_bias"): number for name, number in _c.BIASES.items()})],
)  # fmt: skip
def test_every_name_has_its_number(prefix, known):
    assert {name.upper(): number for name, number in known.items()} == enumerators(prefix)


def test_type_hints_have_every_name():
    assert set(get_args(gatefold.Layout)) == set(_c.LAYOUTS)
    names, clamped = get_args(gatefold.Activation)
    assert set(get_args(names)) == set(_c.ACTIVATIONS) and clamped is gatefold.SwigluClamped


@pytest.mark.parametrize(("name", "struct"), [("desc", _c.Desc), ("args", _c.Args), ("device_info", _c.DeviceInfo),
                                              ("error_report", _c.ErrorReport)])  # fmt: skip
def test_structs_have_the_header_s_fields(name, struct):
    body = re.search(rf"typedef struct gatefold_{name} {{(.*?)}} gatefold_{name};", HEADER, re.DOTALL)[1]
    body = re.sub(r"//.*", "", body)
    fields = []
    for declaration in filter(None, map(str.strip, body.split(";"))):
        kind, names = re.fullmatch(r"((?:const )?\w+ ?\*?)\s*(.*)", declaration, re.DOTALL).groups()
        fields += [(field.strip().split("[")[0].lstrip("*"), kind.strip()) for field in names.split(",")]
    assert [field for field, _ in fields] == [field for field, *_ in struct._fields_]
    sizes = {"size_t": 8, "int64_t": 8, "uint64_t": 8, "double": 8, "float": 4, "int": 4}
    for (field, kind), (_, of_python, *_) in zip(fields, struct._fields_):
        expected = 8 if kind.endswith("*") else sizes.get(kind, 4)  # an enumeration is an int
        assert issubclass(of_python, ctypes.Array) or ctypes.sizeof(of_python) == expected, field
