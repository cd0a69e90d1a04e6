"""A toy tokenizer and the tokens that the simulated model "generates". Both are deterministic.

Text is cut as follows: a run of lower-case ASCII letters, with the one space before it, into pieces of up
to three letters (the space belongs to the first piece); everything else into UTF-8 bytes. Every piece
is a number by arithmetic, without a table, so that decoding what was encoded gives the same text.
"""

import re
from collections.abc import Sequence

BOS = 1
EOS = 2
TURN_START = 3
TURN_END = 4
_FIRST_BYTE = 8
_FIRST_PIECE = _FIRST_BYTE + 256
#: (leading space, letters) of each group of pieces, in order of their ids.
_GROUPS = ((True, 1), (False, 2), (True, 2), (False, 3), (True, 3))
_PIECE_START: dict[tuple[bool, int], int] = {}
_next = _FIRST_PIECE
for _group in _GROUPS:
    _PIECE_START[_group] = _next
    _next += 26 ** _group[1]
#: Ids from here on are reserved: they have no text, like special tokens.
FIRST_RESERVED = _next
#: The smallest vocabulary that can spell any text.
MIN_VOCAB_SIZE = _FIRST_PIECE
DEFAULT_VOCAB_SIZE = 49152

#: Different ids that are generated, few enough for their texts to stay in a cache.
_MOST_GENERATED = 4096
_TABLE_SIZE = 1 << 13

_RUN = re.compile(r" ?[a-z]+")
_A = ord("a")
_MASK = (1 << 64) - 1


def block_hash(parent: int, tokens: tuple[int, ...]) -> int:
    """Hash of a block's tokens and of all before it. Equal on every run (integers only)."""
    return hash((parent, tokens))


def mix(value: int) -> int:
    """A well-mixed 64-bit number from any integer (SplitMix64, public domain, Vigna 2015)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


class ToyTokenizer:
    """Text to ids and back for a vocabulary of `vocab_size` ids (at least `MIN_VOCAB_SIZE`)."""

    def __init__(self, vocab_size: int = DEFAULT_VOCAB_SIZE) -> None:
        if vocab_size < MIN_VOCAB_SIZE:
            raise ValueError(f"vocab_size ({vocab_size}) must be at least {MIN_VOCAB_SIZE}")
        self.vocab_size = vocab_size
        whole = [group for group in _GROUPS if _PIECE_START[group] + 26 ** group[1] <= vocab_size]
        self._longest = {
            space: max((size for group_space, size in whole if group_space == space), default=0)
            for space in (False, True)
        }
        pieces: int = sum(26**size for _, size in whole)
        most = min(pieces, _MOST_GENERATED)
        self._generated = [self._generated_id(mix(index), most) for index in range(_TABLE_SIZE)]

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Ids of a text, with the begin-of-text id first where special tokens are asked for."""
        ids = [BOS] if add_special_tokens else []
        position = 0
        for run in _RUN.finditer(text):
            self._encode_bytes(text[position : run.start()], ids)
            self._encode_run(run.group(), ids)
            position = run.end()
        self._encode_bytes(text[position:], ids)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids. Ids without text of their own (special, reserved) add nothing."""
        parts = [self._piece_bytes(token) for token in ids]
        return b"".join(parts).decode("utf-8", errors="replace")

    def encode_chat(self, messages: Sequence[tuple[str, str]], *, generation_prompt: bool = True) -> list[int]:
        """Ids of (role, content) messages in a ChatML-like template."""
        ids: list[int] = []
        for role, content in messages:
            ids.append(TURN_START)
            ids += self.encode(f"{role}\n")
            ids += self.encode(content)
            ids.append(TURN_END)
            ids += self.encode("\n")
        if generation_prompt:
            ids.append(TURN_START)
            ids += self.encode("assistant\n")
        return ids

    def generated(self, seed: int, index: int) -> int:
        """The id that a request with this seed generates at this position.

        Requests walk through one table of ids from different places and in different strides.
        """
        return self._generated[(seed + index * (seed >> 32 | 1)) % _TABLE_SIZE]

    @staticmethod
    def _generated_id(value: int, num_pieces: int) -> int:
        """An id of the table, one in 40 without text.

        A real server sends 2-3 % of its tokens with empty text (special tokens, parts of a character).
        """
        if value % 40 == 0 or num_pieces == 0:
            return _FIRST_BYTE - 1
        return _FIRST_PIECE + (value >> 8) % num_pieces

    @staticmethod
    def _encode_bytes(text: str, ids: list[int]) -> None:
        ids.extend(_FIRST_BYTE + byte for byte in text.encode("utf-8", errors="surrogatepass"))

    def _encode_run(self, run: str, ids: list[int]) -> None:
        space, letters = run[0] == " ", run.lstrip(" ")
        if space and not self._longest[True]:
            ids.append(_FIRST_BYTE + ord(" "))
            space = False
        position = 0
        while position < len(letters):
            piece = letters[position : position + max(1, self._longest[space])]
            ids.append(self._piece_id(piece, space=space))
            position += len(piece)
            space = False

    @staticmethod
    def _piece_id(piece: str, *, space: bool) -> int:
        if len(piece) == 1 and not space:
            return _FIRST_BYTE + ord(piece)
        number = 0
        for letter in piece:
            number = number * 26 + ord(letter) - _A
        return _PIECE_START[space, len(piece)] + number

    @staticmethod
    def _piece_bytes(token: int) -> bytes:
        if token < _FIRST_BYTE or token >= FIRST_RESERVED:
            return b""
        if token < _FIRST_PIECE:
            return bytes((token - _FIRST_BYTE,))
        for space, size in reversed(_GROUPS):
            number = token - _PIECE_START[space, size]
            if number >= 0:
                break
        letters = bytearray()
        for _ in range(size):
            number, letter = divmod(number, 26)
            letters.append(_A + letter)
        letters.reverse()
        return (b" " if space else b"") + bytes(letters)
