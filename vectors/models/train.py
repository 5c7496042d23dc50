"""Trains one of the two models of vectors/models on the CPU.

    apt-get install bible-kjv bible-kjv-text python3-torch libopenblas0-pthread
    /usr/bin/python3 train.py target FOLDER     (checkpoint.pt and log.txt go to FOLDER)
    /usr/bin/python3 train.py draft FOLDER
    /usr/bin/python3 export.py target FOLDER target      (what transformers loads)

The architecture is transformers' LlamaForCausalLM with tied embeddings. Weights, residual stream, norms,
rotary rotation and loss are binary32; the operands of matrix products are rounded to bfloat16 (four times
as fast on a CPU that has AVX512_BF16). The stored weights are the binary32 masters.

A run that is stopped goes on from its last checkpoint with the same steps: the batch of a step is a
function of the seed and the step number alone, and the schedule counts tokens, not seconds.
"""
import math
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

os.environ["OMP_NUM_THREADS"] = "1"  # the threads are ours, see gradients()
import numpy as np
import torch
import torch.nn.functional as F

from text import BOS, EOS, VOCABULARY, split

EPS, THETA, SEED = 1e-5, 10000.0, 1611
THREADS, PIECES = 2, 4

# phases: (tokens, context). muon, adam: peak learning rates.
MODELS = {
    "target": dict(hidden=192, layers=6, heads=6, kv=2, ffn=512, head=32, batch=8192, muon=0.02, adam=3e-3,
                   phases=[(8_000_000, 256), (3_500_000, 512), (1_500_000, 1024), (1_000_000, 2048)]),
    "draft": dict(hidden=64, layers=2, heads=2, kv=1, ffn=192, head=32, batch=8192, muon=0.02, adam=3e-3,
                  phases=[(5_000_000, 256), (1_500_000, 512), (750_000, 1024), (750_000, 2048)]),
}


# --- the model ------------------------------------------------------------------------------------------

class RmsNorm(torch.autograd.Function):
    """x [..., n] binary32, gain [n] -> x / rms(x) * gain in bfloat16."""

    @staticmethod
    def forward(ctx, x, gain):
        r = torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS)
        normal = x * r
        ctx.save_for_backward(normal, r, gain)
        return (normal * gain).bfloat16()

    @staticmethod
    def backward(ctx, dy):
        normal, r, gain = ctx.saved_tensors
        dy = dy.float()
        scaled = dy * normal
        dgain = scaled.flatten(0, -2).sum(0)
        along = (scaled * gain).mean(-1, keepdim=True)
        return r * (dy * gain - normal * along), dgain


class Attention(torch.autograd.Function):
    """Causal attention in blocks of queries, so that the masked half is mostly not computed.
    q [n, g, T, d] (g query heads share a key head; q scaled already), k and v [n, T, d], bfloat16."""

    BLOCK = 128

    @staticmethod
    def forward(ctx, q, k, v):
        n, g, T, d = q.shape
        B = min(Attention.BLOCK, T)
        mask = torch.full((B, B), -math.inf, dtype=q.dtype).triu(1)
        kt, out, weights = k.transpose(1, 2).contiguous(), torch.empty_like(q), []
        for a in range(0, T, B):
            b = a + B
            s = torch.bmm(q[:, :, a:b].reshape(n, g * B, d), kt[:, :, :b]).view(n, g, B, b)
            s[..., a:b] += mask
            p = s.softmax(-1)
            out[:, :, a:b] = torch.bmm(p.view(n, g * B, b), v[:, :b]).view(n, g, B, d)
            weights.append(p)
        ctx.save_for_backward(q, k, v, *weights)
        return out

    @staticmethod
    def backward(ctx, dout):
        q, k, v, *weights = ctx.saved_tensors
        n, g, T, d = q.shape
        B = min(Attention.BLOCK, T)
        vt, dq = v.transpose(1, 2).contiguous(), torch.empty_like(q)
        dk, dv = torch.zeros(k.shape), torch.zeros(v.shape)
        for p, a in zip(weights, range(0, T, B)):
            b = a + B
            do = dout[:, :, a:b].reshape(n, g * B, d)
            p = p.view(n, g * B, b)
            ds = torch._softmax_backward_data(torch.bmm(do, vt[:, :, :b]), p, -1, p.dtype)
            dq[:, :, a:b] = torch.bmm(ds, k[:, :b]).view(n, g, B, d)
            dk[:, :b] += torch.bmm(ds.transpose(1, 2), q[:, :, a:b].reshape(n, g * B, d))
            dv[:, :b] += torch.bmm(p.transpose(1, 2), do)
        return dq, dk.to(k.dtype), dv.to(v.dtype)


def initial(m):
    """Weights by their transformers names; the projections back into the stream start at zero."""
    g = torch.Generator().manual_seed(SEED)

    def normal(rows, columns, std):
        return torch.randn(rows, columns, generator=g) * std

    h, q, kv, f = m["hidden"], m["heads"] * m["head"], m["kv"] * m["head"], m["ffn"]
    w = {"model.embed_tokens.weight": normal(VOCABULARY, h, 0.02), "model.norm.weight": torch.ones(h)}
    for i in range(m["layers"]):
        p, s = "model.layers.%d." % i, h ** -0.5
        w[p + "input_layernorm.weight"] = torch.ones(h)
        w[p + "self_attn.q_proj.weight"] = normal(q, h, s)
        w[p + "self_attn.k_proj.weight"] = normal(kv, h, s)
        w[p + "self_attn.v_proj.weight"] = normal(kv, h, s)
        w[p + "self_attn.o_proj.weight"] = torch.zeros(h, q)
        w[p + "post_attention_layernorm.weight"] = torch.ones(h)
        w[p + "mlp.gate_proj.weight"] = normal(f, h, s)
        w[p + "mlp.up_proj.weight"] = normal(f, h, s)
        w[p + "mlp.down_proj.weight"] = torch.zeros(h, f)
    return {name: t.requires_grad_() for name, t in w.items()}


def rotary(T, d):
    """cos [T, d] and sin [T, d], the sine negated in the first half: rotate-half as one roll."""
    frequency = THETA ** (-torch.arange(0, d, 2).double() / d)
    angle = torch.outer(torch.arange(T).double(), frequency)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([cos, cos], 1).float(), torch.cat([-sin, sin], 1).float()


def rotate(x, table):
    cos, sin = table
    x = x.float()
    return x * cos[:, None] + x.roll(x.shape[-1] // 2, -1) * sin[:, None]


def logits(w, m, tokens, table):
    """tokens [B, T] -> [B, T, V]."""
    B, T = tokens.shape
    d, heads, kv = m["head"], m["heads"], m["kv"]
    low = {name: t.bfloat16() for name, t in w.items() if t.dim() == 2}
    x = F.embedding(tokens, w["model.embed_tokens.weight"])
    for i in range(m["layers"]):
        p = "model.layers.%d." % i
        y = RmsNorm.apply(x, w[p + "input_layernorm.weight"])
        q = F.linear(y, low[p + "self_attn.q_proj.weight"]).view(B, T, heads, d)
        k = F.linear(y, low[p + "self_attn.k_proj.weight"]).view(B, T, kv, d)
        v = F.linear(y, low[p + "self_attn.v_proj.weight"]).view(B, T, kv, d)
        q = (rotate(q, table) * d ** -0.5).bfloat16().transpose(1, 2).reshape(B * kv, heads // kv, T, d)
        k = rotate(k, table).bfloat16().transpose(1, 2).reshape(B * kv, T, d)
        v = v.transpose(1, 2).reshape(B * kv, T, d)
        y = Attention.apply(q, k, v).view(B, heads, T, d).transpose(1, 2).reshape(B, T, heads * d)
        x = x + F.linear(y, low[p + "self_attn.o_proj.weight"])
        y = RmsNorm.apply(x, w[p + "post_attention_layernorm.weight"])
        gate, up = F.linear(y, low[p + "mlp.gate_proj.weight"]), F.linear(y, low[p + "mlp.up_proj.weight"])
        x = x + F.linear(F.silu(gate) * up, low[p + "mlp.down_proj.weight"])
    return F.linear(RmsNorm.apply(x, w["model.norm.weight"]), low["model.embed_tokens.weight"])


# --- the data -------------------------------------------------------------------------------------------

class Batches:
    """Rows of context + 1 tokens. The chapters of an epoch are laid end to end in a drawn order and cut
    into rows, which are shuffled. One row in eight (the first, if there are fewer) is instead BOS and what
    follows the start of some verse, as a prompt is."""

    def __init__(self, context, rows, seed):
        self.context, self.rows, self.seed = context, rows, seed
        self.documents = [np.array([BOS, *text, EOS], np.int64) for _, text in split()["train"]]
        self.whole = np.concatenate(self.documents)
        verses = np.flatnonzero(self.whole[:-context - 1] == 10)
        self.verses = verses[self.whole[verses + 1] != EOS]
        self.epoch = -1

    def prepare(self, epoch):
        draw = np.random.RandomState((self.seed, self.context, epoch))
        stream = np.concatenate([self.documents[i] for i in draw.permutation(len(self.documents))])
        stream = np.roll(stream, draw.randint(len(stream)))
        starts = np.arange(0, len(stream) - self.context - 1, self.context)
        self.epoch, self.stream, self.starts = epoch, stream, draw.permutation(starts)

    def batch(self, step):
        per_epoch = (len(self.whole) - 1) // self.context // self.rows - 1
        if step // per_epoch != self.epoch:
            self.prepare(step // per_epoch)
        first = step % per_epoch * self.rows
        rows = [self.stream[a:a + self.context + 1] for a in self.starts[first:first + self.rows]]
        draw = np.random.RandomState((self.seed, self.context, 1 << 20, step))
        for i in range(0, self.rows, 8):
            verse = self.verses[draw.randint(len(self.verses))]
            rows[i] = np.concatenate([[BOS], self.whole[verse + 1:verse + 1 + self.context]])
        return torch.from_numpy(np.stack(rows))


# --- the optimiser --------------------------------------------------------------------------------------

def orthogonal(g):
    """The nearest orthogonal matrix to each of g [n, rows, columns], roughly: five Newton-Schulz steps."""
    tall = g.shape[1] > g.shape[2]
    x = (g.transpose(1, 2) if tall else g).bfloat16()
    x = x / (x.float().flatten(1).norm(dim=1)[:, None, None] + 1e-7).bfloat16()
    for _ in range(5):
        a = torch.bmm(x, x.transpose(1, 2))
        x = 3.4445 * x + torch.bmm(-4.775 * a + 2.0315 * torch.bmm(a, a), x)
    return (x.transpose(1, 2) if tall else x).float()


class Optimiser:
    """Muon (momentum 0.95, Nesterov) for the matrices of the layers, AdamW (0.9, 0.95) for the embedding
    and the norms."""

    def __init__(self, w, m):
        self.m, self.groups = m, {}
        for name, t in w.items():
            if "layers" in name and t.dim() == 2:
                self.groups.setdefault(tuple(t.shape), []).append(t)
        self.momenta = {s: torch.zeros(len(ts), *s) for s, ts in self.groups.items()}
        rest = [t for name, t in w.items() if "layers" not in name or t.dim() == 1]
        self.adam = torch.optim.AdamW(rest, lr=m["adam"], betas=(0.9, 0.95), eps=1e-10, weight_decay=0.0)

    def state(self):
        return {"momenta": self.momenta, "adam": self.adam.state_dict()}

    def load(self, state):
        self.momenta = state["momenta"]
        self.adam.load_state_dict(state["adam"])

    @torch.no_grad()
    def step(self, scale):
        for group in self.adam.param_groups:
            group["lr"] = self.m["adam"] * scale
        self.adam.step()
        for shape, ts in self.groups.items():
            g = torch.stack([t.grad for t in ts])
            momentum = self.momenta[shape].mul_(0.95).add_(g, alpha=0.05)
            update = orthogonal(0.05 * g + 0.95 * momentum) * max(1, shape[0] / shape[1]) ** 0.5
            rate = self.m["muon"] * scale
            for t, u in zip(ts, update):
                t.mul_(1 - 0.1 * rate).sub_(u, alpha=rate)


def schedule(done, total):
    """Warm-up over 200,000 tokens, flat to 40 % of the run, then linear to zero."""
    return min(1.0, (done + 1) / 200_000, (total - done) / (0.6 * total))


# --- the run --------------------------------------------------------------------------------------------

def gradients(workers, w, m, batch, table):
    """Sets the .grad of every weight, returns the mean loss in nats. The batch is cut into PIECES that the
    workers take as they become free (PyTorch's own threads wait for each other at every operation, which
    is slow on a busy machine); the sum is taken in the order of the pieces, so it does not depend on them."""
    names = list(w)

    def piece(rows):
        out = logits(w, m, rows[:, :-1], table).float()
        loss = F.cross_entropy(out.flatten(0, 1), rows[:, 1:].flatten()) / PIECES
        return loss.item(), torch.autograd.grad(loss, [w[name] for name in names])

    results = list(workers.map(piece, batch.chunk(PIECES)))
    for name, *parts in zip(names, *(grads for _, grads in results)):
        w[name].grad = sum(parts[1:], parts[0])
    return sum(loss for loss, _ in results)


def train(kind, folder):
    m = MODELS[kind]
    os.makedirs(folder, exist_ok=True)
    w = initial(m)
    optimiser, path = Optimiser(w, m), os.path.join(folder, "checkpoint.pt")
    step, done, busy = 0, 0, 0.0
    if os.path.exists(path):
        saved = torch.load(path)
        step, done, busy = saved["step"], saved["done"], saved["busy"]
        optimiser.load(saved["optimiser"])
        with torch.no_grad():
            for name, t in w.items():
                t.copy_(saved["weights"][name])
    total = sum(tokens for tokens, _ in m["phases"])
    log = open(os.path.join(folder, "log.txt"), "a", buffering=1)
    begun = saved_at = time.time()
    workers = ThreadPoolExecutor(THREADS)
    first, losses = 0, []
    for tokens, context in m["phases"]:
        steps = tokens // m["batch"]
        data, table = Batches(context, m["batch"] // context, SEED), rotary(context, m["head"])
        while step < first + steps:
            batch = data.batch(step - first)
            losses.append(gradients(workers, w, m, batch, table) / math.log(2))
            optimiser.step(schedule(done, total))
            step, done = step + 1, done + m["batch"]
            if step % 25 == 0:
                seconds = busy + time.time() - begun
                print("step %d tokens %d context %d bits %.4f seconds %.0f cpu %.0f" % (
                    step, done, context, sum(losses) / len(losses), seconds, time.process_time()), file=log)
                losses = []
            if time.time() - saved_at > 100 or (step == first + steps):
                state = {"weights": w, "optimiser": optimiser.state(), "step": step, "done": done,
                         "busy": busy + time.time() - begun}
                torch.save(state, path + ".new")
                os.replace(path + ".new", path)
                saved_at = time.time()
        first += steps


if __name__ == "__main__":
    train(*sys.argv[1:])
