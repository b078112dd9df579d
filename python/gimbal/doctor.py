"""What works here: `python -m gimbal.doctor`. Exits with 1 if something that should work does not."""

import os
import platform
import subprocess
import sys
import time


def _facts():
    begun = time.perf_counter()
    import gimbal

    yield "package", f"{gimbal.__version__} in {os.path.dirname(gimbal.__file__)}, imported in {1000 * (time.perf_counter() - begun):.0f} ms"
    yield "python", f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}"
    try:
        import numpy

        yield "numpy", numpy.__version__
    except ImportError:
        yield "numpy", "absent; only Tensor.numpy() needs it"


def _tensors():
    import gimbal

    x = gimbal.arange(6, dtype="f32").reshape(2, 3)
    got = (x @ x.t()).tolist()
    if got != [[5.0, 14.0], [14.0, 50.0]]:
        raise gimbal.Error(f"a matrix product gave {got}")
    return f"work on {x.device}: {x.queue!r}"


def _model():
    import gimbal

    with gimbal.Model("default", progress=False) as model:
        text = model.generate("Once upon a time", max_tokens=8, greedy=True).text
        if not text.startswith(", there was"):
            raise gimbal.Error(f"the model inside the library wrote {text!r}")
        return f"work on {model.placement[0]['device']}: {model.placement[0]['why']}"


def _program():
    from ._program import environment, program_path

    path = program_path()
    version = subprocess.run([path, "--version"], capture_output=True, text=True, env=environment(), check=True).stdout.splitlines()[0]
    return f"{version} in {path}"


def _devices():
    import gimbal

    lines = []
    for b in gimbal.backends():
        if b["available"]:
            lines += [f"{d['id']}: {d['name']}" for d in b["devices"]]
        else:
            lines.append(f"{b['name']}: {b['why_not']['message']}")
    return "\n".join(lines)


def main():
    failed = False
    for name, text in _facts():
        print(f"{name:10}{text}")
    for name, check in (("program", _program), ("devices", _devices), ("tensors", _tensors), ("models", _model)):
        try:
            text = check()
        except Exception as error:  # any error: the report continues
            failed, text = True, f"FAILED: {error}"
        print(f"{name:10}" + text.replace("\n", "\n" + " " * 10))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
