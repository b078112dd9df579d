// Where models run and how they are loaded. The library and the command line use these structs themselves, so
// a program has the same settings with the same defaults. Errors name a member in Error::field.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace gimbal::v1 {

// When kernels are compared with a double-precision reference, and a model with itself and the CPU.
enum class Verify {
  Auto,    // at the first use of a device, and of a model there
  Always,  // at each loading
  Never,
};

// Use of weights that `gimbal pack` stored in a device's layout.
enum class Packed {
  Auto,  // if there are any that fit
  On,    // required: a fallback is reported if there are none
  Off,
};

enum class Numerics {
  Exact,  // every kernel sums in the reference order: the same bits on every exact device
  Fast,   // allow kernels that do not sum in the reference order; results may differ in the last bits
};

// Consecutive layers of a model for one device.
struct DeviceLayers {
  std::string device;  // "cuda:1"; "cuda" is "cuda:0"
  int layers = -1;     // -1: the remaining ones; for one entry of a list
};

// A LoRA adapter in GGUF; `scale` multiplies its product. 0: it is loaded, and applied to texts that give it
// another scale (TextOptions::adapters).
struct LoraAdapter {
  std::string path;
  float scale = 1;
};

// The choice of devices and kernels.
struct DeviceSettings {
  std::string backend = "auto";     // or the name of one: "cpu", "cuda", "vulkan", ... (backends())
  std::optional<int> device;        // its number on the backend, from 0; none: the best
  std::optional<int> gpu_layers;    // on the GPU, from the last one on; none or -1: as many as fit
  std::vector<DeviceLayers> split;  // layers by device, first layer first, in place of the three above
  // Experts on the CPU, the rest of their layers where it is: of all layers, or of the first so many.
  bool cpu_moe = false;
  std::optional<int> n_cpu_moe;
  // "PATTERN=DEVICE": tensors in whose names the pattern is found, and the ops that read them, are on that
  // device in place of their layer's. A pattern is a POSIX extended regular expression; the first one that is
  // found decides. These come before the two above.
  std::vector<std::string> override_tensor;
  bool strict = false;                     // fail instead of any fallback (device, layer or kernel)
  std::vector<std::string> prefer_kernel;  // patterns of kernel names, most wanted first: "cpu.avx2.*"
  bool allow_software_devices = false;     // allow devices that emulate a GPU on the CPU
  std::vector<std::string> backend_order;  // that automatic choice tries first; the others follow
  Numerics numerics = Numerics::Exact;
  std::optional<int> threads;              // of the CPU; none: one per physical core
  std::optional<std::string> cpu_variant;  // an instruction set: "baseline", "avx2", ...; none: the best
  bool refresh = false;                    // ask every driver again instead of using the probe cache
  Verify verify = Verify::Auto;
  Packed packed = Packed::Auto;
};

// The memory of one model, and the files that belong to it.
struct ModelOptions {
  int context = 0;    // positions of each sequence; 0: the model's own, at most 4096
  int batch = 0;      // prompt tokens computed at once; 0: 256, or for `embed` the context, at most 2048
  int sequences = 1;  // kept at once: Sequence objects, or texts that a Batch runs at the same time
  // Rows of a step that give logits: for a prompt whose log-probabilities are wanted. They cost memory of the
  // device, a vocabulary of floats each. 0: one for each sequence.
  int logit_rows = 0;
  // Format of the KV cache: f32, f16, bf16, q8_0, q5_0, q4_1, q4_0, iq4_nl. The quantized ones need a head
  // size that is a multiple of 32.
  std::string cache_type = "f16";
  // "auto", "on", "off": whether queries, keys and values are rotated before a quantized cache rounds them,
  // which keeps more of their accuracy. "auto": in q5_0 and iq4_nl. q8_0 gains little, some models lose by it
  // in q4_1, and q4_0, which is older than the rotation, keeps its bits. "on" with a format that is not
  // quantized is an error (Usage).
  std::string cache_rotation = "auto";
  // Layout of the weights of a BitNet file in TL1, TL2 or I2_S, which the file does not record: the path of a
  // kernel_config.ini, or "default", "preset", "i2_s-64", "i2_s-4x1". Empty: as in published models; other
  // files are refused.
  std::string kernel_config;
  // For mixtures of experts that are larger than memory: experts on the CPU stay in the file that `gimbal
  // pack` wrote, and are read as they are chosen; so much memory has those chosen last ("6GB", "500MiB"). The
  // same bits as in memory. Empty: all weights are in memory.
  std::string experts_from_disk;
  std::vector<LoraAdapter> lora;  // at most 16; each adds its product to the model's
  // Speculative decoding. Drafts change the speed and never the text: "ngram" (from the text itself), "mtp"
  // (the file's layers for multi-token prediction), "auto" ("mtp" if the file has such layers, else "ngram"),
  // or a smaller model with the same vocabulary. Empty or "off": none.
  std::string draft;
  // The projector file (mmproj) of the model, which then takes pictures (Message::images). Its encoder needs
  // memory of its own. Empty: texts only.
  std::string mmproj;
  bool embed = false;  // load for embeddings only
  // In place of the chat template of the file: the text of a Jinja template, the path of a file with one, or
  // the name of a form: "chatml", "llama3", "gemma", "mistral", "phi3", "command-r", "granite". Empty: the
  // file's.
  std::string chat_template;
  // In place of the file's settings of rotary positions; "file" and 0: as the file says. Refused for a model
  // without rotary positions.
  std::string rope_scaling = "file";  // "file", "none", "linear", "yarn"
  float rope_freq_base = 0;           // of the frequencies: 10000 in most models
  float rope_freq_scale = 0;          // multiplies the frequencies: 0.25 for a context four times as long
  int yarn_original_context = 0;      // positions that the model was trained on before it was scaled
  float yarn_beta_fast = 0, yarn_beta_slow = 0;  // turns within them, between which YaRN mixes
  float yarn_attn_factor = 0;                    // multiplies the magnitude of the rotation
};

// A model in six fields, for programs that keep lists of models. Devices are the engine's matter.
struct ModelSpec {
  std::string name;              // for people; empty: the file's
  std::string base_path;         // what Engine::load() takes as `model`
  std::string lora_path;         // an adapter; empty: none
  std::string chat_template;     // as in ModelOptions
  int ctx_len = 0;               // positions of each sequence; 0: as in ModelOptions
  std::optional<int> n_threads;  // of the CPU; none: the engine's
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
