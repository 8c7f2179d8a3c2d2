"""Strings to ids and back: normalise, split, tokenise. Nothing here imports torch.

Import the modules one by one (`regard.text.tokenizer`, `regard.text.sentences`): SentencePiece and
OpenCC come only with what needs them.
"""
