"""Bodies of vLLM 0.32's OpenAI API as they are read.

Sources: vLLM 0.32.0, entrypoints/openai/*/protocol.py.
"""

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from goodput.engines.errors import RequestError

_MAX_REPORTED = 10


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class StreamOptions(_Body):
    """What a stream carries besides text."""

    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class GenerationBody(_Body):
    """What completions and chats share. Fields that are not read here are kept."""

    model_config = ConfigDict(extra="allow", frozen=True)

    model: str | None = None
    max_tokens: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = 1
    return_token_ids: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None


class CompletionBody(GenerationBody):
    """POST /v1/completions."""

    prompt: str | list[int] | list[list[int]] | list[str] | None = None
    max_tokens: int | None = 16
    add_special_tokens: bool = True


class _TextPart(_Body):
    type: Literal["text"] = "text"
    text: str


class Message(_Body):
    """One chat message; parts other than text are refused."""

    role: str
    content: str | list[_TextPart] | None = None

    @property
    def text(self) -> str:
        """The content as one string."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class ChatBody(GenerationBody):
    """POST /v1/chat/completions."""

    messages: Annotated[list[Message], Field(min_length=1)]
    max_completion_tokens: int | None = None
    add_generation_prompt: bool = True


class TokenizeBody(_Body):
    """POST /tokenize: a prompt or messages."""

    model: str | None = None
    prompt: str | None = None
    messages: list[Message] | None = None
    add_special_tokens: bool | None = None
    add_generation_prompt: bool = True
    return_token_strs: bool | None = False


class DetokenizeBody(_Body):
    """POST /detokenize."""

    model: str | None = None
    tokens: list[Annotated[int, Field(ge=0, le=2**63 - 1)]]


_BodyT = TypeVar("_BodyT", bound=_Body)


def parse(kind: type[_BodyT], content: bytes) -> _BodyT:
    """Reads a JSON body.

    Raises:
        RequestError: 400, with every fault in the message, as vLLM reports them.
    """
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        lines = [f"  {fault}" for fault in faults[:_MAX_REPORTED]]
        label = "error" if len(faults) == 1 else "errors"
        message = "\n".join([f"{len(faults)} validation {label}:", *lines])
        param = ".".join(["body", *(str(part) for part in faults[0]["loc"])])
        raise RequestError(message, kind="Bad Request", param=param) from error
