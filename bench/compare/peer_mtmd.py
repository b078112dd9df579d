"""The peer's reader of pictures and sounds: llama.cpp's tools/mtmd of the packaged release.

npm's packages have no such library, so its files are compiled from the sources that node-llama-cpp carries and linked, below a driver
of ours, with the packaged libraries: what computes is the same machine code as everywhere in this folder.
"""
import concurrent.futures
import glob
import os

import install


def program(peer, driver, say, jobs=2):
    """The driver's program; built where it is missing or older than its source, file by file, so that an interrupted build continues."""
    folder = os.path.join(peer.folder, "mtmd")
    sources, out = os.path.join(folder, "sources"), os.path.join(folder, "out")
    if not os.path.exists(sources):
        say("building the peer's reader of pictures: some minutes, once")
        os.makedirs(folder, exist_ok=True)
        install.run(["git", "clone", "--quiet", os.path.join(peer.folder, "gitRelease.bundle"), sources + ".unfinished"], "reading the peer's sources")
        os.rename(sources + ".unfinished", sources)
    os.makedirs(out, exist_ok=True)
    mtmd = os.path.join(sources, "tools", "mtmd")
    files = [os.path.join(mtmd, name + ".cpp") for name in ("clip", "mtmd", "mtmd-audio", "mtmd-image")]
    files += sorted(glob.glob(os.path.join(mtmd, "models", "*.cpp")))
    included = ["include", os.path.join("ggml", "include"), os.path.join("tools", "mtmd"), "vendor"]
    compile_ = [install.compiler(), "-std=c++17", "-O2", "-w", *(word for each in included for word in ("-I", os.path.join(sources, each)))]

    def compiled(source):
        target = os.path.join(out, os.path.basename(source) + ".o")
        if not os.path.exists(target):
            install.run([*compile_, "-c", source, "-o", target + ".unfinished.o"], "building the peer's reader of pictures")
            os.rename(target + ".unfinished.o", target)
        return target
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        objects = list(pool.map(compiled, files))
    target = os.path.join(out, os.path.splitext(os.path.basename(driver))[0])
    if not os.path.exists(target) or os.path.getmtime(target) < os.path.getmtime(driver):
        libraries = [os.path.join(peer.all_libraries, name) for name in sorted(os.listdir(peer.all_libraries))
                     if name.startswith(("libllama.", "libggml.", "libggml-base."))]
        install.run([*compile_, driver, *objects, *libraries, "-pthread", "-o", target], "linking the peer's reader of pictures")
    return target
