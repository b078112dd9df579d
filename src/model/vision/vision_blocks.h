// The parts of encoders of pictures. R: the patches of a step, in the order of patches.h; O: the rows of the
// text model.
#pragma once
#include <span>

#include "model/arch/blocks.h"
#include "model/vision/vision_arch.h"

namespace gimbal::vision {

// The patches times the kernel, with bias and position: [width, R].
Value patches(Recorder&);
// The parts of it, for encoders that norm them apart. The pixels: [3 * patch * patch, R].
Value pixels(Recorder&);
Value times_kernel(Recorder&, Value pixels);  // and VisionArch::own_bias
Value positions(Recorder&);                   // bias and position: [width, R]
Value seen_in_window(Recorder&);              // i32[2, R]: the rows of the patch's window

// The common settings and values of an encoder's blocks.
struct Blocks {
  enum class Norm { Layer, Rms } norm = Norm::Layer;
  bool gated = false;             // ffn_gate with silu
  bool exact = false;             // the exact gelu, whatever the file says
  std::optional<Value> angles{};  // of a rotation of q and k
  RopePairs pairs = RopePairs::Halves;
  // Keys and values of the block at work: blocks follow each other, so all use the same memory.
  size_t pool = 0;
  Value keys{}, values{};
  Value all{}, window{};  // the rows that a row sees
};
// With memory for keys and values.
Blocks blocks(Recorder&, Blocks = {});
// Block `i`, with the names of files: x += ls1 * attention(ln1 x); x += ls2 * mlp(ln2 x). Heads of q and k
// are normed if the file says how.
Value block(Recorder&, const Blocks&, int i, Value x, bool in_window = false);
Value all_blocks(Recorder&, const Blocks&, Value x);
// Writes keys and values and attends to the rows that `a.seen` names: [heads * head_dim, R].
Value attended(Recorder&, const Blocks&, const arch::Attention& a, const arch::Heads&);

// Angles of a patch's line and column. Qwen: the lower half of the pairs turns by the line, the upper half by
// the column, by the same frequencies. ColumnFirst: the other way round. Pixtral: frequencies of even numbers
// by the line, of odd ones by the column.
enum class PatchAngles : uint8_t { Qwen, ColumnFirst, Pixtral };
Value patch_angles(Recorder&, PatchAngles, double base = 10000);

// By clip.use_gelu and clip.use_silu; neither: x * sigmoid(1.702 x).
Value activated(Recorder&, Value x);
Value norm_by(Recorder&, Blocks::Norm, const std::string& name, Value x);
// `<name>.weight` [d, any number of rows] times x; `<name>.bias` if the file has it.
Value product(Recorder&, const std::string& name, Value x);
// Two products with an activation between them, by default that of activated().
Value two_products(Recorder&, const std::string& first, const std::string& second, Value x,
                   std::optional<OpKind> activation = {});
Value joined_values(Recorder&, Value a, Value b);  // of each row, beside each other

// ---- from patches to rows, each made of `n` patches that follow each other
int patches_per_row(Recorder&);
Value joined(Recorder&, Value x, int n);  // [n * d, O]
Value mean(Recorder&, Value x, int n);    // [d, O]
// The mean, and the joined values, of these.
Value mean_of(Recorder&, std::span<const Value>);
Value joined_of(Recorder&, std::span<const Value>);

}  // namespace gimbal::vision
