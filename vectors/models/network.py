"""The network of the two models, to be trained: transformers' LlamaForCausalLM with tied embeddings.

Weights, residual stream, norms, rotary rotation and loss are binary32; the operands of matrix products are
rounded to bfloat16 (four times as fast on a CPU that has AVX512_BF16). The stored weights are the binary32
masters.
"""
import math

import torch
import torch.nn.functional as F

from text import VOCABULARY

EPS, THETA = 1e-5, 10000.0


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


def initial(m, seed):
    """Weights by their transformers names; the projections back into the stream start at zero."""
    g = torch.Generator().manual_seed(seed)

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
