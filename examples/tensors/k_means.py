"""k-means: points fall into the groups that they were drawn around. One step is a recorded function."""
import gimbal as gb

random = gb.Generator(7)
middles = gb.tensor([[-5.0, -5], [5, -5], [0, 6]])
points = (random.normal((3, 100, 2)) + middles.unsqueeze(1)).reshape(300, 2)


@gb.record
def step(x, centres):
    nearest = (x.unsqueeze(1) - centres).sqr().sum(2).argmin(1)
    sums = gb.zeros(centres.shape).index_add(nearest, x, 0)
    counts = gb.zeros(centres.shape[0]).index_add(nearest, gb.ones(x.shape[0]), 0)
    return sums / counts.unsqueeze(1), counts


centres = points[::100]                              # one of each group
for _ in range(5):
    centres, counts = step(points, centres)
print(counts)
print(centres.round())
