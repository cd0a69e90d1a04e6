from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput.engines.simulated.tokens import (
    BOS,
    DEFAULT_VOCAB_SIZE,
    FIRST_RESERVED,
    MIN_VOCAB_SIZE,
    ToyTokenizer,
    block_hash,
    mix,
)

tokenizer_of = cache(ToyTokenizer)
PROSE = st.text(alphabet="abcxyz  \n.,AÄ€0", max_size=60)


@pytest.mark.parametrize("vocab_size", [MIN_VOCAB_SIZE, 300, 1000, 2000, 20000, DEFAULT_VOCAB_SIZE])
@settings(deadline=None)
@given(text=st.one_of(PROSE, st.text(alphabet=st.characters(codec="utf-8"), max_size=40)))
def test_decoding_what_was_encoded_gives_the_text(vocab_size: int, text: str) -> None:
    tokenizer = tokenizer_of(vocab_size)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert all(0 <= token < vocab_size for token in ids)


def test_every_id_of_a_piece_spells_itself_alone() -> None:
    tokenizer = ToyTokenizer()
    for token in range(MIN_VOCAB_SIZE, FIRST_RESERVED):
        assert tokenizer.encode(tokenizer.decode([token])) == [token]


def test_a_word_keeps_its_ids_and_different_words_have_different_ones() -> None:
    tokenizer = ToyTokenizer()
    words = ["apple", "river", "stone", "cloud", "apples"]
    ids = [tuple(tokenizer.encode(f" {word}")) for word in words]
    assert len(set(ids)) == len(words)
    assert ids == [tuple(ToyTokenizer().encode(f" {word}")) for word in words]


def test_special_tokens_are_added_on_request() -> None:
    tokenizer = ToyTokenizer()
    plain = tokenizer.encode("hello world")
    assert tokenizer.encode("hello world", add_special_tokens=True) == [BOS, *plain]


def test_the_chat_template_costs_the_same_for_every_content() -> None:
    tokenizer = ToyTokenizer()
    overheads = {
        len(tokenizer.encode_chat([("user", text)])) - len(tokenizer.encode(text))
        for text in ("", "hello", "hello world", "A. B?")
    }
    assert len(overheads) == 1
    with_prompt = tokenizer.encode_chat([("user", "x")])
    without = tokenizer.encode_chat([("user", "x")], generation_prompt=False)
    assert with_prompt[: len(without)] == without
    assert len(with_prompt) > len(without)


def test_two_or_three_per_cent_of_generated_tokens_have_no_text() -> None:
    tokenizer = ToyTokenizer()
    texts = [tokenizer.decode([tokenizer.generated(mix(seed), i)]) for seed in range(100) for i in range(100)]
    assert 0.02 < texts.count("") / len(texts) < 0.03
    assert len(set(texts)) > 1000


def test_generated_ids_are_in_the_vocabulary() -> None:
    for vocab_size in (MIN_VOCAB_SIZE, 300, DEFAULT_VOCAB_SIZE):
        tokenizer = ToyTokenizer(vocab_size)
        assert all(0 <= tokenizer.generated(5, index) < vocab_size for index in range(500))


def test_too_small_a_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="at least"):
        ToyTokenizer(MIN_VOCAB_SIZE - 1)


def test_a_block_hash_depends_on_what_came_before() -> None:
    assert block_hash(1, (5, 6)) != block_hash(2, (5, 6))
    assert block_hash(1, (5, 6)) != block_hash(1, (6, 5))
