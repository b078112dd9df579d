// The plan of a model, made from the file's header alone: the programs, the kernel of every op, and every
// byte of memory, on each device that holds a stage of the model. Loading follows the plan, and nothing more
// is allocated afterwards.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "model/arch.h"
#include "model/state.h"
#include "program/partition.h"
#include "program/place.h"
#include "runtime/cache_rotation.h"
#include "runtime/disk_experts.h"
#include "runtime/tensor_rules.h"
#include "runtime/top_logits.h"

namespace gimbal {

class PackedFile;

// The default number of positions of a context: the model's own, at most 4096.
int default_context(const Config&);

// The most drafts in a step: with the token before them it has 16 rows.
inline constexpr int kMaxDrafts = 15;

struct ModelPlan;

struct RunOptions {
  int context = 0;     // positions per sequence; 0: the model's own, at most 4096
  int batch = 256;     // rows of a prompt computed at once
  int logit_rows = 1;  // most rows of a step that can request logits
  int drafts = 0;      // most drafts of a step (runtime/drafting.h), which get logits, too
  int sequences = 1;   // conversations held at once
  // Positions of KV cache for all sequences together; 0: a whole context for each. With fewer, a step fails
  // if no page is free (Code::OutOfMemory) and changes nothing.
  int64_t cache_positions = 0;
  DType cache_type = DType::F16;  // one of kCacheTypes (ops/op_def.h)
  CacheRotation cache_rotation = CacheRotation::Auto;
  KernelPreference kernels;
  int first_layers = 0;             // computes only this many layers, for tests; 0: all
  bool embeddings = false;          // rows may have embeddings instead of tokens
  bool hidden = false;              // allows Wants::hidden; always allowed for an encoder
  bool logits = true;               // allows Wants::logits and top; never for an encoder
  bool states = false;              // allows Batch::states, if the model has states
  std::vector<int> state_layers{};  // its states are the inputs of these layers
  bool keep_inputs = false;         // inputs of matrix products can be read after a step: Steps::watch_stages
  bool interruptible = false;       // a step of many rows can end between layers: Batch::go_on
  const ModelArch* arch = nullptr;  // instead of the file's architecture; outlives the plan and its model
  // Experts on the CPU are read from a packed file as they are chosen, and at most so many bytes of them are
  // in memory; 0: all weights are.
  uint64_t experts_from_disk = 0;
  std::vector<TensorRule> tensor_rules{};  // the first that a tensor matches decides
  // The plan of a model that will be loaded before this one: its memory is not free. Outlives this plan.
  const ModelPlan* beside = nullptr;
  // Bytes of free host memory that other processes will take.
  uint64_t promised = 0;
};

// Bytes on one device. Each of the first five is one buffer. `scratch`: additional memory of its programs.
// `sessions`: not device memory but host memory (memory_check.h).
struct MemoryPlan {
  uint64_t weights = 0, cache = 0, step = 0, activations = 0, output = 0;
  uint64_t scratch = 0, sessions = 0;
  uint64_t transfer = 0;  // the part of `step` and `output` for transfers between devices
  uint64_t free = 0;      // on the device for this model when the plan was made: free_for()
  uint64_t total() const { return weights + cache + step + activations + output + scratch + sessions; }
};

// One program per bucket of rows: 1, 2, 4, 8 ... and a whole batch, each with the best kernels for its size.
// A model with LoRA adapters has all of these without adapters, with each adapter alone, and with all. A step
// runs in the smallest bucket that holds its rows and has their adapters. Buckets share weights, caches and
// memory.
struct Bucket {
  int rows;
  AdapterSet adapters;  // that its rows may use
  Program program;
  std::vector<Choice> choices;                  // the kernel of every op, with reasons
  std::vector<StepInput> inputs;                // at the same offsets in every stage
  uint64_t step_bytes = 0;                      // of the step's own data; transferred values follow
  uint64_t output_bytes = 0;                    // of the model's outputs; likewise
  std::optional<Value> outputs[kOutputs] = {};  // in the last stage
  std::vector<StagePart> parts{};               // of the program, by rising turn
  std::vector<PartExperts> experts{};           // by part; empty: all experts are in memory
  std::vector<int> rules{};  // of every op: the rule that moved it here; -1: none. Empty: none did
};

// The requested layers of one device. In a list, the first entry also has the embedding table, and the last
// the output head; either may have 0 layers.
struct Placement {
  const Device* device;  // outlives the plan and its model
  int layers;
  std::string why;  // for people; may be empty
};

// Consecutive layers on one device, or tensors that rules place there.
struct Stage {
  const Device* device;  // outlives the plan
  int first_layer = 0, layers = 0;
  bool embedding = false, head = false;  // holds the embedding table; the output norm and head
  int moved_in = 0, moved_out = 0;       // tensors that rules bring here, and take from its layers
  std::string why = {};
  std::vector<Bucket> buckets = {};  // by rising rows
  MemoryPlan memory = {};
  std::vector<TopLogitsProgram> top = {};         // by rising k; with the output head only
  std::shared_ptr<const PackedFile> packed = {};  // its packed weights: packed_weights.h
  DiskExperts experts = {};                       // that are read from them as they are chosen
  bool reads_experts() const { return !experts.groups.empty(); }
};
std::string contents(const Stage&);  // "the embedding and layers 0 to 3"
// Has layers, or one of the two ends; no: it is there for rules only.
inline bool has_layers(const Stage& s) { return s.layers || s.embedding || s.head; }

struct ModelPlan {
  std::string source;  // names the file in errors: escaped
  Config config;
  RunOptions options;            // context filled in
  RotationChoice rotation;       // of queries, keys and values for the cache
  std::vector<StatePool> pools;  // the state of sequences
  // In the order of their layers; before them those that are there for rules. At least one. A step passes
  // their parts by rising turn.
  std::vector<Stage> stages;
  std::vector<float> adapters{};  // the scales of sequences that have none of their own, by LoRA adapter
  // Rows attend to later ones of their sequence, so a step must have all rows of it.
  bool whole_texts = false;
  // Each row has a token and also a state of this many numbers, in Row::state; 0: it has none.
  int takes_states = 0;
  // Each row is a patch of a picture, in Row::patch.
  bool takes_patches = false;
  int embedding_parts = 1;  // of the model's width each: see Recorder::add_embedded()
  uint64_t file_bytes = 0;  // of all parts of the model's file

  AdapterSet all_adapters() const { return (AdapterSet(1) << adapters.size()) - 1; }
  bool split() const { return stages.size() > 1; }
  // The bucket for a step of `rows` rows with these adapters.
  size_t bucket_for(int rows, AdapterSet) const;
  size_t bucket_for(int rows) const { return bucket_for(rows, applied(adapters)); }
  // The width of embeddings that may replace tokens; 0: not allowed.
  int embedding_width() const { return options.embeddings ? config.width * embedding_parts : 0; }
  // The buckets to show, of those with the adapters that are applied at the start: the first, and of the
  // others the largest of each run with the same kernels.
  std::vector<size_t> distinct_buckets() const;
  // Where the output head is; of an undivided model, where everything is.
  const Stage& last() const { return stages.back(); }
  const Device& device() const { return *last().device; }
  int width(Output) const;  // numbers per row; 0: the model has no such output
  int max_top() const { return last().top.empty() ? 0 : last().top.back().k; }  // see Batch::top
  // Checks that a new sequence can hold this many tokens. Errors: Usage, with the option.
  Status check_text(size_t tokens) const;
  // The largest page of any state, if sequences can share pages. Copies pass through a buffer of this size.
  uint64_t page_bytes() const;

  // Host memory of all steps: their data for every stage, the results, the table of pages, and approximately
  // the devices' copies of the programs.
  uint64_t steps_bytes() const;
  // Of each conversation: tokens, pages, a batch, and the sampler's memory.
  uint64_t session_bytes() const;
  uint64_t host_bytes() const { return steps_bytes() + uint64_t(options.sequences) * session_bytes(); }
};

// The whole model on one device. Errors: those of configure(); Unsupported ops or formats; Usage for options
// out of range.
Result<ModelPlan> make_model_plan(const ModelSource& file, const Device& device, const RunOptions& options);
// The same with the layers divided over a list of devices, in order; a device may occur more than once. Inner
// entries with 0 layers are dropped. RunOptions::tensor_rules move tensors from there. Errors: also Usage if
// the layers do not add up to the model's, and for a rule that cannot be followed; Unsupported for adapters
// of a weight that two devices would hold.
Result<ModelPlan> make_model_plan(const ModelSource& file, std::span<const Placement> where,
                                  const RunOptions& options);

}  // namespace gimbal
