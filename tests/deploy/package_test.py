#!/usr/bin/env python3
"""Makes the packages of a build and uses them as a new user does: the tar.gz unpacked and run, the .deb files installed into a folder
(dpkg --root, with this system's list of packages, so that what they depend on must be there), run, removed.

Usage: package_test.py BUILD_FOLDER WORK_FOLDER BACKEND...      exit code 77: no dpkg here
"""
import glob
import json
import os
import shutil
import subprocess
import sys

wrong = []


def check(holds, sentence):
    if not holds:
        wrong.append(sentence)
        print("FAILED: " + sentence, flush=True)


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    return done.returncode, done.stdout


def must(*command, **more):
    code, said = run(*command, **more)
    if code:
        raise SystemExit(f"FAILED: {' '.join(command)}: exit code {code}\n{said}")
    return said


def files_below(folder, but=()):
    out = set()
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if os.path.relpath(os.path.join(here, name), folder) not in but]
        out |= {os.path.relpath(os.path.join(here, name), folder) for name in names}
    return out


def environment(home):
    os.makedirs(home, exist_ok=True)
    return dict(os.environ, HOME=home, XDG_CACHE_HOME="", GIMBAL_BACKEND_PATH="", GIMBAL_MODELS="")


def use(program, home, backends, where):
    """The program answers, and finds the plugins that were installed with it and no others."""
    out = must(program, "run", "-p", "Once upon a time", "-n", "10", "--greedy", "--quiet", "--backend", "cpu", env=environment(home))
    check(out.startswith(", there was a little girl"), f"{where}: the program says {out!r}")
    said = run(program, "backends", "--json", env=environment(home))[1]
    for name in ("cuda", "rocm", "metal", "vulkan", "opencl", "webgpu"):
        check((f"libgimbal-backend-{name}.so" in said.replace(f"no plugin libgimbal-backend-{name}.so", "")) == (name in backends),
              f"{where}: the plugin {name} is {'not ' if name in backends else ''}found")


def use_devices(program, home, backends):
    """Each installed plugin that has a device here computes on it, and the text is the CPU's."""
    variables = dict(environment(home), XDG_CACHE_HOME=home)  # Mesa complains about an empty one
    said = json.loads(subprocess.run([program, "backends", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=variables, check=False).stdout)
    ran = [one["backend"] for one in said["backends"] if one["backend"] in backends and one["available"]]
    for name in ran:
        out = must(program, "run", "-p", "Once upon a time", "-n", "10", "--greedy", "--quiet", "--strict", "--allow-software-devices", "--backend", name, env=variables)
        check(out.startswith(", there was a little girl"), f"deb, on {name}: the program says {out!r}")
    print("installed plugins that computed on a device: " + (", ".join(ran) or "none"))


def tarball(folder, work, backends):
    files = glob.glob(os.path.join(folder, "*.tar.gz"))
    check(len(files) == 1, f"one tar.gz, not {files}")
    place = os.path.join(work, "unpacked")
    os.makedirs(place)
    must("tar", "-xzf", files[0], "-C", place)
    top = os.listdir(place)
    check(len(top) == 1 and top[0].startswith("gimbal-"), f"the tar.gz unpacks into one folder, not {top}")
    use(os.path.join(place, top[0], "bin/gimbal"), os.path.join(work, "home"), backends, "tar.gz")
    check(not any("include/" in name or name.endswith(".a") for name in files_below(place)), "the tar.gz has what developers need")


def debs(folder, work, backends):
    files = sorted(glob.glob(os.path.join(folder, "*.deb")))
    names = [must("dpkg-deb", "-f", path, "Package").strip() for path in files]
    check(names == (["gimbal-backends", "gimbal"] if backends else ["gimbal"]) or sorted(names) == (["gimbal", "gimbal-backends"] if backends else ["gimbal"]),
          f"the packages are {names}")
    files = [path for _, path in sorted(zip(names, files))]
    depends = must("dpkg-deb", "-f", files[0], "Depends")
    check("libc6 (>= " in depends, f"dpkg-shlibdeps found: {depends}")
    if backends:
        check("gimbal (= " in must("dpkg-deb", "-f", files[1], "Depends"), "gimbal-backends does not depend on its gimbal")

    root = os.path.join(work, "root")
    for part in ("info", "updates", "triggers"):
        os.makedirs(os.path.join(root, "var/lib/dpkg", part))
    shutil.copy("/var/lib/dpkg/status", os.path.join(root, "var/lib/dpkg/status"))
    shutil.copy("/var/lib/dpkg/arch", os.path.join(root, "var/lib/dpkg/arch")) if os.path.exists("/var/lib/dpkg/arch") else None
    dpkg = ("dpkg", f"--root={root}", "--force-script-chrootless", "--force-not-root", "--log=/dev/null")
    # Of this system's packages only the list is there, not the files: the missing file lists are no news.
    must(*dpkg, "--install", *files)
    installed = files_below(root, but=("var",))
    for name in ("usr/bin/gimbal", "usr/share/man/man1/gimbal.1", "usr/share/bash-completion/completions/gimbal", "usr/share/zsh/site-functions/_gimbal",
                 "usr/share/fish/vendor_completions.d/gimbal.fish", "usr/lib/systemd/system/gimbal.service", "usr/share/doc/gimbal/LICENSE",
                 "usr/share/doc/gimbal/THIRD_PARTY_NOTICES.md", "usr/share/doc/gimbal/systemd/default"):
        check(name in installed, f"{name} is not installed")
    unknown = {name for name in installed if not name.startswith(("usr/bin/gimbal", "usr/share/", "usr/lib/systemd/system/gimbal.service", "usr/lib/gimbal/"))}
    check(not unknown, f"installed where nothing of gimbal belongs: {sorted(unknown)}")
    with open(os.path.join(root, "usr/share/man/man1/gimbal.1"), encoding="utf-8") as file:
        check(".TH" in file.read(2000), "the manual is none")
    unit = os.path.join(root, "usr/lib/systemd/system/gimbal.service")
    with open(unit, encoding="utf-8") as file:
        check("ExecStart=/usr/bin/gimbal serve" in file.read(), "the unit starts another program")
    use(os.path.join(root, "usr/bin/gimbal"), os.path.join(work, "home"), backends, "deb")
    use_devices(os.path.join(root, "usr/bin/gimbal"), os.path.join(work, "home"), backends)

    must(*dpkg, "--remove", *sorted(names, reverse=True))
    must(*dpkg, "--purge", *sorted(names, reverse=True))
    left = files_below(root, but=("var",)) | {name for name in os.listdir(os.path.join(root, "var/lib/dpkg/info")) if name.startswith("gimbal")}
    check(not left, f"after the removal there are still: {sorted(left)}")


def main(arguments):
    if len(arguments) < 2:
        raise SystemExit(__doc__)
    build, work, backends = os.path.abspath(arguments[0]), os.path.abspath(arguments[1]), [b for b in arguments[2:] if b not in ("cpu", "emulator", "toy")]
    if not all(map(shutil.which, ("dpkg-shlibdeps", "dpkg", "file"))):
        print("skipped: dpkg-shlibdeps or file is not installed: scripts/setup.sh package")
        return 77
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    folder = os.path.join(work, "packages")
    must("cpack", "--config", os.path.join(build, "CPackConfig.cmake"), "-B", folder, cwd=work)
    tarball(folder, work, backends)
    debs(folder, work, backends)
    sizes = ", ".join(f"{os.path.basename(p)} {os.path.getsize(p)} bytes" for p in sorted(glob.glob(os.path.join(folder, "*.*"))) if os.path.isfile(p))
    print(sizes)
    shutil.rmtree(work)
    print(f"{len(wrong)} failures" if wrong else "passed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
