"""Texts while a model writes them: iterators, for loops with and without `async`."""

import json
import os

from . import _gimbal


class Generation:
    """A text that a model writes. Iterate over it for its pieces as they come; `text` and the other properties wait for its end.

        for piece in model.generate("Once upon a time"): print(piece, end="")
        async for piece in model.generate(...): ...
        model.generate(...).text

    Ctrl-C, an exception in the loop of a with-statement, cancel() and the loss of the last reference end the computation within a step.
    """

    def __init__(self, handle):
        self._handle, self._result, self._pipe = handle, None, None

    def _give(self, piece):
        """The text of a piece for those who iterate; None: nothing."""
        return piece[1]

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            try:
                piece = _gimbal.text_next(self._handle)
            except BaseException:
                self.cancel()
                raise
            if piece is None:
                self._wait()
                raise StopIteration
            text = self._give(piece)
            if text is not None:
                return text

    def __aiter__(self):
        return self

    async def __anext__(self):
        while True:
            piece = await self._next_async()
            if piece is None:
                self._wait()
                raise StopAsyncIteration
            text = self._give(piece)
            if text is not None:
                return text

    async def _next_async(self):
        import asyncio

        if self._pipe is None:
            self._pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        piece = _gimbal.text_poll(self._handle, self._pipe[1])
        if piece is not False:
            return piece
        loop = asyncio.get_running_loop()
        came = loop.create_future()
        loop.add_reader(self._pipe[0], lambda: came.done() or came.set_result(None))
        try:
            await came
            os.read(self._pipe[0], 16)
        except BaseException:
            self.cancel()
            raise
        finally:
            loop.remove_reader(self._pipe[0])
        return _gimbal.text_poll(self._handle, self._pipe[1])

    def __await__(self):
        """Waits for the end and returns this."""
        return self._ended().__await__()

    async def _ended(self):
        async for _ in self:
            pass
        return self

    def cancel(self):
        """Ends the text within a step; `finish` is then "cancelled"."""
        _gimbal.text_cancel(self._handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cancel()

    def __del__(self):
        if getattr(self, "_pipe", None):
            _gimbal.text_forget_pipe(self._handle)
            for fd in self._pipe:
                os.close(fd)

    def _wait(self):
        if self._result is None:
            try:
                self._result = json.loads(_gimbal.text_result(self._handle))
            except KeyboardInterrupt:
                self.cancel()
                raise
        return self._result

    def result(self):
        """A dict of all properties, after the end. Raises the error of the text, if one ended it."""
        return dict(self._wait())

    def __str__(self):
        return self.text

    def __repr__(self):
        state = f"{self._result['finish']}, {len(self._result['tokens'])} tokens" if self._result else "running"
        return f"<gimbal.{type(self).__name__}: {state}>"


def _property(name, doc, of=Generation):
    setattr(of, name, property(lambda self: self._wait()[name], doc=doc))


for _name, _doc in {
    "text": "The whole text.",
    "tokens": "The ids of its tokens, without the one that stopped it.",
    "logprobs": "With logprobs >= 0: the natural logarithm of each token's probability, at temperature 1 of all logits.",
    "top": 'With logprobs = n: for each token the n most likely ones in its place, [{"token", "logprob"}, ...], best first.',
    "prompt_logprobs": "With prompt_logprobs: those of the prompt's tokens but its first.",
    "prompt_top": "With prompt_logprobs: the most likely tokens in the place of each token of the prompt but its first.",
    "finish": '"stop_token", "stop_string", "length", "context_full" or "cancelled".',
    "prompt_tokens": "The number of the prompt's tokens.",
    "stored_tokens": "Those of them that were read from the prefix store, and not computed.",
    "prompt_seconds": "Until the first token, in seconds, with the wait for other texts.",
    "generate_seconds": "From the first token to the end, in seconds.",
    "drafted": "The number of drafted tokens.",
    "accepted": "The number of drafted tokens that became part of the text.",
}.items():
    _property(_name, _doc)


class Reply(Generation):
    """An answer to messages. Iterating gives the pieces of its content; events() all pieces with their kinds."""

    def __init__(self, handle, parse):
        super().__init__(handle)
        self._parse = parse

    def _give(self, piece):
        return piece[1] if piece[0] == "content" else None

    def events(self):
        """("content" | "reasoning" | "tool_call", text) as they come; a call's text is JSON."""
        while (piece := _gimbal.text_next(self._handle)) is not None:
            yield piece
        self._wait()

    @property
    def message(self):
        """The answer as a message: append it to the messages of the next turn."""
        return self._wait()["message"]

    @property
    def reasoning(self):
        """The thoughts before the answer; empty: none."""
        return self.message.get("reasoning", "")

    @property
    def tool_calls(self):
        """[{"name": str, "arguments": dict}, ...]"""
        return [{**call, "arguments": json.loads(call["arguments"])} for call in self.message.get("tool_calls", ())]

    @property
    def parsed(self):
        """With `schema`: the value, an object of the class if the schema is one of pydantic. Raises ValueError for a text that was cut off."""
        return (self._parse or json.loads)(self.text)
