"""Trains one of the two models of vectors/models on the CPU.

    apt-get install bible-kjv bible-kjv-text python3-torch libopenblas0-pthread
    /usr/bin/python3 train.py target FOLDER     (checkpoint.pt and log.txt go to FOLDER)
    /usr/bin/python3 train.py draft FOLDER
    /usr/bin/python3 export.py target FOLDER target      (what transformers loads)

The network is in network.py, what moves its weights in optimiser.py.

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

from network import initial, logits, rotary
from optimiser import Optimiser
from text import BOS, EOS, split

SEED = 1611
THREADS, PIECES = 2, 4

# phases: (tokens, context). muon, adam: peak learning rates.
MODELS = {
    "target": dict(hidden=192, layers=6, heads=6, kv=2, ffn=512, head=32, batch=8192, muon=0.02, adam=3e-3,
                   phases=[(8_000_000, 256), (3_500_000, 512), (1_500_000, 1024), (1_000_000, 2048)]),
    "draft": dict(hidden=64, layers=2, heads=2, kv=1, ffn=192, head=32, batch=8192, muon=0.02, adam=3e-3,
                  phases=[(5_000_000, 256), (1_500_000, 512), (750_000, 1024), (750_000, 2048)]),
}


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


# --- the run --------------------------------------------------------------------------------------------

def schedule(done, total):
    """Warm-up over 200,000 tokens, flat to 40 % of the run, then linear to zero."""
    return min(1.0, (done + 1) / 200_000, (total - done) / (0.6 * total))


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
    w = initial(m, SEED)
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
