"""The peer's server: llama.cpp's own, of the packaged release.

There is no package of the program itself for Linux, so its files (tools/server) are compiled from the sources that node-llama-cpp
carries and linked with the packaged libraries: what computes is the same machine code as everywhere in this folder.
What reads pictures and sound (tools/mtmd) is left out: in its place stand functions that do nothing; without --mmproj none of them matters.
"""
import concurrent.futures
import glob
import os
import shutil

import install

# The interface to the web page, of which there is none.
NO_PAGE = {
    "ui.h": """#pragma once
#include <array>
#include <string>
struct llama_ui_asset { std::string name; const unsigned char* data; std::size_t size; std::string etag, type; };
inline const llama_ui_asset* llama_ui_find_asset(const std::string&) { return nullptr; }
inline bool llama_ui_use_gzip() { return false; }
inline const std::array<llama_ui_asset, 0>& llama_ui_get_assets() { static const std::array<llama_ui_asset, 0> none{}; return none; }
"""}
INCLUDED = ["tools/server", "tools/mtmd", "common", "include", "ggml/include", "vendor", "."]


def program(peer, say, jobs=2):
    """The program's path; built where it is missing, file by file, so that an interrupted build continues."""
    folder = os.path.join(peer.folder, "server")
    target = os.path.join(folder, "llama-server")
    if os.path.exists(target):
        return target
    sources = os.path.join(folder, "sources")
    if not os.path.exists(sources):
        say("building the peer's server: some minutes, once")
        unfinished = sources + ".unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        install.run(["git", "clone", "--quiet", os.path.join(peer.folder, "gitRelease.bundle"), unfinished], "reading the peer's sources")
        for name, text in NO_PAGE.items():
            with open(os.path.join(unfinished, "tools", "server", name), "w", encoding="utf-8") as file:
                file.write(text)
        os.rename(unfinished, sources)
    files = sorted(glob.glob(os.path.join(sources, "tools", "server", "*.cpp")))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        objects = list(pool.map(lambda source: compiled(source, sources, folder), files))
    libraries = [os.path.join(peer.all_libraries, name) for name in sorted(os.listdir(peer.all_libraries))
                 if name.startswith(("libllama", "libggml.", "libggml-base."))]
    link = [install.compiler(), "-o", target, *objects, *libraries, "-pthread", "-Wl,--no-demangle"]
    told = install.run([*link, "-Wl,--warn-unresolved-symbols"], "linking the peer's server", errors=True)
    os.remove(target)
    missing = sorted({line.rsplit("reference to ", 1)[1].strip("`'") for line in told.splitlines() if "undefined reference to" in line})
    if others := [name for name in missing if "mtmd" not in name]:
        raise install.Problem(f"linking the peer's server: nothing has {', '.join(others[:5])}")
    stubs = os.path.join(folder, "left-out.s")
    with open(stubs, "w", encoding="ascii") as file:
        file.writelines(f".globl {name}\n.type {name}, @function\n{name}: xor %eax, %eax\nret\n" for name in missing)
    install.run([*link, stubs], "linking the peer's server")
    return target


def compiled(source, sources, folder):
    target = os.path.join(folder, os.path.relpath(source, sources).replace(os.sep, "-") + ".o")
    if not os.path.exists(target):
        include = [word for one in INCLUDED for word in ("-I", os.path.join(sources, one))]
        unfinished = target + ".unfinished.o"
        install.run([install.compiler(), "-std=c++17", "-O2", "-w", *include, "-c", source, "-o", unfinished],
                    "building the peer's server")
        os.rename(unfinished, target)
    return target
