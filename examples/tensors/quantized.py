"""Weights in fewer bits: their size, their error, and products with them."""
import gimbal as gb

random = gb.Generator(1)
w, x = random.normal((128, 512)), random.normal((4, 512))
exact = gb.linear(x, w)
for name in ("q8_0", "q6_k", "q4_k", "q2_k"):
    q = w.to(name)
    error = ((gb.linear(x, q) - exact).sqr().mean() / exact.sqr().mean()).sqrt()
    print(f"{name:5} {len(q.tobytes()):6} bytes, products off by {error.item():.4f}")
