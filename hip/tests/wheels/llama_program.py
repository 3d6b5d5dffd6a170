"""Feeds tokens to a model with llama.cpp: `llama_program.py MODEL LAYERS-ON-THE-DEVICE RESULT PROMPT...`, the first tokens at
once and three more one by one, for prompts of several lengths; saves the logits after each step."""

import sys
import time

import cyllama.llama.llama_cpp as llama
import numpy as np
from llama_tokens import MORE, VOCABULARY, token


class Model(llama.LlamaModel):
    # The package asks for it where it reads logits, and has it no more.
    n_vocab = VOCABULARY


path, layers, result, prompts = sys.argv[1], int(sys.argv[2]), sys.argv[3], [int(length) for length in sys.argv[4:]]
llama.ggml_backend_load_all()
llama.llama_backend_init()
parameters = llama.LlamaModelParams()
parameters.n_gpu_layers = layers
parameters.use_mmap = False
model = Model(path_model=path, params=parameters)
found = {}
for prompt in prompts:
    options = llama.LlamaContextParams()
    options.n_ctx, options.n_batch = 256, 64
    options.n_threads = options.n_threads_batch = 1
    if layers == 0:
        options.op_offload = options.offload_kqv = False
    context = llama.LlamaContext(model=model, params=options)
    past, rows, times = 0, [], []
    for count in [prompt] + [1] * MORE:
        batch = llama.LlamaBatch(n_tokens=count, embd=0, n_seq_max=1)
        batch.set_batch([token(past + at) for at in range(count)], n_past=past, logits_all=False)
        begin = time.perf_counter()
        context.decode(batch)
        rows.append(np.array(context.get_logits_ith(-1)[:VOCABULARY], dtype=np.float64))
        times.append(1000 * (time.perf_counter() - begin))
        past += count
    found[str(prompt)] = np.array(rows)
    print(f"prompt of {prompt}: {times[0]:.0f} ms, then", " ".join(f"{time:.0f}" for time in times[1:]), "ms a token")
np.savez(result, **found)
