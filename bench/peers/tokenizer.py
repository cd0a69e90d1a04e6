"""A small tokenizer that every peer can load from a folder, so that nothing is downloaded."""

from __future__ import annotations

import json
from pathlib import Path

WORDS = 30_000
_END, _OTHER = "</s>", "word"


def write_tokenizer(folder: Path, words: int = WORDS) -> Path:
    """One word, one token: words split at white space, w2, w3, ... have their numbers, all others are token 1.

    The files are those of Hugging Face's ``tokenizers`` (tokenizer.json, model WordLevel) and ``transformers``.
    No token but the end is special, or a decoder would leave it out. Returns the folder.
    """
    names = [_END, _OTHER, *(f"w{number}" for number in range(2, words))]
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    vocabulary = {name: number for number, name in enumerate(names)}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": 0, "content": _END, "special": True, **flags}],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": _OTHER},
    }
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": _END,
        "pad_token": _END,
        "model_max_length": 131_072,
        "clean_up_tokenization_spaces": False,
        "chat_template": "{% for message in messages %}{{ message['content'] }} {% endfor %}",
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder
