from . import DType as DType, dtype as dtype

PLAIN: tuple[str, ...]
QUANTIZED: tuple[str, ...]
BY_NAME: dict[str, DType]
BY_NUMBER: dict[int, DType]
ALIASES: dict[str, str]
OF_FORMAT: dict[str, str]
