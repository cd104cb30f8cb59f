"""parallelize over 2 and 4 processes with gloo, and over GPUs with NCCL, against one process:
parallel_worker.py and parallel_cuda_worker.py have what each of them checks."""

import secrets
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import gatefold.torch as gt

WORKERS = Path(__file__).parent


def run_processes(worker, world, tmp_path):
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    (tmp_path / "seed").write_text(str(seed))
    processes = [
        subprocess.Popen([sys.executable, str(WORKERS / worker), str(rank), str(world), str(tmp_path)], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
        for rank in range(world)
    ]  # fmt: skip
    try:
        said = [process.communicate(timeout=240)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, text in zip(processes, said):
        assert process.returncode == 0, text


@pytest.mark.parametrize("world", [2, 4])
def test_several_processes(world, tmp_path):
    run_processes("parallel_worker.py", world, tmp_path)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two GPUs")
@pytest.mark.parametrize("world", [2, 4, 8])
def test_several_gpus(world, tmp_path):
    if torch.cuda.device_count() < world:
        pytest.skip(f"fewer than {world} GPUs")
    run_processes("parallel_cuda_worker.py", world, tmp_path)


def test_what_is_no_module_or_mesh_is_refused():
    with pytest.raises(TypeError, match="module: str, not a torch.nn.Module"):
        gt.parallelize("layer", None)
    with pytest.raises(TypeError, match="mesh: int, not a DeviceMesh"):
        gt.parallelize(gt.GatedMLP(8, 16), 2)


@pytest.mark.parametrize("with_gradients", [False, True])
def test_a_dimension_that_x_has_not_is_refused(with_gradients, tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        layer = gt.parallelize(gt.GatedMLP(8, 16), init_device_mesh("cpu", (1,)), sequence_dim=3)
        with torch.set_grad_enabled(with_gradients), pytest.raises(ValueError, match="sequence_dim: 3, but x has 2 dim"):
            layer(torch.ones(2, 8))
    finally:
        dist.destroy_process_group()
