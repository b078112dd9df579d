"""Models in the evaluation harness lm_eval (0.4.13, from PyPI), in this process.

    python -m gimbal.lm_eval run --model gimbal --model_args model=model.gguf --tasks hellaswag
    lm_eval.simple_evaluate(model=gimbal.lm_eval.GimbalLM("model.gguf"), tasks=[...])

The harness reaches the server as well: docs/python.md.
"""

from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from ._model import Model


@register_model("gimbal")
class GimbalLM(TemplateLM):
    """A gimbal.Model for the harness. sequences: texts that are computed together; logit_rows: positions that are scored in a step; other settings
    are the model's."""

    def __init__(self, model="default", *, sequences=8, logit_rows=64, max_gen_toks=256, device=None, batch_size=None, max_batch_size=None, **settings):
        super().__init__()  # the harness's batch sizes mean nothing here
        device = None if device in (None, "None", "auto") else device
        self.model = Model(model, sequences=int(sequences), logit_rows=int(logit_rows), device=device, **settings)
        self.max_gen_toks = int(max_gen_toks)

    @property
    def eot_token_id(self):
        tokenizer = self.model.tokenizer
        return tokenizer.eos if tokenizer.eos is not None else tokenizer.bos

    @property
    def prefix_token_id(self):
        bos = self.model.tokenizer.bos
        return self.eot_token_id if bos is None else bos

    @property
    def tokenizer_name(self):
        return self.model.name

    @property
    def max_length(self):
        """The longest scored text, in tokens."""
        return self.model.context - 1

    def tok_encode(self, string, add_special_tokens=None, **_):
        return self.model.tokenizer.encode(string, add_bos=add_special_tokens is not False)

    def _scored(self, prompts, context_lengths):
        """(sum of log-probabilities, whether each is the most likely) of the tokens behind each context."""
        results = []
        for text, begin in zip(self.model.generate_many(prompts, max_tokens=0, logprobs=1, prompt_logprobs=True), context_lengths):
            tokens = zip(prompts[len(results)][begin:], text.prompt_top[begin - 1:])
            results.append((sum(text.prompt_logprobs[begin - 1:]), all(top[0]["token"] == token for token, top in tokens)))
        return results

    def _loglikelihood_tokens(self, requests, disable_tqdm=False, **_):
        prompts, begins = [], []
        for _, context, continuation in requests:
            tokens = (list(context) + list(continuation))[-self.max_length:]
            prompts.append(tokens)
            begins.append(max(1, len(tokens) - len(continuation)))
        results = self._scored(prompts, begins)
        for (pair, _, _), result in zip(requests, results):
            if pair is not None:
                self.cache_hook.add_partial("loglikelihood", pair, result)
        return results

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        sums = []
        for (string,) in (request.args for request in requests):
            windows = map(make_disjoint_window, get_rolling_token_windows(
                token_list=self.tok_encode(string, add_special_tokens=False), prefix_token=self.prefix_token_id, max_seq_len=self.max_length - 1,
                context_len=1))
            scored = self._loglikelihood_tokens([(None, context, continuation) for context, continuation in windows])
            sums.append(sum(value for value, _ in scored))
            self.cache_hook.add_partial("loglikelihood_rolling", (string,), sums[-1])
        return sums

    def generate_until(self, requests, disable_tqdm=False):
        texts = []
        for context, options in (request.args for request in requests):
            until = options.get("until") or []
            most = int(options.get("max_gen_toks") or options.get("max_new_tokens") or self.max_gen_toks)
            sampled = options.get("do_sample", False) and options.get("temperature", 1)
            settings = {"temperature": options.get("temperature", 1), "top_p": options.get("top_p", 1.0)} if sampled else {"greedy": True}
            prompt = self.tok_encode(context)[-(self.model.context - most):]
            texts.append(self.model.generate(prompt, max_tokens=most, stop=[s for s in ([until] if isinstance(until, str) else until) if s], **settings))
            if len(texts) % 64 == 0:  # no more than the model lets wait
                texts[-64].text
        answers = [text.text for text in texts]
        for request, answer in zip(requests, answers):
            self.cache_hook.add_partial("generate_until", request.args, answer)
        return answers

    def apply_chat_template(self, chat_history, add_generation_prompt=True):
        if not add_generation_prompt:
            raise ValueError("the chat template of a gimbal.Model is for prompts that the model answers")
        return self.model.chat_prompt(chat_history)[0]


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate

    from gimbal import lm_eval as _registered  # noqa: F401  under its own name, not as __main__

    cli_evaluate()
