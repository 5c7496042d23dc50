"""OpenVINO GenAI with a draft model, without the suite: above temperature 0, and several requests at once.

    build/audit-engines/openvino/bin/python docs/audits/openvino_drafts.py [PRECISION]     (f32 unless said otherwise)

1. do_sample with top_k 1 must give the greedy tokens. 2. The first two tokens at T = 1, top_k 3, must have the law that
they have without drafts. 3. At temperature 0 a request must get the same tokens alone and in a batch, also where the
prompts of the batch have more tokens than max_num_batched_tokens."""

import collections
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HERE / "conformance/adapters/python"))
import assay_models
import numpy as np
import openvino
import openvino_genai

PRECISION, SEEDS, NO_END = (sys.argv[1:] or ["f32"])[0], 400, 258
TARGET, DRAFT = (assay_models.openvino(str(HERE / "vectors/models" / name)) for name in ("target", "draft"))
HOW = {"INFERENCE_PRECISION_HINT": PRECISION, "KV_CACHE_PRECISION": PRECISION, "INFERENCE_NUM_THREADS": 1}


def pipeline(drafts, chunk=256):
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.cache_size, scheduler.max_num_batched_tokens = 1, chunk
    draft = {"draft_model": openvino_genai.draft_model(DRAFT, "CPU", **HOW)} if drafts else {}
    return openvino_genai.ContinuousBatchingPipeline(TARGET, scheduler, "CPU", dict(HOW, **draft))


def answers(pipe, drafts, texts, k, **settings):
    ids = [openvino.Tensor(np.array([[256, *text.encode()]], np.int64)) for text in texts]
    c = openvino_genai.GenerationConfig(max_new_tokens=k, ignore_eos=True, eos_token_id=NO_END,
                                        stop_token_ids={NO_END}, apply_chat_template=False, **settings)
    if drafts:
        c.num_assistant_tokens = drafts
    return [bytes(a.m_generation_ids[0]) for a in pipe.generate(ids, [c] * len(ids))]


if __name__ == "__main__":
    TEXT = ["And it came to pass"]
    plain, drafted = pipeline(0), pipeline(4)
    print("1. greedy, then sampled with top_k 1:")
    for drafts, pipe in ((0, plain), (4, drafted)):
        sampled = {s: answers(pipe, drafts, TEXT, 40, do_sample=True, top_k=1, rng_seed=s)[0] for s in range(3)}
        print(f"   {drafts} drafts: {answers(pipe, drafts, TEXT, 40)[0]}, {set(sampled.values())}")

    print(f"2. first two tokens, T = 1, top_k 3, {SEEDS} seeds:")
    for drafts, pipe in ((0, plain), (4, drafted)):
        seen = (answers(pipe, drafts, TEXT, 6, do_sample=True, top_k=3, rng_seed=s)[0][:2] for s in range(SEEDS))
        print(f"   {drafts} drafts: {collections.Counter(seen).most_common(10)}")

    TEXTS = ["In the beginning God created the heaven and the earth. " * 2, *TEXT, "The LORD is my shepherd; " * 3,
             "Blessed are the poor in spirit"]
    print("3. alone, then together where that differs, prompts of", [1 + len(text) for text in TEXTS], "tokens:")
    for drafts in (0, 4):
        for chunk in (64, 128, 4096):
            pipe = pipeline(drafts, chunk)
            both = zip([answers(pipe, drafts, [t], 16)[0] for t in TEXTS], answers(pipe, drafts, TEXTS, 16))
            differ = [pair for pair in both if pair[0] != pair[1]]
            print(f"   {drafts} drafts, at most {chunk} at once: {differ or 'the same'}")

    PENALTIES = [{}, {"repetition_penalty": 1.3}, {"presence_penalty": 0.8}, {"frequency_penalty": 0.5}]
    print(f"4. greedy with penalties, {len(TEXTS)} texts with 1, 2 and 4 drafts: outputs that differ from plain ones")
    for penalty in PENALTIES:
        without = [answers(plain, 0, [text], 24, **penalty)[0] for text in TEXTS]
        differ = sum(answers(drafted, drafts, [text], 24, **penalty)[0] != out
                     for text, out in zip(TEXTS, without) for drafts in (1, 2, 4))
        print(f"   {penalty or 'none'}: {differ} of {3 * len(TEXTS)}; without drafts: {without[1]}")
