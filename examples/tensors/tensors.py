"""Tensors in a minute: views, arithmetic, a recorded function with its plan. tensors.py [DEVICE]"""
import sys

import gimbal as gb

with gb.device(sys.argv[1] if len(sys.argv) > 1 else "cpu"):
    x = gb.arange(12, dtype=gb.f32).reshape(3, 4)
    print(x.t().flip(0))                                  # views copy nothing
    print(x.softmax(-1).sum(1) * 2)
    layer = gb.record(lambda x: (x @ x.t() * 0.1).gelu())
    plan = layer.plan(x)
    print(f"recorded: {plan['operations']} operations, {plan['work']} bytes of work")
    print(layer(x))
