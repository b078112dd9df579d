// Random programs of tensors: the same calls for the same seed, whatever computes them.
#pragma once
#include <algorithm>
#include <random>
#include <vector>

#include <gimbal/tensor.h>

namespace gimbal::test {

class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : seed_(seed) {}

  std::vector<Tensor> arguments(uint64_t seed, const Queue& q) const {
    Generator g(seed, q);
    const Tensor wide = g.normal({6, 10});
    return {g.normal({4, 6}), wide.narrow(1, 9, 5, -2), g.uniform({6}),
            (g.normal({3, 4}) * 10).to(DType::I32)};
  }

  std::vector<Tensor> run(std::span<const Tensor> in) const {
    std::mt19937_64 random(seed_);
    auto below = [&](size_t n) { return size_t(random() % n); };
    const Queue q = in[0].queue();
    std::vector<Tensor> all(in.begin(), in.end());
    all.push_back(Tensor::arange(0, 12, 1, DType::F32, q).reshape({3, 4}));
    for (int step = 0; step < 14; step++) {
      const Tensor x = all[below(all.size())], y = all[below(all.size())];
      const Tensor next = of(below(22), x, y, below(1000));
      // A call that does not fit gives an error, here as there: another one takes its place.
      all.push_back(next.ok() && next.count() > 0 && next.count() < 3000 ? next : x.copy());
    }
    // A part of the intermediate values is returned, so that the others' memory is shared.
    std::vector<Tensor> results;
    for (size_t i = 0; i < all.size(); i++)
      if (i % 4 == 1 || i + 1 == all.size()) results.push_back(all[i]);
    return results;
  }

 private:
  static Tensor of(size_t which, const Tensor& x, const Tensor& y, size_t n) {
    static constexpr const char* kOne[] = {"exp", "gelu", "tanh",  "neg", "abs",
                                           "sqr", "silu", "floor", "sin"};
    static constexpr const char* kTwo[] = {"add", "sub", "mul", "maximum", "lt", "eq", "div"};
    const int last = x.rank() - 1, dim = x.rank() ? int(n) % x.rank() : 0;
    switch (which) {
      case 0:
      case 1: return x.map(kOne[n % std::size(kOne)]);
      case 2:
      case 3: return x.map(kTwo[n % std::size(kTwo)], y);
      case 4: return x.map(kTwo[n % std::size(kTwo)], double(n) / 100);
      case 5: return x.t();
      case 6: return x.flip(dim);
      case 7: return x.narrow(dim, 0, std::max<int64_t>(1, x.dim(dim) - 1));
      case 8: return x.reshape({-1});
      case 9: return x.sum({dim}, n % 2);
      case 10: return x.softmax(dim);
      case 11: return x.matmul(y);
      case 12: {
        const Tensor both[] = {x, y};
        return cat(both, 0);
      }
      case 13:
        return x.pad(std::vector<std::pair<int64_t, int64_t>>(size_t(x.rank()), {1, int64_t(n % 2)}), 0.5);
      case 14: return where(x.map("lt", 0.25), x, x * 2);
      case 15: return x.sort(dim, n % 2);
      case 16: return x.cumsum(dim);
      case 17: {
        const Tensor to = x.copy();
        if (auto done = to.narrow(dim, x.dim(dim) - 1, 1).fill_(double(n % 7)); !done) return y.copy();
        return to;
      }
      case 18: return x.to(DType::F16).to(DType::F32);
      case 19:
        return x.index_select(
            Tensor::from<int32_t>({0, int32_t(int64_t(n) % std::clamp<int64_t>(x.dim(dim), 1, 3)), 0}, {3},
                                  x.queue()),
            dim);
      case 20: return x.scatter_add(Tensor::full(x.dims(), 0, DType::I32, x.queue()), x, last < 0 ? 0 : last);
      default: return x.unfold(dim, std::min<int64_t>(2, x.dim(dim)), 1).sum({-1});
    }
  }

  uint64_t seed_;
};

}  // namespace gimbal::test
