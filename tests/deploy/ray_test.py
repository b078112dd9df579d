#!/usr/bin/env python3
"""deploy/ray with the real Ray: a chat as a stream and the other APIs through Ray's proxy, then a replica's server is killed, and the
replica after it, and each is replaced.

Usage: ray_test.py GIMBAL          exit code 77: Ray is not installed (scripts/setup.sh ray)
"""
import os
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../deploy/ray"), os.path.join(HERE, "../../scripts")]
from send_signal import send_signal  # noqa: E402

RIG = os.path.normpath(os.path.join(HERE, "../../build/ray-rig/bin/python"))
PORT = 8123
TOKENS = 250


def expect(true, why):
    if not true:
        raise SystemExit(f"FAILED: {why}")


def processes(word):
    """Ids of running processes whose command line has this word; of servers and replicas of this test alone."""
    out = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                command = file.read().replace(b"\0", b" ").decode(errors="replace")
            if name.isdigit() and word in command:
                out.append(int(name))
        except OSError:
            pass
    return sorted(out)


def parent(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def main(arguments):
    if len(arguments) != 1:
        raise SystemExit(__doc__)
    if not os.path.exists(RIG):
        print("skipped: Ray is not installed: scripts/setup.sh ray")
        return 77
    if sys.prefix != os.path.dirname(os.path.dirname(RIG)):  # with the Python that has it
        os.execv(RIG, [RIG, os.path.abspath(__file__), *arguments])
    with tempfile.TemporaryDirectory(prefix="gimbal-ray-") as home:
        os.environ.update(HOME=home, XDG_CACHE_HOME="")  # of Ray, which keeps a token there, and of gimbal
        os.environ.update({f"RAY_SERVE_PROXY_{what}_CHECK_TIMEOUT_S": "120" for what in ("READY", "HEALTH")})  # the machine may be busy
        test(os.path.abspath(arguments[0]))
    print("passed")
    return 0


def test(program):
    import ray
    from ray import serve
    from ray.serve._private import api
    import gimbal_app
    from load import ask, kinds
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False,
             runtime_env={"env_vars": {"PYTHONPATH": os.path.dirname(os.path.abspath(gimbal_app.__file__))}})
    api.HTTP_PROXY_TIMEOUT = 300  # no setting of Ray; 60 s are too few on a busy machine
    serve.start(http_options={"host": "127.0.0.1", "port": PORT})

    def servers():
        return [pid for pid in processes(f"{program} serve ") if pid != os.getpid()]

    def answers(seconds, expected=None):
        """Asks each API until it answers; the texts by kind. `expected`: what they must be."""
        texts = {}
        for kind in all_kinds:
            end = time.monotonic() + seconds
            while (o := ask("127.0.0.1", PORT, kind)).what != "whole":
                expect(o.what == "error" or (o.what == "lost" and time.monotonic() < end), f"{kind.name}: {o}")
                expect(time.monotonic() < end, f"{kind.name} has no answer: {o}")
                time.sleep(0.3)
            texts[kind.name] = o.text
            expect(not kind.stream or o.chunks > 1, f"{kind.name} came in {o.chunks} pieces: it is no stream")
        expect(expected is None or texts == expected, f"other texts than before: {texts}")
        return texts

    try:
        serve.run(gimbal_app.app({"program": program, "options": "-t 1 --quiet", "cpus": "1", "drain_seconds": "5"}), name="gimbal")
        all_kinds = kinds("stories260K", TOKENS)
        first = servers()
        expect(len(first) == 1, f"a replica has one server, not {first}")
        texts = answers(120)
        print(f"answers through Ray: {len(texts)} kinds of requests", flush=True)

        send_signal(first[0], signal.SIGKILL)
        time.sleep(1)
        answers(300, texts)
        second = servers()
        expect(len(second) == 1 and second != first, f"the killed server was not replaced: {second}")
        print("the server of a replica was killed: replaced, with the same answers", flush=True)

        replica = parent(second[0])  # not just any: the one before may still be ending
        expect(replica in processes("ServeReplica:"), f"the server's parent {replica} is no replica")
        send_signal(replica, signal.SIGKILL)
        end = time.monotonic() + 30
        while second[0] in servers() and time.monotonic() < end:
            time.sleep(0.1)
        expect(second[0] not in servers(), "the server of a killed replica lives on")
        answers(300, texts)
        print("a replica was killed: replaced, with the same answers", flush=True)
    finally:
        serve.shutdown()
        ray.shutdown()
    for _ in range(100):
        if not servers():
            break
        time.sleep(0.1)
    expect(not servers(), "a server lives on after the end")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
