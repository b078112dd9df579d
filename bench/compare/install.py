"""Puts the peer on this machine: llama.cpp as node-llama-cpp packages it on npm, in one exact version, and our driver.

Two packages: one with the compiled libraries (one CPU library for every kind of CPU), and node-llama-cpp itself, which
carries the sources of the same release; only their C headers are used, to build the driver. No install script is run.
"""
import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile

VERSION = "3.22.1"
# As published in the registry; a package that was changed later does not match and is refused.
PACKAGES = {
    "@node-llama-cpp/linux-x64":
        "5uCCDNqWCNfaAm8aR/Uzxbo4HBpKgNF91kCHPepKhgMgV2OAmatoefbOlMihsqCiH2Od35E/eUHQCFbfRBJuOg==",
    "node-llama-cpp":
        "bltIipuWmc123H7tMIgDGKSsSrhmhlQYeVUC48XTjVW7XGJJiJJyCdlTMzQ/LiWoPkGDpcL4FviDpgw7qfTiDw==",
}
LIBRARIES, SOURCES = PACKAGES
HERE = os.path.dirname(os.path.abspath(__file__))


class Problem(Exception):
    """Something a person has to mend; the message says what and how."""


class Peer:
    """An installed peer. folder: everything of it; driver: the program that measures it."""

    def __init__(self, folder):
        self.folder = folder
        self.all_libraries = os.path.join(folder, "libraries")
        self.driver = os.path.join(folder, "compare-peer")

    def variants(self):
        return sorted(name[len("libggml-cpu-"):-len(".so")] for name in os.listdir(self.all_libraries)
                      if name.startswith("libggml-cpu-"))

    def libraries(self, variant):
        """The folder to load from: all CPU libraries, of which the peer takes the best, or a copy with just one."""
        if variant is None:
            return self.all_libraries
        if variant not in self.variants():
            raise Problem(f"the peer has no CPU library '{variant}'; there are {', '.join(self.variants())}")
        folder = os.path.join(self.folder, "variants", variant)
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(self.all_libraries):
            target = os.path.join(folder, name)
            if (not name.startswith("libggml-cpu-") or name == f"libggml-cpu-{variant}.so") and not os.path.exists(target):
                shutil.copy(os.path.join(self.all_libraries, name), target)
        return folder

    def description(self):
        with open(os.path.join(self.folder, "llama.cpp.info.json"), encoding="utf-8") as file:
            return {"engine": "llama.cpp " + json.load(file)["tag"], "package": LIBRARIES, "version": VERSION}


def install(work, say):
    """The peer under the folder `work`, downloaded and built where that has not been done."""
    peer = Peer(os.path.join(work, f"node-llama-cpp-{VERSION}"))
    done = os.path.join(peer.folder, "unpacked-3")
    if not os.path.exists(done):
        say(f"installing {LIBRARIES} {VERSION} from npm into {peer.folder}")
        os.makedirs(peer.all_libraries, exist_ok=True)
        for package in PACKAGES:
            unpack(download(package, peer.folder), peer)
        unpack_sources(peer)
        open(done, "w", encoding="utf-8").close()
    program(peer, os.path.join(HERE, "peer.cpp"))
    return peer


def program(peer, source):
    """A C++ program of ours against the peer's headers and libraries, built where it is missing or older than its source."""
    folder, name = os.path.split(os.path.splitext(os.path.abspath(source))[0])
    target = os.path.join(peer.folder, f"{os.path.basename(folder)}-{name}")  # there are two sources named peer.cpp
    if not os.path.exists(target) or os.path.getmtime(target) < os.path.getmtime(source):
        build(peer, source, target)
    return target


def run(command, what, errors=False):
    """What it wrote; with `errors`, what it wrote as errors, as text."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    except FileNotFoundError:
        raise Problem(f"{what} needs {command[0]}, which is not here; `scripts/setup.sh build compare` installs it") from None
    if done.returncode != 0:
        raise Problem(f"{what} failed: {' '.join(command)}\n{done.stderr.decode(errors='replace').strip()}")
    return done.stderr.decode(errors="replace") if errors else done.stdout


def compiler():
    return os.environ.get("CXX", "g++")


def download(package, folder):
    """The package's archive as bytes, checked against the pinned hash."""
    out = run(["npm", "pack", "--json", "--ignore-scripts", "--pack-destination", folder, f"{package}@{VERSION}"],
              f"downloading {package} {VERSION}")
    path = os.path.join(folder, os.path.basename(json.loads(out)[0]["filename"]))
    with open(path, "rb") as file:
        archive = file.read()
    os.remove(path)
    found = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if found != PACKAGES[package]:
        raise Problem(f"{package} {VERSION}: the archive's SHA-512 is {found}, {PACKAGES[package]} was expected;\n"
                      "the package was changed after it was pinned in bench/compare/install.py, or the download is damaged")
    return archive


def unpack(archive, peer):
    """Writes only what is used: the libraries, the sources' bundle, and the name of the release."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            name = os.path.basename(member.name)
            if not member.isfile():
                continue
            if name.endswith(".so"):
                target = os.path.join(peer.all_libraries, name)
            elif name in ("gitRelease.bundle", "llama.cpp.info.json"):
                target = os.path.join(peer.folder, name)
            else:
                continue
            with open(target, "wb") as file:
                shutil.copyfileobj(tar.extractfile(member), file)


def vocabularies(peer):
    """The folder with the vocabularies of known models that the peer's sources carry for their tests."""
    return os.path.join(peer.folder, "vocabularies")


def unpack_sources(peer):
    """The C headers and vocabularies of the packaged release, out of the Git bundle that node-llama-cpp carries."""
    bundle = os.path.join(peer.folder, "gitRelease.bundle")
    repository = os.path.join(peer.folder, "sources.git")
    shutil.rmtree(repository, ignore_errors=True)
    run(["git", "clone", "--quiet", "--bare", bundle, repository], "reading the peer's sources")
    files = run(["git", "--git-dir", repository, "archive", "--format=tar", "HEAD", "include", "ggml/include", "models"],
                "reading the peer's headers")
    wanted = {".h": os.path.join(peer.folder, "include"), ".gguf": vocabularies(peer)}
    with tarfile.open(fileobj=io.BytesIO(files)) as tar:
        for member in tar:
            folder = wanted.get(os.path.splitext(member.name)[1])
            if not member.isfile() or folder is None:
                continue
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, os.path.basename(member.name)), "wb") as file:
                shutil.copyfileobj(tar.extractfile(member), file)
    shutil.rmtree(repository)


def build(peer, source, target):
    """A driver, linked with the packaged libraries; LD_LIBRARY_PATH says later which copy of them it loads."""
    linked = [os.path.join(peer.all_libraries, name) for name in sorted(os.listdir(peer.all_libraries))
              if name.startswith(("libllama.", "libggml.", "libggml-base."))]
    run([compiler(), "-std=c++20", "-O2", "-I", os.path.join(peer.folder, "include"), source, "-o",
         target, *linked], "building the peer's driver")
