"""A picture in other sizes: drawn, made smaller and larger, and the error of the way back."""
import gimbal as gb

y = gb.arange(64, dtype=gb.f32).unsqueeze(1)
picture = ((y.t() * 0.1).sin() * (y * 0.07).cos()).reshape(1, 1, 64, 64)
small = picture.avg_pool2d((4, 4))
large = small.upsample_bilinear2d(64, 64)
print(small.sign().sum((0, 1)).to(gb.i32))
print(f"mean error of 64 x 64 from 16 x 16: {(large - picture).abs().mean().item():.4f}")
