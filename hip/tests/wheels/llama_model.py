"""A llama model of two layers with random weights, as a GGUF file, and what it computes, in doubles."""

import gguf
import numpy as np
from llama_tokens import VOCABULARY

WIDTH, HEADS, KEY_HEADS, HIDDEN, LAYERS = 256, 4, 2, 512, 2
HEAD = WIDTH // HEADS
EPSILON, ROPE_BASE = 1e-5, 10000.0

TYPES = (
    "F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4"
).split()

# Where blocks of types that the package cannot make hold their scales, as f16.
SCALES = {
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208,),
    "IQ4_NL": (0,),
    "IQ4_XS": (0,),
}


def stored(weights, name, random):
    """The bytes of weights in a type. Where the package cannot make them they are random, of the same size."""
    kind = gguf.GGMLQuantizationType[name]
    if name not in SCALES:
        return gguf.quants.quantize(weights, kind)
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    rows, columns = weights.shape
    blocks = random.integers(0, 256, (rows, columns // elements, size), dtype=np.uint8)

    def scale(value):
        for at in SCALES[name]:
            blocks[..., at : at + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)
        return blocks.reshape(rows, -1)

    scale_of_one = gguf.quants.dequantize(scale(1.0), kind).std()
    return scale(1 / (scale_of_one * np.sqrt(columns))).copy()


def make(name, path):
    """Writes the model with weights of a type to a file; returns the weights as they are read."""
    random = np.random.default_rng(7)
    kind = gguf.GGMLQuantizationType[name]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_rope_dimension_count(HEAD)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("no_vocab")
    weights = {}

    def plain(tensor, values):
        writer.add_tensor(tensor, values)
        weights[tensor] = values.astype(np.float64)

    def random_matrix(rows, columns):
        return (random.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)

    def matrix(tensor, rows, columns):
        data = stored(random_matrix(rows, columns), name, random)
        writer.add_tensor(tensor, data, raw_dtype=kind)
        weights[tensor] = gguf.quants.dequantize(data, kind).astype(np.float64)

    plain("token_embd.weight", random_matrix(VOCABULARY, WIDTH))
    plain("output_norm.weight", np.ones(WIDTH, np.float32))
    matrix("output.weight", VOCABULARY, WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        plain(block + "attn_norm.weight", np.ones(WIDTH, np.float32))
        plain(block + "ffn_norm.weight", np.ones(WIDTH, np.float32))
        matrix(block + "attn_q.weight", WIDTH, WIDTH)
        matrix(block + "attn_k.weight", KEY_HEADS * HEAD, WIDTH)
        matrix(block + "attn_v.weight", KEY_HEADS * HEAD, WIDTH)
        matrix(block + "attn_output.weight", WIDTH, WIDTH)
        matrix(block + "ffn_gate.weight", HIDDEN, WIDTH)
        matrix(block + "ffn_up.weight", HIDDEN, WIDTH)
        matrix(block + "ffn_down.weight", WIDTH, HIDDEN)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


def normalised(values):
    return values / np.sqrt((values**2).mean(axis=-1, keepdims=True) + EPSILON)


def rotated(values):
    """Neighbouring elements of heads, turned by an angle that grows with the position."""
    positions, pairs = np.arange(values.shape[0]), np.arange(HEAD // 2)
    angles = np.outer(positions, ROPE_BASE ** (-2.0 * pairs / HEAD))[:, None, :]
    even, odd = values[..., 0::2], values[..., 1::2]
    turned = np.empty_like(values)
    turned[..., 0::2] = even * np.cos(angles) - odd * np.sin(angles)
    turned[..., 1::2] = even * np.sin(angles) + odd * np.cos(angles)
    return turned


def logits(weights, tokens):
    """The logits after each of the tokens."""
    state = weights["token_embd.weight"][tokens]
    count = len(tokens)
    hidden_keys = np.triu(np.full((count, count), -np.inf), 1)
    for layer in range(LAYERS):

        def of(part):
            return weights[f"blk.{layer}.{part}.weight"].T

        inner = normalised(state)
        query = rotated((inner @ of("attn_q")).reshape(count, HEADS, HEAD))
        key = rotated((inner @ of("attn_k")).reshape(count, KEY_HEADS, HEAD))
        value = (inner @ of("attn_v")).reshape(count, KEY_HEADS, HEAD)
        heads = []
        for head in range(HEADS):
            shared = head * KEY_HEADS // HEADS
            scores = query[:, head] @ key[:, shared].T / np.sqrt(HEAD) + hidden_keys
            chances = np.exp(scores - scores.max(axis=1, keepdims=True))
            heads.append(chances / chances.sum(axis=1, keepdims=True) @ value[:, shared])
        state = state + np.concatenate(heads, axis=1) @ of("attn_output")
        inner = normalised(state)
        gate = inner @ of("ffn_gate")
        state = state + (gate / (1 + np.exp(-gate)) * (inner @ of("ffn_up"))) @ of("ffn_down")
    return normalised(state) @ weights["output.weight"].T
