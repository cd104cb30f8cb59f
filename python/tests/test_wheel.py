"""What the installed package needs of its surroundings: symbols, libraries, one OpenMP runtime, its own start."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import gatefold
from gatefold import _c


def dynamic(file):
    """The undefined symbols and the needed libraries of a shared library."""
    with open(file, "rb") as stream:
        elf = ELFFile(stream)
        symbols = elf.get_section_by_name(".dynsym").iter_symbols()
        undefined = {symbol.name for symbol in symbols if symbol.name and symbol["st_shndx"] == "SHN_UNDEF"}
        tags = elf.get_section_by_name(".dynamic").iter_tags()
        return undefined, {tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"}


def test_of_torch_only_stable_symbols_are_needed():
    undefined, needed = dynamic(_c.NATIVE / "libgatefold_torch.so")
    unstable = {name for name in undefined if re.match(r"_ZNK?(2at|3c10|5torch|6caffe2|8pybind11)|Py[A-Z]|_Py", name)}
    assert not unstable
    of_torch = sorted(name for name in undefined if re.match("(aoti_)?torch_", name))
    print("\n".join(of_torch))
    assert 10 <= len(of_torch) <= 60
    assert "libtorch.so" in needed and not [name for name in needed if re.match("libtorch_|libc10|libpython", name)]


def test_nothing_but_the_system_is_needed():
    """And so neither a compiler nor a library that a machine may lack."""
    system = r"lib(c|m|stdc\+\+|gcc_s|gomp)\.so\.\d|ld-linux|libgatefold\.so|libtorch\.so"
    for file in _c.NATIVE.glob("*.so"):
        assert not [name for name in dynamic(file)[1] if not re.match(system, name)], file


RUNTIMES = """
import re, sys
{imports}
import numpy as np
x = np.ones((64, 128), np.float32)
gatefold.gate_up(x, x, x, layout="separate", activation="silu")
if "torch" in sys.modules:
    torch.mm(torch.ones(256, 256), torch.ones(256, 256))
maps = open("/proc/self/maps").read()
print(len(set(re.findall(r"/\\S*lib(?:gomp|omp|iomp5)[-.]\\S*", maps))))
"""


# As on a machine without libgomp: the wheel's is loaded first.
BUNDLED = ("import ctypes, importlib.util, pathlib; ctypes.CDLL(str(pathlib.Path("
           "importlib.util.find_spec('gatefold').origin).parent / 'native/openmp/libgomp.so.1')); ")  # fmt: skip


@pytest.mark.parametrize(
    "imports",
    ["import gatefold", "import gatefold, torch", "import torch, gatefold", "import gatefold, torch, gatefold.torch",
     BUNDLED + "import gatefold, torch"],
)  # fmt: skip
def test_one_openmp_runtime_whatever_is_imported_first(imports):
    done = subprocess.run([sys.executable, "-c", RUNTIMES.format(imports=imports)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1"]


def test_the_wheel_s_own_openmp_is_there_for_machines_without():
    assert (_c.NATIVE / "openmp" / "libgomp.so.1").is_file()


def test_the_package_is_typed():
    assert (Path(gatefold.__file__).parent / "py.typed").is_file()
