"""gimbal as an application of Ray Serve: each replica starts `gimbal serve` on a port of its own and passes requests on to it, so that the
paths, streams and errors are gimbal's. For those who run Ray already; without it, deploy/haproxy does the same with less.

    serve run gimbal_app:app model=/models/model.gguf replicas=2
    serve run gimbal_app:app                                          the built-in model, one replica

Arguments: model, replicas (1), program (gimbal), options (more of `gimbal serve`, split at blanks), cpus (of a replica, 1), gpus (0),
drain_seconds (60).
"""
import ctypes
import json
import os
import shlex
import signal
import subprocess

import aiohttp
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

# Of one connection, not of the message: RFC 9110, 7.6.1.
OF_A_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-authorization", "proxy-authenticate", "host",
                   "content-length"}


def no_answer(path):
    """What is said in place of a server that died, in the form of the API that was asked."""
    text = "the server that computed this is gone; try again"
    if path == "/v1/messages" or path.startswith("/v1/messages/"):
        body = {"type": "error", "error": {"type": "overloaded_error", "message": text}, "request_id": None}
    elif path.startswith("/api/"):
        body = {"error": text}
    else:
        body = {"error": {"message": text, "type": "server_error", "param": None, "code": None}}
    return JSONResponse(body, 503, {"Retry-After": "1"})


def ends_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


@serve.deployment(health_check_period_s=2, health_check_timeout_s=10)
class Gimbal:
    def __init__(self, program, model, options, drain_seconds):
        command = [program, "serve", *([model] if model else []), "--host", "127.0.0.1", "--port", "0", "--json",
                   "--drain-timeout", str(drain_seconds), *shlex.split(options)]
        self.drain_seconds = drain_seconds
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=ends_with_parent, text=True)
        line = self.server.stdout.readline()  # printed once the model is loaded
        if not line:
            raise RuntimeError(f"{shlex.join(command)} ended with {self.server.wait()} (its reason is in the log)")
        self.url = json.loads(line)["url"]
        self.session = None

    def check_health(self):
        """Ray replaces a replica that raises here."""
        if self.server.poll() is not None:
            raise RuntimeError(f"gimbal serve ended with {self.server.returncode}")

    async def __call__(self, request: Request) -> Response:
        if self.session is None:  # of this event loop
            self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, connect=5), auto_decompress=False)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in OF_A_CONNECTION}
        url = self.url + request.url.path + ("?" + request.url.query if request.url.query else "")
        try:
            answer = await self.session.request(request.method, url, headers=headers, data=await request.body() or None)
        except aiohttp.ClientError:
            return no_answer(request.url.path)
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in OF_A_CONNECTION}
        if "Content-Length" in answer.headers:  # it comes whole
            try:
                return Response(await answer.read(), answer.status, kept)
            except aiohttp.ClientError:
                return no_answer(request.url.path)

        async def pieces():
            try:
                async for piece in answer.content.iter_any():
                    yield piece
            finally:
                answer.close()  # also when the client leaves: then gimbal stops computing for it

        return StreamingResponse(pieces(), answer.status, kept)

    def __del__(self):
        """Ray calls it once, when no request is left."""
        if self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
            self.server.wait(self.drain_seconds + 10)


def app(arguments):
    """The application; Ray calls it with the arguments of `serve run`."""
    drain_seconds = int(arguments.get("drain_seconds", 60))
    return Gimbal.options(
        num_replicas=int(arguments.get("replicas", 1)),
        max_ongoing_requests=1000,  # gimbal has a queue of its own, and says 429 where it is full
        graceful_shutdown_timeout_s=drain_seconds + 10,
        ray_actor_options={"num_cpus": float(arguments.get("cpus", 1)), "num_gpus": float(arguments.get("gpus", 0))},
    ).bind(os.path.abspath(arguments["program"]) if "/" in arguments.get("program", "") else arguments.get("program", "gimbal"),
           arguments.get("model", ""), arguments.get("options", ""), drain_seconds)
