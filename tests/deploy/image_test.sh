#!/usr/bin/env bash
# deploy/docker/Dockerfile, built and run, where there is no registry and no Docker: Debian's buildah, upon a debian:12-slim that
# debootstrap makes of Debian's packages. The image then runs as the Dockerfile says: another user than root, a root file system to
# read, /cache to write; its health check sees it, and SIGTERM ends it with 0.
# Usage: image_test.sh [FOLDER]     as root, with buildah, debootstrap (scripts/setup.sh image) and the network; FOLDER: where the base is kept (build/image-test).
# IMAGE_CCACHE=~/.cache/ccache takes objects that were compiled before.
# By hand, no part of ctest: it downloads Debian and compiles gimbal from clean.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$(realpath -m "${1:-$here/build/image-test}")
mkdir -p "$work"
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
buildah() { command buildah --root "$work/store" --runroot "$work/run" "$@"; }
fail() { echo "FAILED: $*"; exit 1; }

if ! buildah inspect --type image docker.io/library/debian:12-slim >/dev/null 2>&1; then
  [ -e "$work/base/etc/debian_version" ] || debootstrap --variant=minbase bookworm "$work/base" http://deb.debian.org/debian
  rm -rf "$work"/base/var/cache/apt/archives/*.deb "$work"/base/usr/share/{doc,man,locale}  # as Docker's slim images leave them out
  base=$(buildah from scratch)
  buildah add -q "$base" "$work/base" / >/dev/null
  buildah commit -q "$base" docker.io/library/debian:12-slim >/dev/null
  buildah rm "$base" >/dev/null
fi

# What git has of this checkout: nothing that happens to lie here gets into the image.
rm -rf "$work/context"
mkdir "$work/context"
git -C "$here" ls-files -z -co --exclude-standard | (cd "$here" && xargs -0 cp --parents -t "$work/context")
more=()
if [ -n "${IMAGE_CCACHE:-}" ]; then  # objects that were compiled before; of the first stage alone
  sed -i '0,/^WORKDIR/s//ENV CCACHE_BASEDIR=\/src CCACHE_NOHASHDIR=1\nWORKDIR/' "$work/context/deploy/docker/Dockerfile"
  more=(--volume "$IMAGE_CCACHE:/root/.cache/ccache")
fi
buildah bud -q --pull-never "${more[@]}" -f "$work/context/deploy/docker/Dockerfile" -t gimbal:test "$work/context"

container=$(buildah from --pull-never gimbal:test)
trap 'umount -R "$work/root" 2>/dev/null || true; buildah rm "$container" >/dev/null' EXIT
config() { buildah inspect --format "{{.OCIv1.Config.$1}}" "$container"; }
[ "$(config User)" = 10001:10001 ] || fail "it runs as $(config User)"
entry=$(config Entrypoint) words=$(config Cmd)
[ "$entry $words" = "[/usr/bin/gimbal] [serve --host 0.0.0.0 --port 8080]" ] || fail "it starts $entry $words"
[ "$(config StopSignal)" = SIGTERM ] || fail "it is stopped by $(config StopSignal)"

mkdir -p "$work/root"
python3 - "$work" "$(buildah mount "$container")" "$here/deploy/docker/Dockerfile" <<'PYTHON'
import ctypes, json, os, re, signal, subprocess, sys, time

work, root, dockerfile = sys.argv[1:]
there = os.path.join(work, "root")
libc = ctypes.CDLL(None, use_errno=True)


def must(*command):
    subprocess.run(command, check=True)


def expect(true, why):
    if not true:
        raise SystemExit(f"FAILED: {why}")


# Mounts and a network of our own, where every port is free.
if libc.unshare(0x00020000 | 0x40000000):
    raise SystemExit(f"unshare: {os.strerror(ctypes.get_errno())}")
must("mount", "--make-rprivate", "/")
must("ip", "link", "set", "lo", "up")
must("mount", "--bind", root, there)
must("mount", "-o", "remount,bind,ro", there)
must("mount", "-t", "tmpfs", "-o", "uid=10001,gid=10001", "none", there + "/cache")
must("mount", "-t", "proc", "none", there + "/proc")
must("mount", "--rbind", "/dev", there + "/dev")


def as_user():
    os.chroot(there)
    os.chdir("/")
    os.setgroups([])
    os.setresgid(10001, 10001, 10001)
    os.setresuid(10001, 10001, 10001)
    libc.prctl(38, 1, 0, 0, 0)  # no new privileges


def start(words, **more):
    return subprocess.Popen(words, preexec_fn=as_user, env={"HOME": "/cache", "XDG_CACHE_HOME": "/cache", "PATH": "/usr/bin:/bin", **more.pop("env", {})},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def said(*words):
    process = start(words)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


code, _, _ = said("sh", "-c", "touch /usr/bin/x || touch /x")
expect(code != 0, "the root file system can be written")
code, out, err = said("/usr/bin/gimbal", "run", "-p", "Once upon a time", "-n", "8", "--greedy", "--quiet")
expect(code == 0 and out.startswith(", there was a little"), f"gimbal run: {code} {out} {err}")
code, out, err = said("sleep", "0")
expect(code == 0, "there is no sleep for preStop of Kubernetes")

with open(dockerfile, encoding="utf-8") as file:
    check = json.loads(re.search(r"^HEALTHCHECK .*\\\n +CMD (\[.*\])$", file.read(), re.M)[1])
expect(said(*check)[0] != 0, "the health check sees a server where there is none")
server = start(["/usr/bin/gimbal", "serve", "--host", "0.0.0.0", "--port", "8080"], env={"GIMBAL_API_KEY": "k"})
try:
    for _ in range(600):
        expect(server.poll() is None, f"the server ended: {server.stderr.read() if server.poll() is not None else ''}")
        if said(*check)[0] == 0:
            break
        time.sleep(0.2)
    else:
        raise SystemExit("FAILED: the health check never sees the server")
    with open(f"/proc/{server.pid}/status", encoding="ascii") as file:
        expect(re.search(r"^Uid:\t10001\t10001\t10001", file.read(), re.M), "the server is another user")
    server.send_signal(signal.SIGTERM)
    expect(server.wait(60) == 0, f"SIGTERM ends it with {server.returncode}")
finally:
    if server.poll() is None:
        server.kill()
print("passed")
PYTHON
