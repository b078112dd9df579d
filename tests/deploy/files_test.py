#!/usr/bin/env python3
"""The files of deploy/, each read by the program that it is for or by a checker of its format, and what they say beside gimbal itself.

Usage: files_test.py GIMBAL      exit code 77: a checker is not installed (scripts/setup.sh deploy)
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
from send_signal import send_signal, send_signal_to_group  # noqa: E402

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
DEPLOY = os.path.join(ROOT, "deploy")
RIG = os.path.join(ROOT, "build/deploy-rig/bin")
# Kinds that no schema of Kubernetes itself describes.
OF_OTHERS = {"Kustomization", "PodMonitor"}
SPARE_SECONDS = 10  # between the end of draining and being killed
WORST_EXPOSURE = 20  # of systemd's 100
failures = []


def expect(true, why):
    if not true:
        failures.append(why)
        print(f"FAILED: {why}", flush=True)


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    return done.returncode, done.stdout + done.stderr


def passes(what, *command, **more):
    code, said = run(*command, **more)
    expect(code == 0, f"{what}:\n{said}")
    print(f"{'right' if code == 0 else 'WRONG'}: {what}", flush=True)
    return said


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def seconds_after(option, text):
    return int(re.search(re.escape(option) + r"[ =](\d+)", text)[1])


def balancers(folder):
    passes("haproxy.cfg", "haproxy", "-c", "-f", os.path.join(DEPLOY, "haproxy/haproxy.cfg"))
    path = os.path.join(folder, "nginx.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"pid {folder}/pid; error_log stderr; events {{}} http {{ access_log off; include {DEPLOY}/nginx/gimbal.conf; }}\n")
    passes("nginx/gimbal.conf", "nginx", "-t", "-q", "-c", path)


def kubernetes():
    import yaml
    files = sorted(glob.glob(os.path.join(DEPLOY, "kubernetes/*.yaml")))
    rules = "{extends: default, rules: {line-length: {max: 150}, document-start: disable, braces: {max-spaces-inside: 0}}}"
    passes("YAML of Kubernetes' files", "yamllint", "--strict", "-d", rules, *files)
    said = passes("schemas of Kubernetes", os.path.join(RIG, "kubernetes-validate"), "--strict", *files)
    things = {}
    for path in files:
        for thing in yaml.safe_load_all(text_of(path)):
            things[thing["kind"]] = thing
            if thing["kind"] not in OF_OTHERS:
                kind = thing["kind"].lower()
                expect(re.search(rf"passed for resource {kind}/{thing['metadata']['name']} ", said), f"no schema was found for {kind} in {path}")

    pod = things["Deployment"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    need = int(container["lifecycle"]["preStop"]["exec"]["command"][1]) + seconds_after("--drain-timeout", " ".join(container["args"])) + SPARE_SECONDS
    expect(pod["terminationGracePeriodSeconds"] == need, f"terminationGracePeriodSeconds must be preStop + drain + {SPARE_SECONDS} = {need}")
    expect(pod["securityContext"]["runAsNonRoot"] and container["securityContext"]["readOnlyRootFilesystem"], "not root, a root file system to read")
    routes = text_of(os.path.join(ROOT, "src/server/api/api.cpp"))
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        path = container[probe]["httpGet"]["path"]
        expect(f'"{path}"' in routes, f"{probe} asks {path}, which the server does not have")
    metric = things["HorizontalPodAutoscaler"]["spec"]["metrics"][0]["pods"]["metric"]["name"]
    sources = "".join(text_of(p) for p in glob.glob(os.path.join(ROOT, "src/server/api/*.cpp")))
    expect(f'"{metric}"' in sources, f"the autoscaler reads {metric}, which /metrics does not have")
    listed = sorted(things["Kustomization"]["resources"] + ["kustomization.yaml", "monitoring.yaml"])
    expect(listed == sorted(os.path.basename(p) for p in files), f"kustomization.yaml lists other files than there are: {listed}")


def dockerfile():
    path = os.path.join(DEPLOY, "docker/Dockerfile")
    passes("Dockerfile (read by hadolint, not built: that needs a registry)", os.path.join(RIG, "hadolint"), path)
    user = re.findall(r"^USER (\S+)", text_of(path), re.M)
    expect(user and not user[-1].startswith(("0", "root")), "the Dockerfile ends as root")


def health_check(port):
    """Exit code of the Dockerfile's health check, at another port than its own."""
    words = re.search(r"^HEALTHCHECK .*\\\n +CMD (\[.*\])$", text_of(os.path.join(DEPLOY, "docker/Dockerfile")), re.M)[1]
    return run(*json.loads(words.replace("/8080", f"/{port}").replace(":8080", f":{port}")))[0]


def health_over_tls(program, folder):
    tls = os.path.join(ROOT, "tests/apps/tls")
    server = subprocess.Popen([program, "serve", "--port", "0", "--json", "-t", "1", "--tls-cert", f"{tls}/cert.pem", "--tls-key", f"{tls}/key.pem"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=dict(os.environ, HOME=folder, XDG_CACHE_HOME=""))
    with server:
        try:
            port = re.search(r'"url": *"https://[^"]*:(\d+)"', server.stdout.readline())[1]
            expect(health_check(port) == 0, "the Dockerfile's health check does not see a healthy server that speaks TLS")
        finally:
            send_signal(server.pid, signal.SIGTERM)
            server.wait(60)
    expect(health_check(port) != 0, "the Dockerfile's health check sees a server with TLS that has ended")
    print("right: the health check speaks TLS", flush=True)


def without_comments(unit):
    return "\n".join(line for line in unit.split("\n") if not line.startswith("#"))


def systemd(program, folder):
    unit = text_of(os.path.join(DEPLOY, "systemd/gimbal.service"))
    here = os.path.join(folder, "gimbal.service")
    with open(here, "w", encoding="utf-8") as file:  # systemd looks for the program, which is not installed
        file.write(unit.replace("/usr/bin/gimbal", program))
    said = passes("systemd unit", "systemd-analyze", "verify", "--man=no", here)
    expect(not said.strip(), f"systemd says: {said}")
    passes(f"systemd unit: exposed to at most {WORST_EXPOSURE / 10}", "systemd-analyze", "security", "--offline=true", f"--threshold={WORST_EXPOSURE}", here)
    drain, stop = seconds_after("--drain-timeout", without_comments(unit)), seconds_after("TimeoutStopSec", without_comments(unit))
    expect(stop >= drain + SPARE_SECONDS, f"TimeoutStopSec={stop} leaves less than {SPARE_SECONDS} s after --drain-timeout {drain}")
    return unit


def calls_of_group(name, groups):
    """System calls of one of systemd's groups."""
    out = set()
    for word in groups[name]:
        out |= calls_of_group(word, groups) if word.startswith("@") else {word}
    return out


def system_calls(program, folder, unit):
    """What a server really calls, from its start over an answer to its end, is what the unit allows."""
    groups, current = {}, None
    for line in run("systemd-analyze", "syscall-filter")[1].split("\n"):
        if line.startswith("@"):
            current = groups.setdefault(line.strip(), [])
        elif current is not None and line.startswith("    ") and not line.strip().startswith("#"):
            current.append(line.strip())
    allowed = set()
    for words in re.findall(r"^SystemCallFilter=(.*)$", unit, re.M):
        calls = set().union(*(calls_of_group(w, groups) if w.startswith("@") else {w} for w in words.lstrip("~").split()))
        allowed = allowed - calls if words.startswith("~") else allowed | calls

    trace = os.path.join(folder, "trace")
    out, into = os.pipe()
    environment = dict(os.environ, HOME=folder, XDG_CACHE_HOME="")
    with subprocess.Popen(["strace", "-f", "-qq", "-o", trace, program, "serve", "--port", "0", "--json", "-t", "1"], stdout=into,
                          stderr=subprocess.DEVNULL, env=environment, start_new_session=True) as server:
        os.close(into)
        try:
            with os.fdopen(out, encoding="utf-8") as lines:
                url = re.search(r'"url": *"([^"]+)"', lines.readline())[1]
            body = b'{"model":"any","prompt":"Once","max_tokens":3}'
            try:  # the name is wrong, the way there is the same
                urllib.request.urlopen(urllib.request.Request(url + "/v1/completions", body, {"Content-Type": "application/json"}), timeout=60)
            except urllib.error.HTTPError as e:
                expect(e.code == 404, f"the traced server said {e.code}")
            with urllib.request.urlopen(url + "/v1/models", timeout=60) as answer:
                model = re.search(rb'"id": *"([^"]+)"', answer.read())[1]
            urllib.request.urlopen(urllib.request.Request(url + "/v1/completions", body.replace(b"any", model), {"Content-Type": "application/json"}),
                                   timeout=60).read()
            port = url.rsplit(":", 1)[1]
            expect(health_check(port) == 0, "the Dockerfile's health check does not see a healthy server")
            children = text_of(f"/proc/{server.pid}/task/{server.pid}/children").split()
            send_signal(int(children[0]), signal.SIGTERM)
            server.wait(60)
        finally:
            if server.poll() is None:
                send_signal_to_group(server.pid, signal.SIGKILL)
    expect(health_check(port) != 0, "the Dockerfile's health check sees a server that has ended")
    lines = text_of(trace)
    called = set(re.findall(r"^\d+ +([a-z_0-9]+)\(", lines, re.M))
    expect({"execve", "accept4", "seccomp"} & called and len(called) > 30, f"strace saw only {sorted(called)}")
    expect(called <= allowed, f"the unit forbids what the server calls: {sorted(called - allowed)}")
    both = [line for line in lines.split("\n") if re.search(r"\b(mmap|mprotect)\(.*PROT_WRITE\|PROT_EXEC", line)]
    expect(not both, f"MemoryDenyWriteExecute forbids: {both[:3]}")
    print(f"right: the {len(called)} system calls of a server are among the {len(allowed)} that the unit allows", flush=True)


def main(arguments):
    if len(arguments) != 1:
        raise SystemExit(__doc__)
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    for tool in ("haproxy", "nginx", "yamllint", "systemd-analyze", "strace", os.path.join(RIG, "kubernetes-validate"), os.path.join(RIG, "hadolint")):
        if not shutil.which(tool):
            print(f"skipped: {os.path.basename(tool)} is not installed: scripts/setup.sh deploy")
            return 77
    program = os.path.abspath(arguments[0])
    with tempfile.TemporaryDirectory(prefix="gimbal-deploy-") as folder:
        balancers(folder)
        kubernetes()
        dockerfile()
        health_over_tls(program, folder)
        system_calls(program, folder, systemd(program, folder))
    if failures:
        print(f"{len(failures)} failures")
        return 1
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
