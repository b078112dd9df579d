"""Runs built examples: a folder with `example_<name>` and `example_tensors_<name>`."""
import os
import subprocess

EXAMPLES = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))


def names(folder, *ends):
    return sorted(name.rsplit(".", 1)[0] for name in os.listdir(folder) if name.endswith(ends))


def run(program, *words, environment=None):
    return subprocess.run([program, *words], input="Once upon a time\n", env=environment, capture_output=True, text=True, check=False)


def wrong_on_the_cpu(folder, environment=None):
    """Runs all examples on the CPU and returns their failures, one line each. A missing example is a failure. Examples of the engine must print
    something; examples of tensors must print the text of examples/tensors/expected."""
    tensors = os.path.join(EXAMPLES, "tensors")
    wanted = [(f"example_{name}", None) for name in names(EXAMPLES, ".c", ".cpp")]
    wanted += [(f"example_tensors_{name}", os.path.join(tensors, "expected", f"{name}.txt")) for name in names(tensors, ".cpp")]
    wrong = []
    for program, path in wanted:
        program = os.path.join(folder, program)
        if not os.path.exists(program):
            wrong.append(f"{program} was not built")
            continue
        done = run(program, environment=environment)
        expected = None
        if path:
            with open(path, encoding="utf-8") as file:
                expected = file.read()
        right = done.stdout == expected if path else done.stdout.strip()
        if done.returncode or not right:
            wrong.append(f"{program} ends with {done.returncode} and prints '{done.stdout}' and '{done.stderr}'")
    return wrong
