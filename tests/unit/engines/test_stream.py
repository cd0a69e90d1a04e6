import asyncio
import json

from goodput.engines.api.sse import EventWriter, Head
from goodput.engines.api.stream import StreamSink
from goodput.engines.simulated.request import SimRequest
from goodput.engines.simulated.texts import TokenTexts
from goodput.engines.simulated.tokens import ToyTokenizer

TOKENIZER = ToyTokenizer()


class Transport(asyncio.WriteTransport):
    """Takes bytes; `backlog` is what the client has not read."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.backlog = 0
        self.gone = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        return self.backlog

    def is_closing(self) -> bool:
        return self.gone

    def chunks(self) -> list[bytes]:
        """The HTTP chunks written so far, checked for their framing."""
        rest, found = self.written, []
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            found.append(rest[: int(size, 16)])
            assert rest[int(size, 16) :][:2] == b"\r\n"
            rest = rest[int(size, 16) + 2 :]
        return found


def sink(transport: Transport, *, chat: bool = False) -> StreamSink:
    head = Head(identifier="cmpl-1", created=1, model="m", fingerprint="f")
    writer = EventWriter(chat=chat, head=head, prompt_tokens=2, include_usage=True, continuous_usage=True)
    return StreamSink(transport, writer, TokenTexts(TOKENIZER))


def generate(target: StreamSink, request: SimRequest, tokens: list[int]) -> None:
    for token in tokens:
        request.output_token_ids.append(token)
        request.num_output_tokens += 1
        if request.num_output_tokens == request.target_output_tokens:
            request.finish_reason = "length"
        target.token(request)


def request(output: int) -> SimRequest:
    return SimRequest(uid=0, num_prompt_tokens=2, target_output_tokens=output, prompt_token_ids=[1, 2])


def test_one_chunk_per_token() -> None:
    async def story() -> None:
        transport = Transport()
        target = sink(transport)
        generate(target, request(3), [300, 301, 302])
        assert target.done.result() is True
        texts = [json.loads(chunk.removeprefix(b"data: "))["choices"][0]["text"] for chunk in transport.chunks()]
        assert texts == [TOKENIZER.decode([token]) for token in (300, 301, 302)]

    asyncio.run(story())


def test_a_chat_sends_its_role_chunk_with_the_first_token() -> None:
    async def story() -> None:
        transport = Transport()
        generate(sink(transport, chat=True), request(5), [300])
        role, content = transport.chunks()
        assert b'"role":"assistant"' in role
        assert b'"content":"' in content

    asyncio.run(story())


def test_tokens_are_merged_while_the_client_does_not_read() -> None:
    async def story() -> None:
        transport, one = Transport(), request(6)
        target = sink(transport)
        generate(target, one, [300])
        transport.backlog = 1 << 20
        generate(target, one, [301, 302])
        assert len(transport.chunks()) == 1
        transport.backlog = 0
        generate(target, one, [303])
        merged = json.loads(transport.chunks()[1].removeprefix(b"data: "))
        assert merged["choices"][0]["text"] == TOKENIZER.decode([301, 302, 303])
        assert merged["usage"]["completion_tokens"] == 4

    asyncio.run(story())


def test_the_last_token_is_sent_even_to_a_slow_client() -> None:
    async def story() -> None:
        transport = Transport()
        transport.backlog = 1 << 20
        target = sink(transport)
        generate(target, request(3), [300, 301, 302])
        (chunk,) = transport.chunks()
        assert json.loads(chunk.removeprefix(b"data: "))["usage"]["completion_tokens"] == 3
        assert target.done.result() is True

    asyncio.run(story())


def test_nothing_is_written_to_a_client_that_has_gone() -> None:
    async def story() -> None:
        transport = Transport()
        transport.gone = True
        target = sink(transport)
        generate(target, request(3), [300])
        assert transport.written == b""
        assert target.done.result() is False

    asyncio.run(story())
