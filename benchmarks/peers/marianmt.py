"""Hugging Face MarianMT in a plain PyTorch training script: what regard's training is held to."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import MarianConfig, MarianMTModel


def build(
    *, n_words: int, d_model: int, n_layers: int, n_heads: int, d_ff: int, dropout: float, pad: int
) -> MarianMTModel:
    """The paper's Transformer: post-norm, ReLU, sines, one matrix for both sides and the output."""
    return MarianMTModel(
        MarianConfig(
            vocab_size=n_words,
            d_model=d_model,
            encoder_layers=n_layers,
            decoder_layers=n_layers,
            encoder_attention_heads=n_heads,
            decoder_attention_heads=n_heads,
            encoder_ffn_dim=d_ff,
            decoder_ffn_dim=d_ff,
            activation_function="relu",
            dropout=dropout,
            scale_embedding=True,
            pad_token_id=pad,
            decoder_start_token_id=pad,
            use_cache=False,  # of no use in training, and not free
        )
    )


def optimizer_of(model: nn.Module, lr: float) -> torch.optim.Adam:
    """Adam as torch makes it, with the paper's betas and epsilon."""
    return torch.optim.Adam(model.parameters(), lr=lr, betas=(0.9, 0.98), eps=1e-9)


def train_step(
    model: MarianMTModel,
    optimizer: torch.optim.Optimizer,
    src_ids: Tensor,
    attention_mask: Tensor,
    tgt_ids: Tensor,
    labels: Tensor,
    *,
    pad: int,
    smoothing: float,
    clip: float,
) -> Tensor:
    """One update from one padded batch; the loss per target token."""
    logits = model(
        input_ids=src_ids, attention_mask=attention_mask, decoder_input_ids=tgt_ids
    ).logits
    loss = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=pad, label_smoothing=smoothing
    )
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()
