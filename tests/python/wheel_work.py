"""What an installed wheel must do: wheel_work.py BACKEND... — tensors and a text on the CPU and on these backends, with the same bits."""

import os
import subprocess
import sys
import warnings

import gimbal as gb

assert gb.__file__.startswith(sys.prefix), gb.__file__


def numbers(queue):
    with gb.device(queue):
        x = gb.tensor([[0.1 * i * (-1) ** j + j for i in range(67)] for j in range(5)])
        sums, order = x.softmax(1) @ x.permute(1, 0), x.exp().argsort(1)
        return sums.tolist(), order.tolist(), repr(x[:2, :3])


def text(**where):
    with gb.Model("default", **where) as model:
        return "".join(model.generate("Once", max_tokens=20, greedy=True))


cpu, story = numbers(gb.open_queue("cpu")), text(backend="cpu")
program = subprocess.run([os.path.join(sys.prefix, "bin", "gimbal"), "run", "default", "-p", "Once", "-n", "20", "--greedy", "--raw", "--quiet"],
                         capture_output=True, check=True, text=True)
assert story in program.stdout, (story, program.stdout)
for backend in sys.argv[1:]:
    queue = gb.open_queue(backend, strict=True, allow_software=True)
    assert queue.location == f"{backend}:0", queue
    assert numbers(queue) == cpu, backend
    assert queue.verified() and all(k["right"] for k in queue.verified()), queue.verified()
    soft = gb.open_queue(backend, allow_software=True)
    x = gb.tensor([[0.1 * i for i in range(256)]])
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        wide = [x.to(soft).to(gb.f64).exp() for _ in range(2)]
    assert wide[1].tolist() == x.to(gb.f64).exp().tolist(), backend
    assert [f"{w.category.__name__} {w.message}".split(":")[0] for w in warned] == ["RuntimeWarning map of f64 to f64 is computed by cpu"], warned
    assert [f["what"] for f in soft.fallbacks()] == ["map of f64 to f64"], soft.fallbacks()
    assert text(backend=backend, strict=True, allow_software_devices=True) == story, backend
    print(f"{backend}: {queue!r} has the CPU's bits")
print(f"the story: {story!r}")
