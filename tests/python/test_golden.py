"""Every operation through Python against other people's numbers, in the forms that users write."""

import unittest

import gimbal as gb

import golden

BINARY = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y, "pow": lambda x, y: x ** y,
          "floor_div": lambda x, y: x // y, "remainder": lambda x, y: x % y, "and": lambda x, y: x & y, "or": lambda x, y: x | y,
          "xor": lambda x, y: x ^ y, "shl": lambda x, y: x << y, "shr": lambda x, y: x >> y, "eq": lambda x, y: x == y, "ne": lambda x, y: x != y,
          "lt": lambda x, y: x < y, "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y, "matmul": lambda x, y: x @ y,
          "maximum": lambda x, y: x.maximum(y), "minimum": lambda x, y: x.minimum(y)}
OF_DTYPE = {"full": lambda p, t: gb.full(p["dims"], p["value"], dtype=t), "eye": lambda p, t: gb.eye(p["n"], dtype=t),
            "arange": lambda p, t: gb.arange(p["begin"], p["end"], p["step"], dtype=t)}
KINDS = {"shape": gb.ShapeError, "dtype": gb.DTypeError, "index": gb.IndexError}


def number(v):
    return float(v) if isinstance(v, str) else v


def with_steps(x, steps):
    for step in steps:
        if isinstance(step[0], str):
            x = getattr(x, step[0])(*step[1:])
    return x


def run(case):
    op, p = case["op"], case.get("params") or {}
    x = [with_steps(golden.tensor_of(i), i.get("steps", [])) for i in case["in"]]
    if op == "views":
        return with_steps(x[0], p["steps"])
    if op == "cast":
        return x[0].to(gb.dtype(p["dtype"]))
    if op == "where":
        return gb.where(*x)
    if op in OF_DTYPE:
        return OF_DTYPE[op]({k: v if isinstance(v, list) else number(v) for k, v in p.items() if k != "dtype"}, gb.dtype(p["dtype"]))
    if op == "affine":
        return x[0].affine(p["mul"], p["add"])
    if op == "elu":
        return x[0].elu(p["alpha"])
    if op == "pow_scalar":
        return x[0] ** number(p["exponent"])
    if op == "add_scalar":
        return x[0] + number(p["scalar"])
    if op in ("fill_", "copy_"):
        y = x[0].copy()
        part = with_steps(y, p["steps"])
        part.fill_(number(p["value"])) if op == "fill_" else part.copy_(x[1])
        return y
    if op in ("layer_norm", "rms_norm"):
        given = dict(zip([n for n in ("weight", "bias") if p[n]], x[1:]))
        return getattr(gb, op)(x[0], **given, eps=p["eps"])
    if op in ("uniform", "normal"):
        g = gb.Generator(int(p["seed"]))
        for n in p["draws_before"]:
            g.uniform([n])
        return getattr(g, op)(p["dims"], dtype=gb.dtype(p["dtype"]))
    if op in ("cat", "stack"):
        return getattr(gb, op)(x, p["dim"])
    if op == "linear" or op.startswith("conv"):
        return getattr(gb, op)(*x, **p)
    if op == "pad":
        return x[0].pad(p["pads"], number(p["value"]))
    if op.startswith("upsample"):
        return getattr(x[0], op)(*p["size"], **({"align_corners": p["align_corners"]} if "align_corners" in p else {}))
    if op in BINARY:
        return BINARY[op](*x)
    if op == "not":
        return ~x[0]
    return getattr(x[0], op)(*x[1:], **p)


class Golden(unittest.TestCase):
    pass


def family(name):
    def test(self):
        n = 0
        for case in golden.cases(name):
            if case["op"] == "threefry4x32":
                continue
            n += 1
            with self.subTest(case["name"]):
                if "error" in case:
                    with self.assertRaises(tuple(KINDS[k] for k in case["error"].split("|"))):
                        run(case)
                    continue
                got = run(case)
                got = got if isinstance(got, tuple) else (got,)
                self.assertEqual(len(got), len(case["out"]))
                for x, want in zip(got, case["out"]):
                    self.assertIsNone(golden.wrong(want, x))
        self.assertGreater(n, 0)

    return test


for _name in ("cast", "maps", "compare", "promote", "where", "moves", "reductions", "softmax", "cumsum", "gather", "sort", "matmul", "conv", "pool",
              "upsample", "random", "views", "errors"):
    setattr(Golden, "test_" + _name, family(_name))

if __name__ == "__main__":
    unittest.main()
