"""The server of the program, for tests and notebooks: a child process that ends with its with-statement, or with this process."""

import os

from . import _gimbal
from ._program import environment, program_path


class Server:
    """A running `gimbal serve`. `url` is its address: "http://127.0.0.1:40321"."""

    def __init__(self, *arguments, env=None, timeout=120.0):
        import subprocess  # here, for a quick import of the package
        import tempfile
        import time

        self._log = tempfile.TemporaryFile("w+", errors="replace")
        command = [program_path(), "serve", *arguments, "--host", "127.0.0.1", "--port", "0"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, env={**environment(), **(env or {})})
        self.url = None
        try:
            self._wait(time.monotonic() + timeout)
        except BaseException:
            self.close()
            raise

    def _words(self):
        """What it has written; its own position in the file stays."""
        return os.pread(self._log.fileno(), 1 << 16, 0).decode(errors="replace")

    def _wait(self, until):
        import re
        import time

        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise _gimbal.Error(f"the server ended with status {self.process.returncode}: {self._words().strip()}")
            if self.url is None:
                address = re.search(r"http://127\.0\.0\.1:\d+", self._words())
                self.url = address and address[0]
            if self.url and self._ready():
                return
            time.sleep(0.02)
        raise _gimbal.Error("the server did not start in time; give a larger timeout")

    def _ready(self):
        import urllib.request

        try:
            with urllib.request.urlopen(self.url + "/health", timeout=5) as answer:
                return answer.status == 200
        except OSError:  # urllib's errors are some
            return False

    def close(self):
        """Ends the server, which finishes nothing."""
        import subprocess

        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return f"<gimbal.Server {self.url}>"


def serve(model="default", *arguments, timeout=120.0, **options):
    """Starts `gimbal serve MODEL` on a free port of this machine, waits until it answers, and returns a Server.

    arguments: further ones of the command line. options: its options, with _ for -, as in parallel=4, ctx=2048, backend="cpu"; True for a flag.
    Raises Error with the server's words if it does not start.
    """
    given = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        given += [option] if value is True else [] if value in (False, None) else [option, str(value)]
    return Server(os.fspath(model), *arguments, *given, timeout=timeout)
