"""What an engine reports while it loads: a bar in a terminal or notebook, and warnings for fallbacks."""

import sys

VERBS = {"verifying": "verifying kernels", "loading": "loading", "measuring": "measuring kernels", "fetching": "fetching", "checking": "checking"}


def _in_notebook():
    shell = sys.modules.get("IPython")
    shell = shell and shell.get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


class Bar:
    """A line that shows the part that is done. It appears after half a second."""

    def __init__(self, stream=None):
        self._stream = stream or sys.stderr
        self._begun = self._shown = None
        self._notebook = _in_notebook()

    def update(self, kind, what, done, total):
        import time

        now = time.monotonic()
        if self._begun is None:
            self._begun = now
        if now - self._begun < 0.5 or (self._shown is not None and now - self._shown < 0.1 and done < total):
            return
        self._shown = now
        text = f"{VERBS[kind]} {what}".rstrip()
        part = done / total if total else 0
        filled = int(part * 30)
        self._write(f"{text} [{'=' * filled}{' ' * (30 - filled)}] {part:4.0%}")
        if total and done >= total:
            self.close()

    def _write(self, line):
        self._stream.write("\r" + line if self._notebook else "\r\x1b[K" + line)
        self._stream.flush()

    def close(self):
        if self._shown is not None:
            self._write("" if not self._notebook else " " * 60 + "\r")
        self._begun = self._shown = None


class Watch:
    """The function that an engine calls. `progress`: True, False, None (a bar where people look), or a function of a dict."""

    def __init__(self, progress):
        self._call = progress if callable(progress) else None
        shown = sys.stderr is not None and (sys.stderr.isatty() or _in_notebook())
        self._bar = Bar() if progress is True or (progress is None and shown) else None
        self.events = []

    def __call__(self, kind, what, instead, text, done, total):
        event = {"kind": kind, "what": what, "instead": instead, "text": text, "done": done, "total": total}
        if kind not in VERBS:
            self.events.append(event)
        if self._call:
            self._call(event)
        elif kind in VERBS:
            if self._bar:
                self._bar.update(kind, what, done, total)
        elif kind in ("fallback", "recovered"):
            used = f"; {instead} is used" if instead else ""
            import warnings

            warnings.warn(f"{what} is not used: {text}{used}", RuntimeWarning, stacklevel=4)

    def close(self):
        if self._bar:
            self._bar.close()
