"""Small Marians of transformers, taught to reverse, so that what they say depends and ends."""

import io
import json
import random

import torch
from sentencepiece import SentencePieceTrainer
from torch.nn.utils.rnn import pad_sequence
from transformers import MarianConfig, MarianMTModel

SOURCE, TARGET = "abcdefgh", "stuvwxyz"
CHOICES = {
    "shared-swish": {"activation_function": "swish"},
    "shared-relu-unequal": {
        "activation_function": "relu",
        "encoder_layers": 2,
        "decoder_attention_heads": 2,
        "decoder_ffn_dim": 48,
    },
    "separate-swish-unequal": {
        "activation_function": "swish",
        "share_encoder_decoder_embeddings": False,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 48,
        "scale_embedding": False,
    },
    "untied-relu": {
        "activation_function": "relu",
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
    },
}
SIZES = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 40,
    "scale_embedding": True,
    "dropout": 0.0,
    "init_std": 0.15,  # a small matrix of small numbers learns nothing in so little time
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
}


def sentences(n, seed):
    """Sources and their translations: the words from behind, in the other alphabet."""
    draw = random.Random(seed)
    words = [[draw.choice(SOURCE) for _ in range(draw.randint(1, 6))] for _ in range(n)]
    there = dict(zip(SOURCE, TARGET, strict=True))
    return [(" ".join(row), " ".join(there[word] for word in reversed(row))) for row in words]


def spm(texts, **options):
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def write_tokenizer(place, *, separate, codes=()):
    """The files of a tokenizer; returns how many words either side has."""
    from sentencepiece import SentencePieceProcessor

    pairs = sentences(400, 1)
    vocabs = []
    for side, name in enumerate(("source", "target")):
        model = spm([pair[side] for pair in pairs])
        (place / f"{name}.spm").write_bytes(model)
        processor = SentencePieceProcessor(model_proto=model)
        vocabs.append([processor.id_to_piece(id) for id in range(len(processor))])
    special = ["</s>", "<unk>", "<s>", "<pad>"]
    own = [[piece for piece in pieces if piece not in special] for pieces in vocabs]
    if not separate:
        own = [list(dict.fromkeys([*codes, *own[0], *own[1]]))] * 2
    # One id of padding for both: the last of the smaller vocabulary is the last of neither.
    n = max(map(len, own))
    sizes = []
    for name, pieces in zip(("vocab", "target_vocab"), own, strict=True):
        filled = [*pieces, *(f"<fill{i}>" for i in range(n - len(pieces)))]
        ids = {piece: id for id, piece in enumerate(["</s>", "<unk>", *filled, "<pad>"])}
        if name == "vocab" or separate:
            (place / f"{name}.json").write_text(json.dumps(ids))
        sizes.append(len(ids))
    settings = {"separate_vocabs": separate, "source_lang": "en", "target_lang": "de"}
    (place / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "MarianTokenizer", **settings})
    )
    return sizes


def trained_marian(place, choice, *, steps=300, seed=0):
    """A directory with a Marian that has learned to reverse, nearly always, and its tokenizer."""
    from transformers import MarianTokenizer

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    place.mkdir(parents=True)
    settings = {**SIZES, **CHOICES[choice]}
    separate = not settings.get("share_encoder_decoder_embeddings", True)
    codes = [] if separate else [">>de<<", ">>cmn_Hans<<"]
    n_src, n_tgt = write_tokenizer(place, separate=separate, codes=codes)
    config = MarianConfig(
        **settings,
        vocab_size=n_src,
        decoder_vocab_size=n_tgt,
        pad_token_id=n_src - 1,
        decoder_start_token_id=n_src - 1,
    )
    model = MarianMTModel(config)
    tokenizer = MarianTokenizer.from_pretrained(place)
    train(model, tokenizer, steps)
    model.final_logits_bias.normal_(std=0.1)
    model.generation_config.update(
        max_length=30, num_beams=4, length_penalty=1.0, bad_words_ids=[[config.pad_token_id]]
    )
    model.eval().save_pretrained(place)
    return place


def train(model, tokenizer, steps):
    pairs = sentences(64 * 40, 2)
    sources = [tokenizer(src)["input_ids"] for src, _ in pairs]
    targets = [tokenizer(text_target=tgt)["input_ids"] for _, tgt in pairs]
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=steps)
    model.train()
    for step in range(steps):
        first = 64 * (step % 40)
        pad = model.config.pad_token_id
        src, tgt = (
            pad_sequence([torch.tensor(row) for row in rows[first : first + 64]], True, fill)
            for rows, fill in ((sources, pad), (targets, -100))
        )
        loss = model(input_ids=src, attention_mask=(src != pad).long(), labels=tgt).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return float(loss.detach())
