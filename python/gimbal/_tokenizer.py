"""Text to token ids and back."""

import json

from . import _gimbal


class Tokenizer:
    """The tokenizer of a model's file."""

    __slots__ = ("_model", "size", "bos", "eos")

    def __init__(self, model):
        self._model = model
        self.size, bos, eos = _gimbal.tokenizer_info(model)
        self.bos, self.eos = (None if t < 0 else t for t in (bos, eos))

    def encode(self, text, *, add_bos=True, parse_special=True):
        """The ids of a text.

        add_bos: begin with the begin-of-text token, if the model has one. parse_special: control tokens that are written out in the text, such as
        "<|eot|>", become these tokens; False for the words of users.
        """
        return _gimbal.encode(self._model, text, json.dumps({"add_bos": bool(add_bos), "parse_special": bool(parse_special)}))

    def decode(self, tokens, *, special=False):
        """The text of ids. special: write control tokens out. Ids outside the vocabulary give nothing."""
        return _gimbal.decode(self._model, tokens, special)

    def offsets(self, text, *, add_bos=True, parse_special=True):
        """[(id, begin, end), ...]: the characters text[begin:end] that each token stands for.

        They are empty for tokens that were added. A token that is a part of a character's bytes has the whole character. Raises FileError for a
        tokenizer that changes the text (lower case, accents): its tokens do not spell it.
        """
        tokens = self.encode(text, add_bos=add_bos, parse_special=parse_special)
        data = text.encode()
        parts = _gimbal.token_parts(self._model, text, tokens)
        if text.isascii():
            return [(t, begin, end) for t, (begin, end) in zip(tokens, parts)]
        begins, ends, at = [0] * (len(data) + 1), [0] * (len(data) + 1), 0
        for i, character in enumerate(text):
            width = len(character.encode())
            for k in range(width):
                begins[at + k] = i
                ends[at + k] = i if k == 0 else i + 1
            at += width
        begins[at] = ends[at] = len(text)
        return [(t, begins[begin], ends[end]) for t, (begin, end) in zip(tokens, parts)]

    def is_stop(self, token):
        """Whether this token ends a text."""
        return _gimbal.is_stop(self._model, token)

    def __len__(self):
        return self.size

    def __repr__(self):
        return f"<gimbal.Tokenizer of {self.size} tokens>"
