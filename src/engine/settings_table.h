// The settings of devices and models, each described once. Range check, command line, configuration file and
// the wording of errors read this table; tests compare it with the public structs.
//
// A new setting is a member of DeviceSettings or ModelOptions (include/gimbal/settings.h), a line here, and
// its use (engine/settings.cpp hands it to the engine).
#pragma once
#include <gimbal/settings.h>

#include <string_view>
#include <variant>

namespace gimbal {

struct EngineSetting {
  using Member =
      std::variant<bool DeviceSettings::*, std::string DeviceSettings::*,
                   std::optional<int> DeviceSettings::*, std::optional<std::string> DeviceSettings::*,
                   std::vector<std::string> DeviceSettings::*, std::vector<DeviceLayers> DeviceSettings::*,
                   Numerics DeviceSettings::*, Verify DeviceSettings::*, Packed DeviceSettings::*,
                   bool ModelOptions::*, int ModelOptions::*, float ModelOptions::*,
                   std::string ModelOptions::*, std::vector<LoraAdapter> ModelOptions::*>;
  const char* field;  // the member's name: in errors and bindings
  Member member;
  int low = 0, high = 0;        // of whole numbers; the default is always allowed
  const char* words = nullptr;  // of texts and enumerations, in the order of their values: "auto|on|off"
  bool list = false;            // of several texts: one option with commas, instead of repeated options
  bool of_model = false;        // only for commands that plan or load a model
  // Of the command line; option nullptr: none
  const char* option = nullptr;
  const char* value = "";
  const char* help = "";
};

// In the order of --help.
inline constexpr EngineSetting kEngineSettings[] = {
    {.field = "backend",
     .member = &DeviceSettings::backend,
     .option = "--backend,--gpu-backend",
     .help = "backend to use; if it is not available, the next best is used, with a note"},
    {.field = "device",
     .member = &DeviceSettings::device,
     .low = 0,
     .high = 1023,
     .option = "--device",
     .value = "N",
     .help = "device of the backend, from 0 (default: the best; `gimbal backends` lists them)"},
    {.field = "gpu_layers",
     .member = &DeviceSettings::gpu_layers,
     .low = -1,
     .high = 100000,
     .option = "--gpu-layers",
     .value = "N",
     .help = "layers on the GPU, from the last one on; -1: as many as fit (default); 0: none"},
    {.field = "split",
     .member = &DeviceSettings::split,
     .list = true,
     .of_model = true,
     .option = "--split",
     .value = "LIST",
     .help = "layers by device, in order: cpu=4,cuda:0=20,cuda:1=rest"},
    {.field = "cpu_moe",
     .member = &DeviceSettings::cpu_moe,
     .of_model = true,
     .option = "--cpu-moe",
     .help = "experts on the CPU, the rest of their layers on the GPU"},
    {.field = "n_cpu_moe",
     .member = &DeviceSettings::n_cpu_moe,
     .low = 0,
     .high = 100000,
     .of_model = true,
     .option = "--n-cpu-moe",
     .value = "N",
     .help = "the same for the experts of the first N layers"},
    {.field = "override_tensor",
     .member = &DeviceSettings::override_tensor,
     .of_model = true,
     .option = "--override-tensor",
     .value = "PATTERN=DEVICE",
     .help = "tensors of these names on a device of their own: 'ffn_.*_exps=cpu'; repeatable, or with commas "
             "between; the first that is found decides"},
    {.field = "strict",
     .member = &DeviceSettings::strict,
     .option = "--strict",
     .help = "fail instead of any fallback (device, layer or kernel)"},
    {.field = "prefer_kernel",
     .member = &DeviceSettings::prefer_kernel,
     .option = "--prefer-kernel",
     .value = "PATTERN",
     .help = "kernels to prefer, such as 'cpu.avx2.*'; repeatable, most wanted first"},
    {.field = "allow_software_devices",
     .member = &DeviceSettings::allow_software_devices,
     .option = "--allow-software-devices",
     .help = "allow software devices (a GPU emulated on the CPU); the CPU still comes first"},
    {.field = "backend_order",
     .member = &DeviceSettings::backend_order,
     .list = true,
     .option = "--backend-order",
     .value = "LIST",
     .help = "backends that automatic choice tries first: vulkan,cuda; the others follow"},
    {.field = "numerics",
     .member = &DeviceSettings::numerics,
     .words = "exact|fast",
     .option = "--numerics",
     .help = "exact (default): the same bits with any thread count and batch size; fast: allow kernels that "
             "differ"},
    {.field = "threads",
     .member = &DeviceSettings::threads,
     .low = 1,
     .high = 1024,
     .option = "-t,--threads",
     .value = "N",
     .help = "CPU threads (default: one per physical core)"},
    {.field = "cpu_variant",
     .member = &DeviceSettings::cpu_variant,
     .option = "--cpu-variant",
     .value = "NAME",
     .help = "force an instruction set: baseline, avx2, avxvnni, avx512, avx512vnni"},
    {.field = "refresh", .member = &DeviceSettings::refresh},
    {.field = "context",
     .member = &ModelOptions::context,
     .low = 1,
     .high = 1 << 24,
     .of_model = true,
     .option = "--ctx",
     .value = "N",
     .help = "context length in tokens (default: the model's own, at most 4096)"},
    {.field = "batch",
     .member = &ModelOptions::batch,
     .low = 1,
     .high = 65536,
     .of_model = true,
     .option = "--batch",
     .value = "N",
     .help = "tokens of a prompt computed at once (default 256)"},
    {.field = "sequences", .member = &ModelOptions::sequences, .low = 1, .high = 65536, .of_model = true},
    {.field = "logit_rows", .member = &ModelOptions::logit_rows, .low = 1, .high = 65536, .of_model = true},
    {.field = "verify",
     .member = &DeviceSettings::verify,
     .words = "auto|always|never",
     .of_model = true,
     .option = "--verify",
     .help =
         "check kernels and model against references: auto (default): at the first use on a device; always; "
         "never"},
    {.field = "packed",
     .member = &DeviceSettings::packed,
     .words = "auto|on|off",
     .of_model = true,
     .option = "--packed",
     .help = "weights that `gimbal pack` wrote: auto (default): used if present; on: if absent, a note, or "
             "with --strict an error; off"},
    {.field = "kernel_config",
     .member = &ModelOptions::kernel_config,
     .of_model = true,
     .option = "--kernel-config",
     .value = "FILE",
     .help = "weight layout of a BitNet file in tl1, tl2 or i2_s: a kernel_config.ini, default, preset, "
             "i2_s-64 or i2_s-4x1"},
    {.field = "experts_from_disk",
     .member = &ModelOptions::experts_from_disk,
     .of_model = true,
     .option = "--experts-from-disk",
     .value = "SIZE",
     .help =
         "for mixtures larger than memory: read experts from the file of `gimbal pack` as they are chosen, "
         "with so much memory for those used last, such as 6GB"},
    {.field = "lora",
     .member = &ModelOptions::lora,
     .of_model = true,
     .option = "--lora",
     .value = "FILE[:SCALE]",
     .help = "a LoRA adapter (GGUF) for the model, and how strongly it acts (default 1; 0: only for requests "
             "that ask for it); repeat for several"},
    {.field = "cache_type",
     .member = &ModelOptions::cache_type,
     .words = "f32|f16|bf16|q8_0|q5_0|q4_1|q4_0|iq4_nl",
     .of_model = true,
     .option = "--kv-type",
     .help = "format of the KV cache"},
    {.field = "cache_rotation",
     .member = &ModelOptions::cache_rotation,
     .words = "auto|on|off",
     .of_model = true,
     .option = "--kv-rotation",
     .help =
         "rotation of queries, keys and values before a quantized KV cache rounds them; auto: in q5_0 and "
         "iq4_nl"},
    {.field = "chat_template",
     .member = &ModelOptions::chat_template,
     .of_model = true,
     .option = "--chat-template",
     .value = "NAME|FILE",
     .help = "the chat template in place of the file's: chatml, llama3, gemma, mistral, phi3, command-r, "
             "granite, "
             "or a file with a Jinja template"},
    {.field = "rope_scaling",
     .member = &ModelOptions::rope_scaling,
     .words = "file|none|linear|yarn",
     .of_model = true,
     .option = "--rope-scaling",
     .help = "how rotary positions are scaled for long contexts; this and the next six replace what the file "
             "says"},
    {.field = "rope_freq_base",
     .member = &ModelOptions::rope_freq_base,
     .of_model = true,
     .option = "--rope-freq-base",
     .value = "X",
     .help = "base of the frequencies of rotary positions"},
    {.field = "rope_freq_scale",
     .member = &ModelOptions::rope_freq_scale,
     .of_model = true,
     .option = "--rope-freq-scale",
     .value = "X",
     .help = "multiplies the frequencies: 0.25 for a context four times as long as the trained one"},
    {.field = "yarn_original_context",
     .member = &ModelOptions::yarn_original_context,
     .low = 1,
     .high = 1 << 24,
     .of_model = true,
     .option = "--yarn-orig-ctx",
     .value = "N",
     .help = "YaRN: the context that the model was trained on before it was scaled"},
    {.field = "yarn_beta_fast",
     .member = &ModelOptions::yarn_beta_fast,
     .of_model = true,
     .option = "--yarn-beta-fast",
     .value = "X",
     .help = "YaRN: pairs that turn more often than this within that context keep their frequency"},
    {.field = "yarn_beta_slow",
     .member = &ModelOptions::yarn_beta_slow,
     .of_model = true,
     .option = "--yarn-beta-slow",
     .value = "X",
     .help = "YaRN: pairs that turn less often than this are scaled whole"},
    {.field = "yarn_attn_factor",
     .member = &ModelOptions::yarn_attn_factor,
     .of_model = true,
     .option = "--yarn-attn-factor",
     .value = "X",
     .help = "YaRN: multiplies the magnitude of the rotation"},
    // Options of the commands that have them: their words differ a little.
    {.field = "draft", .member = &ModelOptions::draft, .of_model = true},
    {.field = "mmproj", .member = &ModelOptions::mmproj, .of_model = true},
    {.field = "embed", .member = &ModelOptions::embed, .of_model = true},
};

// The line of a setting; its name is one of the table's.
consteval const EngineSetting& engine_setting(std::string_view field) {
  for (const EngineSetting& s : kEngineSettings)
    if (s.field == field) return s;
  return *std::end(kEngineSettings);  // not a constant: does not compile
}

}  // namespace gimbal
