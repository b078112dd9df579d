"""An operation of the program's own: chosen, counted and verified like any other."""
import numpy as np

import gimbal as gb

queue = gb.open_queue("cpu")
with gb.device(queue):
    triple = gb.custom_op("triple", cpu=lambda x, y: np.multiply(x, 3, out=y), reference=lambda x: 3 * x)
    print(f"verified: {triple.verify(queue)['cases']} cases")
    x = gb.tensor([[1.0, 2.0], [3.0, 4.0]])
    print(triple(x.t()))
    print(f"cpu.custom.triple ran {queue.receipt()['cpu.custom.triple']} times")
