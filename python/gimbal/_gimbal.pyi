# The extension: its functions go by position and are not for users; the package wraps them.
from typing import Any

def __getattr__(name: str) -> Any: ...
