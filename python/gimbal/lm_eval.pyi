from typing import Any

class GimbalLM:
    model: Any
    max_gen_toks: int
    def __init__(
        self,
        model: str = "default",
        *,
        sequences: int = 8,
        logit_rows: int = 64,
        max_gen_toks: int = 256,
        device: str | None = None,
        batch_size: Any = None,
        max_batch_size: Any = None,
        **settings: Any,
    ) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
