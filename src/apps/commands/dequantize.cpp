// gimbal dequantize: raw blocks of a storage format to raw little-endian float32.
#include <algorithm>
#include <filesystem>
#include <vector>

#include "apps/commands/command.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "base/text.h"
#include "tensor/quant.h"

namespace gimbal {
namespace {

std::string decodable_types() {
  std::string all;
  for (DType t : kAllDTypes)
    if (can_decode(t)) all += (all.empty() ? "" : ", ") + std::string(info(t).name);
  return all;
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code e;
  return std::filesystem::equivalent(a, b, e) && !e;
}

class Dequantize final : public Command {
 public:
  void declare(Arguments& a) override {
    a.text("--type", "TYPE", "format of the blocks, such as q4_0 or Q4_K", type_);
    a.text("--input", "FILE", "raw blocks, as in a GGUF file: a file or pipe; -: stdin", input_);
    a.text("-o,--output", "FILE", "output: little-endian float32; -: stdout", output_);
  }

  Result<int> run() override {
    if (!type_ || !input_ || !output_)
      return Error{Code::Usage, "--type, --input and --output are all needed",
                   "for example: gimbal dequantize --type q4_0 --input blocks.bin --output values.f32"};
    const auto type = dtype_named(*type_);
    if (!type || !can_decode(*type))
      return Error{Code::Usage,
                   format("--type {} is not a format that can be converted to float32", printable(*type_)),
                   "these can: " + decodable_types()};
    auto read = read_text(*input_);
    if (!read) return read.error();
    const std::string& bytes = *read;
    const size_t tail = size_t(tensor_tail_bytes(*type)), block = info(*type).bytes;
    if (bytes.size() < tail || (bytes.size() - tail) % block)
      return Error{Code::Malformed,
                   format("{} has {} bytes; expected a multiple of {}, the bytes of one {} block{}",
                          gimbal::quoted(*input_), bytes.size(), block, info(*type).name,
                          tail ? format(", and {} more for the tensor's scale", tail) : ""),
                   ""};
    const int64_t count = int64_t((bytes.size() - tail) / block) * info(*type).block;
    auto out = BinaryOutput::open(output_, [&](const std::string& p) { return same_file(p, *input_); });
    if (!out) return out.error();
    const float scale = count ? tensor_scale(*type, bytes.data(), count) : 1;
    std::vector<float> values(size_t(info(*type).block) * 256);
    for (int64_t at = 0; at < count; at += int64_t(values.size())) {
      const int64_t n = std::min(count - at, int64_t(values.size()));
      decode(*type, bytes.data() + row_bytes(*type, at), n, values.data(), scale);
      if (auto ok = out->write(values.data(), size_t(n) * sizeof(float)); !ok) return ok.error();
    }
    if (auto ok = out->close(); !ok) return ok.error();
    if (json && *output_ != "-")
      print_json({{"type", info(*type).name}, {"values", count}, {"output", *output_}}, true);
    return kDone;
  }

 private:
  std::optional<std::string> type_, input_, output_;
};

}  // namespace

std::unique_ptr<Command> make_dequantize() { return std::make_unique<Dequantize>(); }

}  // namespace gimbal
