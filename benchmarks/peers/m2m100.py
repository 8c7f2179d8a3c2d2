"""A regard model in Hugging Face's M2M100, which is pre-norm as regard's real models are.

The same weights, so `generate` does the same work: what regard's torch engine is held to.
"""

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import M2M100Config, M2M100ForConditionalGeneration

from regard.attention.positions import sinusoidal_positions
from regard.bundle import Bundle

NAMES = {
    "attention.out": "self_attn.out_proj",
    "attention_residual.norm": "self_attn_layer_norm",
    "cross_attention.query": "encoder_attn.q_proj",
    "cross_attention.out": "encoder_attn.out_proj",
    "cross_residual.norm": "encoder_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}
PARTS = {
    "attention.qkv": [f"self_attn.{name}_proj" for name in "qkv"],
    "cross_attention.key_value": [f"encoder_attn.{name}_proj" for name in "kv"],
}


def build(bundle: Bundle) -> M2M100ForConditionalGeneration:
    """The network of a pre-norm bundle with one matrix for all words."""
    model, vocab = bundle.model, bundle.tgt_tokenizer.vocab
    assert (model.norm, model.share) == ("pre", "all")
    (n_encoder, n_heads, d_ff), decoder = model.encoder, model.decoder
    network = M2M100ForConditionalGeneration(
        M2M100Config(
            vocab_size=len(vocab),
            d_model=model.d_model,
            encoder_layers=n_encoder,
            decoder_layers=decoder[0],
            encoder_attention_heads=n_heads,
            decoder_attention_heads=decoder[1],
            encoder_ffn_dim=d_ff,
            decoder_ffn_dim=decoder[2],
            activation_function=model.activation,
            scale_embedding=model.scale_embeddings,
            max_position_embeddings=model.max_len,
            pad_token_id=vocab.pad,
            bos_token_id=vocab.bos,
            eos_token_id=vocab.eos,
            decoder_start_token_id=vocab.bos,
        )
    )
    own = load_file(bundle.weights)
    weights = translated(own)
    missing, unexpected = network.load_state_dict(weights, strict=False)
    tied = ("embed_tokens.weight", "lm_head.weight")
    assert not unexpected, unexpected
    assert all(name.endswith(tied) for name in missing), missing
    network.tie_weights()
    rows = own.get("source.positions.table")
    if rows is None:
        rows = sinusoidal_positions(model.max_len, model.d_model).float()
    for side in (network.model.encoder, network.model.decoder):
        first = vocab.pad + 1  # where its positions begin
        side.embed_positions.weights[first : first + len(rows)] = rows[
            : len(side.embed_positions.weights) - first
        ]
    return network.eval()


def translated(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """regard's weights by M2M100's names."""
    found = {}
    for name, tensor in weights.items():
        tensor = tensor.float()
        if name == "source.weight":
            found["model.shared.weight"] = tensor
        if name.startswith(("source.", "target.")):
            continue
        stem, kind = name.rsplit(".", 1)
        parts = stem.split(".")
        if parts[1] == "norm":
            found[f"model.{parts[0]}.layer_norm.{kind}"] = tensor
            continue
        layer, inside = ".".join(parts[:3]), ".".join(parts[3:])
        if inside in PARTS:
            for part, own in zip(tensor.chunk(len(PARTS[inside])), PARTS[inside], strict=True):
                found[f"model.{layer}.{own}.{kind}"] = part
        else:
            found[f"model.{layer}.{NAMES[inside]}.{kind}"] = tensor
    return found


@torch.inference_mode()
def generate(
    network: M2M100ForConditionalGeneration,
    rows: list[list[int]],
    *,
    beam: int,
    pad: int,
) -> list[list[int]]:
    """The best hypotheses."""
    width = max(map(len, rows))
    filled = [row + [pad] * (width - len(row)) for row in rows]
    ids = torch.tensor(filled, device=network.device)
    said = network.generate(
        input_ids=ids,
        attention_mask=(ids != pad).long(),
        num_beams=beam,
        early_stopping=beam > 1,
        do_sample=False,
        max_new_tokens=2 * width + 20,
    )
    return said[:, 1:].tolist()
