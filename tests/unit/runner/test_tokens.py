from __future__ import annotations

import numpy as np
import pytest

from goodput.runner.errors import TokensError
from goodput.runner.tokens import ChatFitter, Vocabulary, single_token_words, words

TEMPLATE = 7


def toy(text: str) -> list[int]:
    """One token for words of up to four letters, else one per letter."""
    ids: list[int] = []
    for word in text.split():
        ids += [hash(word) % 10**9] if len(word) <= 4 else [ord(letter) for letter in word]
    return ids


def chat_ids(text: str) -> list[int]:
    """A template of five tokens before and two behind."""
    return [*range(5), *toy(text), 5, 6]


def count(text: str) -> int:
    return len(chat_ids(text))


def test_the_list_is_plain_words_without_repeats() -> None:
    assert len(words()) > 1000
    assert len(set(words())) == len(words())
    assert all(word.isascii() and word.isalpha() and word.islower() for word in words())


def test_single_token_words_are_found_in_few_calls() -> None:
    calls = 0

    def tokenize(text: str) -> list[int]:
        nonlocal calls
        calls += 1
        return toy(text)

    found = single_token_words(tokenize)
    assert set(found.values()) == {word for word in words() if len(word) <= 4}
    assert calls < 2 * len(words())


def test_without_tokenize_there_is_no_chat() -> None:
    with pytest.raises(TokensError):
        single_token_words(lambda _: None)


@pytest.mark.parametrize("n", [TEMPLATE + 1, 20, 500])
def test_text_has_exactly_the_asked_length(n: int) -> None:
    spelled = single_token_words(toy)
    source = Vocabulary(sorted(spelled), ChatFitter(spelled, chat_ids)).prompts(seed=3)
    (message,) = source.messages(n, 0)  # type: ignore[attr-defined]  # a TextSource, as a fitter was given
    assert count(message["content"]) == n


def test_what_the_template_puts_first_is_known() -> None:
    """A server finds it in its prefix cache for every prompt but the first."""
    assert ChatFitter(single_token_words(toy), chat_ids).head_tokens == TEMPLATE - 2


def test_a_tokenizer_that_merges_is_corrected() -> None:
    spelled = {1: "a", 2: "b", 3: "c"}

    def merging(text: str) -> int:
        return TEMPLATE + len(text.split()) - text.count("a b")

    fitter = ChatFitter(spelled, lambda text: range(merging(text)))
    drawn = np.array([1, 2, 3, 3, 1, 2, 3, 3, 3, 3, 3, 3])
    assert merging(fitter(drawn, TEMPLATE + 6)) == TEMPLATE + 6


def test_a_template_longer_than_the_prompt_is_refused() -> None:
    spelled = single_token_words(toy)
    with pytest.raises(TokensError, match="template has 7"):
        ChatFitter(spelled, chat_ids)(np.array(sorted(spelled)[:7]), 7)
