"""The step of docs/swap_ffn.md in plain Python, which test_swap_ffn.py holds the tool against."""

import math

from support import floats


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def rms(v, norm, eps=1e-6):
    scale = 1 / math.sqrt(dot(v, v) / len(v) + eps)
    return [x * scale * n for x, n in zip(v, norm)]


def silu(v):
    return v / (1 + math.exp(-v))


class Definition:
    """The step as docs/swap_ffn.md has it, from the files' F32 tensors, in double precision."""

    def __init__(self, weights, state, x):
        self.w = {name: self.nested(tensor) for name, tensor in weights.items()}
        self.x = self.nested(x["x"])
        self.ram = self.nested(state["ram"])
        self.map = [[list(range(4)) for _ in cores] for cores in self.ram]
        self.margin = math.inf  # of the decision that came closest

    @staticmethod
    def nested(tensor):
        dtype, shape, raw = tensor
        assert dtype == "F32", dtype
        values = list(floats(raw))
        for size in reversed(shape[1:]):
            values = [values[i : i + size] for i in range(0, len(values), size)]
        return values

    def mlp(self, s):
        n = rms(s, self.w["ffn_norm"])
        h = [silu(dot(n, gate)) * dot(n, up) for gate, up in zip(self.w["gate_w"], self.w["up_w"])]
        return [dot(h, down) for down in self.w["down_w"]]

    def event(self, s, b, c):
        w = self.w
        n = rms(s, w["router_norm"])
        z = [dot(n, row) for row in w["router_w"]]
        logits = [dot(z, column) + bias for column, bias in zip(zip(*w["bank_w"]), w["bank_b"])]
        swap = dot(z, w["router_swap_w"]) + w["router_swap_b"][0]
        best, second = sorted(logits, reverse=True)[:2]
        self.margin = min(self.margin, abs(swap), best - second)
        if swap > 0:
            lanes, choice = self.map[b][c], logits.index(max(logits))
            bank = lanes[choice]
            s, self.ram[b][c][bank] = self.ram[b][c][bank], s
            lanes[0], lanes[choice] = lanes[choice], lanes[0]
        return s

    def step(self, events, k_ffn):
        """delta [B][D]"""
        w = self.w
        D, K, RC = len(w["ffn_norm"]), len(w["basis"]), len(w["basis"][0])
        delta = []
        for b, x in enumerate(self.x):
            pooled = [[0.0] * D for _ in range(K)]
            for c, embed in enumerate(w["core_embed"]):
                scale = [dot(embed, row) + bias + 1 for row, bias in zip(w["scale_w"], w["scale_b"])]
                shift = [dot(embed, row) + bias for row, bias in zip(w["shift_w"], w["shift_b"])]
                s = [v * m + a for v, m, a in zip(x, scale, shift)]
                for _ in range(events):
                    s = self.event(s, b, c)
                    for _ in range(k_ffn):
                        s = self.mlp(s)
                powers = [math.exp(dot(embed, row) + bias) for row, bias in zip(w["alpha_w"], w["alpha_b"])]
                for k in range(K):
                    for d in range(D):
                        pooled[k][d] += powers[k] / sum(powers) * s[d]
            q = [silu(sum(dot(w["basis"][k][r], pooled[k]) for k in range(K))) for r in range(RC)]
            delta.append([dot(q, row) for row in w["decoder"]])
        return delta
