"""The build backend of pyproject.toml (PEP 517): CMake, then a zip file. It needs nothing from PyPI.

    pip install .                                        builds with Debian's tools, offline
    pip install . --config-settings=backends=vulkan      with these GPU backends as plugins beside the module
    --config-settings=GIMBAL_CPU_VARIANTS=common         any option of the build (docs/building.md)
    --config-settings=build-dir=DIR                      builds there, in place of build/wheel
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


# Files of the package beside its modules: type stubs, and py.typed.
PACKAGE_FILES = (".py", ".pyi", "py.typed")


def gpu_backends():
    """The names that the build knows, but for the CPU's, which every wheel has."""
    with open(os.path.join(ROOT, "src", "device", "backends.def"), encoding="utf-8") as file:
        return [n for n in re.findall(r'^GIMBAL_KNOWN_BACKEND\(\w+,\s*"(\w+)"', file.read(), re.MULTILINE) if n != "cpu"]


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(gimbal VERSION ([0-9.]+)", file.read()).group(1)


def metadata():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    return (f"Metadata-Version: 2.1\nName: gimbal\nVersion: {version()}\n"
            "Summary: Tensors with the same bits everywhere, and the engine that runs language models on them\n"
            f"Requires-Python: >=3.11\nDescription-Content-Type: text/markdown\n\n{readme}")


def tag():
    return "cp311-abi3-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def backends_of(settings):
    names = [n for n in re.split(r"[,; ]+", (settings or {}).get("backends", "")) if n]
    unknown = [n for n in names if n not in gpu_backends()]
    if unknown:
        raise SystemExit(f"gimbal: there is no backend {', '.join(unknown)}; there are {', '.join(gpu_backends())}")
    return names


def environment():
    """ccache finds what another checkout of the same sources has compiled, since paths below this one are relative."""
    return {**os.environ, "CCACHE_BASEDIR": ROOT, "CCACHE_NOHASHDIR": "1"}


def built(settings):
    """Configures and builds. Returns the build folder and the names of the plugins in it."""
    names = backends_of(settings)
    folder = os.path.abspath((settings or {}).get("build-dir") or os.path.join(ROOT, "build", "wheel"))
    options = [f"-DGIMBAL_BACKEND_{n.upper()}={'ON' if n in names else 'OFF'}" for n in gpu_backends()]
    options += [f"-D{key}={value}" for key, value in (settings or {}).items() if key.startswith("GIMBAL_")]
    subprocess.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF", "-DGIMBAL_PYTHON=ON",
                    f"-DPython3_EXECUTABLE={sys.executable}", *options], check=True, env=environment())
    subprocess.run(["cmake", "--build", folder, "--target", "gimbal_python", "gimbal", *(f"gimbal_plugin_{n}" for n in names)], check=True,
                   env=environment())
    return folder, names


def add(wheel, records, name, data, program=False):
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.external_attr = (0o100755 if program or name.endswith(".so") else 0o100644) << 16
    wheel.writestr(info, data, zipfile.ZIP_DEFLATED)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    records.append(f"{name},sha256={digest},{len(data)}")


def content(path):
    with open(path, "rb") as file:
        return file.read()


def stripped(path):
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        subprocess.run(["strip", "--strip-unneeded", "-o", file.name, path], check=True)
        return content(file.name)


def add_package(wheel, records, folder, plugins):
    sources = os.path.join(ROOT, "python", "gimbal")
    for file in sorted(os.listdir(sources)):
        if file.endswith(PACKAGE_FILES):
            add(wheel, records, f"gimbal/{file}", content(os.path.join(sources, file)))
    add(wheel, records, "gimbal/_gimbal.abi3.so", stripped(os.path.join(folder, "python", "gimbal", "_gimbal.abi3.so")))
    add(wheel, records, "gimbal/bin/gimbal", stripped(os.path.join(folder, "gimbal")), program=True)
    for name in plugins:
        file = f"libgimbal-backend-{name}.so"
        add(wheel, records, f"gimbal/{file}", stripped(os.path.join(folder, file)))


def add_info(wheel, records):
    info = f"gimbal-{version()}.dist-info"
    add(wheel, records, f"{info}/METADATA", metadata().encode())
    add(wheel, records, f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: gimbal\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode())
    add(wheel, records, f"{info}/entry_points.txt", b"[console_scripts]\ngimbal = gimbal._program:main\n")
    for name in ("LICENSE", "THIRD_PARTY_NOTICES.md"):
        add(wheel, records, f"{info}/licenses/{name}", content(os.path.join(ROOT, name)))
    records.append(f"{info}/RECORD,,")
    add(wheel, [], f"{info}/RECORD", ("\n".join(records) + "\n").encode())


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    folder, plugins = built(config_settings)
    name = f"gimbal-{version()}-{tag()}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as wheel:
        records = []
        add_package(wheel, records, folder, plugins)
        add_info(wheel, records)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """The files that git tracks."""
    name = f"gimbal-{version()}"
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True).stdout.decode().split("\0")
    with tarfile.open(os.path.join(sdist_directory, name + ".tar.gz"), "w:gz") as archive:
        for file in filter(None, files):
            archive.add(os.path.join(ROOT, file), f"{name}/{file}", recursive=False)
        with tempfile.NamedTemporaryFile("w", suffix="PKG-INFO") as info:
            info.write(metadata())
            info.flush()
            archive.add(info.name, f"{name}/PKG-INFO")
    return name + ".tar.gz"
