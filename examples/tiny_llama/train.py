#!/usr/bin/env python3
"""Trains one small Llama for each seed on this machine's source code and documentation: train.py FOLDER

A seed decides the first weights and which pieces of text come in which order. Each is trained by one thread, several
side by side, so that the result doesn't depend on the number of cores.
"""

import argparse
import math
import multiprocessing
import os
import time
from pathlib import Path

import torch

import corpus
import model as tiny

BATCH, LEARNING_RATE, WARM_UP = 16, 4e-3, 50


def learning_rate(step: int, steps: int) -> float:
    """Rises over the first WARM_UP steps, then falls as a cosine to a twentieth."""
    if step < WARM_UP:
        return LEARNING_RATE * (step + 1) / WARM_UP
    done = (step - WARM_UP) / max(1, steps - WARM_UP)
    return LEARNING_RATE * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))


def train(seed: int, steps: int, texts: dict[str, torch.Tensor]) -> torch.nn.Module:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = tiny.build().train()
    weights = list(model.parameters())
    optimizer = torch.optim.AdamW(weights, betas=(0.9, 0.95), weight_decay=0.05)
    start = time.monotonic()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps)
        ids = corpus.windows(texts, BATCH, tiny.LENGTH, generator)  # [BATCH, LENGTH]
        loss = model(ids, labels=ids, use_cache=False).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        if step % 200 == 0 or step == steps - 1:
            print(f"seed {seed}, step {step}: loss {loss.item():.3f}, {time.monotonic() - start:.0f} s", flush=True)
    return model


def train_one(seed: int, steps: int, folder: Path) -> None:
    torch.set_num_threads(1)
    tiny.save(train(seed, steps, corpus.read(held_out=False)), folder / f"seed{seed}.safetensors")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="receives seedN.safetensors")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="seeds at a time")
    given = parser.parse_args()
    for kind, text in corpus.read(held_out=False).items():
        print(f"{kind}: {len(text) / 1e6:.1f} MB")
    tasks = [(seed, given.steps, given.folder) for seed in given.seeds]
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        pool.starmap(train_one, tasks, chunksize=1)


if __name__ == "__main__":
    main()
