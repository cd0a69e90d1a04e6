import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from goodput.engines.simulated.tokens import EOS, ToyTokenizer
from goodput.engines.transformers.texts import OutputTexts

TOKENIZER = ToyTokenizer(2000)


def pieces(texts: OutputTexts, ids: Sequence[int]) -> list[str]:
    return [json.loads(texts.of([token])) for token in ids]


def test_a_character_of_several_tokens_comes_with_the_last_of_them() -> None:
    ids = TOKENIZER.encode("ü€a")
    assert pieces(OutputTexts(TOKENIZER.decode, []), ids) == ["", "ü", "", "", "€", "a"]


def test_what_a_decoder_strips_at_the_start_of_a_text_is_there_after_a_prompt() -> None:
    def stripping(ids: Sequence[int]) -> str:
        return TOKENIZER.decode(ids).removeprefix(" ")

    prompt, output = TOKENIZER.encode("hello"), TOKENIZER.encode(" you")
    assert "".join(pieces(OutputTexts(stripping, prompt), output)) == " you"


def test_several_tokens_at_once_give_the_same_text() -> None:
    ids = TOKENIZER.encode("the cat ☃ sat")
    whole = json.loads(OutputTexts(TOKENIZER.decode, []).of(ids))
    assert whole == "".join(pieces(OutputTexts(TOKENIZER.decode, []), ids)) == "the cat ☃ sat"


def test_bytes_that_never_become_a_character_come_as_its_replacement() -> None:
    lead = TOKENIZER.encode("ü")[0]
    found = pieces(OutputTexts(TOKENIZER.decode, []), [lead] * 40)
    assert set("".join(found)) == {"\N{REPLACEMENT CHARACTER}"}
    assert found[:3] == ["", "", ""]


def test_a_token_costs_the_same_however_long_the_output_without_text_is() -> None:
    lengths = []

    def decode(ids: Sequence[int]) -> str:
        lengths.append(len(ids))
        return TOKENIZER.decode(ids)

    assert set(pieces(OutputTexts(decode, range(300, 340)), [EOS] * 500)) == {""}
    assert max(lengths) < 20


@given(st.text(min_size=1), st.text())
def test_the_pieces_of_a_text_make_the_text(text: str, before: str) -> None:
    text = text.encode("utf-8", errors="ignore").decode() + "."  # an end that is certain
    prompt = TOKENIZER.encode(before.encode("utf-8", errors="ignore").decode())
    assert "".join(pieces(OutputTexts(TOKENIZER.decode, prompt), TOKENIZER.encode(text))) == text
