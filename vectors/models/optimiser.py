"""What moves the weights of train.py at each step: Muon and AdamW."""
import torch


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
