// The architectures: a row in archs.def each, and a few lines in arch/.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "files/model_source.h"
#include "model/config.h"
#include "model/lora.h"
#include "model/rope.h"
#include "model/state.h"
#include "model/step.h"
#include "program/builder.h"

namespace gimbal {

// The purpose of a recording: its sizes, and the outputs that may be requested.
struct RecordOptions {
  int rows = 1;                 // of one step
  int batch = 1;                // the most rows of any step
  int sequences = 1;            // sequences with state
  int context = 1;              // positions of each
  int64_t cache_positions = 1;  // of all together, in pools that keep all positions
  DType cache_type = DType::F16;
  bool rotate = false;      // queries, keys and values, for the cache: arch/blocks.h
  bool embeddings = false;  // the rows are given as embeddings, not as tokens
  bool hidden = false;      // Output::Hidden can be requested
  bool logits = true;       // Output::Logits can be requested
  bool marks = false;       // Sequence::mark() is used
  bool states = false;      // Output::States can be requested
  AdapterSet adapters = 0;  // of the file that rows may use
  // Output::States is the inputs of these layers, one behind the other, for a draft head
  // (model/draft_head.h). The number behind the last layer: the model's result.
  std::vector<int> state_layers{};
};

// Records a model's forward pass. Returns weights by their name in the file. The pass declares everything
// else where it uses it: inputs of a step, state of sequences, outputs. Two calls for the same thing return
// the same value.
class Recorder {
 public:
  Recorder(ProgramBuilder& builder, const ModelSource& file, const Config& config,
           const RecordOptions& options)
      : p(builder), config(config), options(options), hyper(file.metadata(), config.arch), file_(file) {
    hyper.layers(config.layers + config.left_out);
    layer_states_.resize(options.state_layers.size());
  }

  ProgramBuilder& p;
  const Config& config;
  const RecordOptions options;
  Hyperparameters hyper;
  const Metadata& metadata() const { return file_.metadata(); }

  // ---- weights. Names are taken from the current layer on: inside layer(3), "attn_q.weight" is
  // "blk.3.attn_q.weight".
  // `stack`: before the name, of files with several stacks of layers: "enc." makes it
  // "enc.blk.3.attn_q.weight".
  void layer(int index, const char* stack = "");
  // Of a decoder, with the layer's input x [d, R], which RecordOptions::state_layers may ask for.
  void layer(int index, Value x);
  // The model's result for all rows, which state_layers may ask for as well.
  void result(Value x);
  bool asks_for_result() const;
  void no_layer();
  int current_layer() const { return layer_; }
  bool has(const std::string& name) const;
  int rows(const std::string& name) const;  // of a matrix in the file; 0: absent
  Value matrix(const std::string& name, int columns, int rows);
  // Rows [first, first + rows) of a tensor that has `all` of them. The recording must use all rows.
  Value matrix_rows(const std::string& name, int columns, int first, int rows, int all);
  // One matrix of a tensor that holds `experts` of them.
  Value expert(const std::string& name, int columns, int rows, int index, int experts);
  // All experts as one weight, their rows in order of expert: ProgramBuilder::expert_linear.
  Value experts(const std::string& name, int columns, int rows, int experts);
  Value vector(const std::string& name, int size);
  // The product of x with rows [first, first + rows) of `<name>.weight`, which has `all` of them, plus the
  // products of the model's adapters (model/lora.h). Returns [rows, R].
  Value product(const std::string& name, int first, int rows, int all, Value x,
                std::optional<Value> bias = {});
  // With one matrix of a tensor that holds `all` of them; likewise.
  Value one_product(const std::string& name, int rows, int index, int all, Value x,
                    std::optional<Value> bias = {});
  // Row `index` of a tensor of `all` rows, whatever its dimensions after the first one. f32[columns]
  Value row(const std::string& name, int columns, int index, int all);
  // The product of each head of x [hd, heads, R] with its part of a tensor of hd * heads values. [1, heads,
  // R]
  Value head_product(const std::string& name, Value x);
  // As ProgramBuilder::expert_linear with experts(); likewise.
  Value expert_product(const std::string& name, int rows, int experts, Value x, std::optional<Value> routes,
                       std::optional<Value> bias = {});
  // The values of a small f32 tensor [columns, rows] or [columns, 1, rows], contiguous: taps, norms by head.
  Value table(const std::string& name, int columns, int rows);
  std::optional<Value> optional_vector(const std::string& name, int size);
  // The value of a tensor with one element, read now: it becomes a constant of the program.
  std::optional<float> optional_number(const std::string& name);
  // All values of a small matrix, read now; of a wrong one, zeros.
  std::vector<float> read_values(const std::string& name, int columns, int rows);
  // Marks a tensor of the file as deliberately unused.
  void leave_out(const std::string& name);
  // Requires the use of this layer's tensors only, when recording a part of the file's model.
  void only_layer(int index) { only_ = index; }

  // ---- inputs of a step; R = its rows
  // Of all rows, or of those with results (O in place of R).
  Value tokens(StepRows = StepRows::All);     // i32[R]
  Value positions(StepRows = StepRows::All);  // i32[R]
  Value sequences(StepRows = StepRows::All);  // i32[R]: the column of pages()
  Value pages(size_t pool);                   // i32[table, sequences of the step]
  // i32[2, R]: the first and the last position that a row attends to: up to its own, at most `before`
  // before it (-1: all); or up to its sequence's last one, at most `after` after it. A row and the later
  // rows that it attends to must be in one step: such a model computes whole texts (sees_later()).
  Value seen(int before);
  Value seen_both(int before, int after);
  // As seen(), and each row of a picture whose rows see each other (StepRow::sees_to) attends to all of them.
  Value seen_in_pictures(int before);
  // f32[rotated, R]: cos, sin per pair
  Value rope(const RopeAngles&, const std::string& name = "rope", StepRows = StepRows::All);
  // Angles made here, for this context; the name distinguishes several tables of a model.
  Value rope(const RopeSettings&, const std::string& name = "rope", StepRows = StepRows::All);
  // i32[O]: the rows with results; or those `offset` rows behind them, for encoders that join rows.
  Value wanted_rows(int offset = 0);
  // An input of the architecture's own: `width` values per row.
  Value row_input(const std::string& name, DType type, int width,
                  std::function<void(const StepRow&, std::byte* to)> fill, StepRows of = StepRows::All);
  // Numbers that are the same in every step and in no file: f32[size].
  Value constant(const std::string& name, std::vector<float> values);
  // Likewise, of the row's patch: for encoders of pictures.
  Value patch_input(const std::string& name, DType type, int width,
                    std::function<void(const PatchRow&, std::byte* to)> fill);
  // The rows' embeddings: looked up in `table`, times `scale`; or given instead of a token. f32[width, R]
  Value embedded(Value table, float scale = 1);
  // Adds to `x` the values of embeddings that follow those of embedded(), `width` of them at a time with each
  // call, as a picture's for the outputs of the first layers (Qwen3-VL). Rows of tokens stay as they are.
  Value add_embedded(Value x);
  int embedding_parts() const { return embedding_parts_; }
  // Given for each row with its token: the previous row's state in another model. f32[width, R]
  Value states();
  // The same in two parts, of which a row has one (StepRow::own_state): the state in the other model, zeros
  // for rows with the other part; and this model's own state, -0 for rows with the other part. f32[..., R]
  Value target_states(int width);
  Value own_states();

  // ---- the state of sequences Positions in pages; `window`: number of positions that a row attends to, 0:
  // all.
  size_t paged(int window = 0);
  size_t recurrent();  // one page per sequence
  Value keys(const std::string& name, size_t pool, int head_dim, int heads);
  Value values(const std::string& name, size_t pool, int head_dim, int heads);
  // Keys of one head that are not quantized.
  Value plain_keys(const std::string& name, size_t pool, int head_dim);
  // One value of this shape per page of the pool.
  Value state(const std::string& name, size_t pool, Shape page);

  // ---- outputs: of the rows in wanted_rows()
  void output(Output, Value);
  bool wants(Output o) const {
    return o == Output::Logits   ? options.logits
           : o == Output::Hidden ? options.hidden
                                 : options.states && options.state_layers.empty();
  }

  // The first invalid number; or the first weight that is missing, has another shape than the
  // hyperparameters require, or was left unused by the architecture.
  std::optional<Error> error() const;
  // A number or a weight was invalid; ignore everything recorded after it.
  bool failed() const { return error_ || hyper.error(); }

  // ---- the declarations
  const std::vector<StepInput>& inputs() const { return inputs_; }
  const std::vector<StatePool>& pools() const { return pools_; }
  bool sees_later() const { return sees_later_; }        // some row attends to later ones of its sequence
  int state_width() const { return state_width_; }       // of states() or target_states(); 0: neither
  bool takes_patches() const { return takes_patches_; }  // patch_input() was called
  std::optional<Value> output(Output o) const { return outputs_[size_t(o)]; }
  // Puts the outputs where the host reads them, the logits first. After the last op.
  void finish();

 private:
  struct Dims {
    int columns, rows, experts;
  };
  const StoredTensor* stored(const std::string& name) const;  // of the current layer; nullptr: none
  const StoredTensor* find(const std::string& name, Dims);
  Value part(const std::string& name, Dims, int64_t first, int rows, int64_t expert);
  std::optional<Value> declared(const std::string& name) const;
  Value declare(StepInput input);
  Value given(const std::string& name, int part);  // of embeddings; -0 for tokens. f32[width, R]
  // Finds the weights A and B of an adapter, and records B (A x).
  using FindPair =
      std::function<std::pair<Value, Value>(const std::string& a, int rank, const std::string& b)>;
  using LowRank = std::function<Value(Value a, int rank, Value b)>;
  Value adapted(const std::string& name, Value y, const FindPair& find, const LowRank& low_rank);
  Value adapter_factor(size_t adapter, int rank);  // f32[1, R]
  size_t pool(StateKind kind, int window);
  void fail(Code, const std::string& message);

  const ModelSource& file_;
  std::string prefix_;
  int layer_ = 0;
  std::map<std::string_view, std::map<int64_t, int64_t>> used_;  // tensors: first row, number of used rows
  std::vector<StepInput> inputs_;
  std::vector<StatePool> pools_;
  std::optional<Value> outputs_[kOutputs];
  bool sees_later_ = false, takes_patches_ = false;
  int state_width_ = 0;
  std::vector<std::optional<Value>> layer_states_;  // by RecordOptions::state_layers
  int embedding_parts_ = 1;                         // of `width` values each
  std::optional<int> only_;
  std::optional<Error> error_;
};

// Reads heads and rotation.
Status configure_attention(const Metadata&, const TensorTable&, Config&);
// The same; the last nextn_predict_layers layers, which guess further tokens, are left out.
Status configure_without_nextn(const Metadata&, const TensorTable&, Config&);

struct ModelArch {
  const char* name;  // general.architecture
  void (*record)(Recorder&);
  // Reads its own fields of Config.
  Status (*configure)(const Metadata&, const TensorTable&, Config&) = configure_attention;
  bool encoder = false;  // has Output::Hidden only, and always: it embeds texts and continues none
  // The first of the layers that guess further tokens, as a model of its own (arch/nextn.h).
  const ModelArch* nextn = nullptr;
  bool patches = false;  // its rows are patches of a picture (model/vision), and it has no vocabulary
};

// nullptr if this version does not know the architecture.
const ModelArch* find_arch(const std::string& name);
// Of a draft head (model/draft_head.h), which runs beside another model only; nullptr: it is none.
const ModelArch* find_draft_head(const std::string& name);

// The architecture of the file's layers for multi-token prediction; nullptr: it has none, or this version
// does not compute them.
const ModelArch* nextn_of(const ModelSource& file);

// Whether the file's model gives logits, as all that generate text do. Errors: Usage for an encoder.
Status check_generates(const ModelSource& file);
constexpr int kRankPooling = 4;  // "pooling_type" of rerankers

// Reads the hyperparameters, including the architecture's own. Errors: Unsupported architecture (lists the
// supported ones, and the nearest name), Malformed. `arch`: instead of the file's.
Result<Config> configure(const Metadata&, const TensorTable&, const ModelArch* arch = nullptr);
inline Result<Config> configure(const ModelSource& file, const ModelArch* arch = nullptr) {
  return configure(file.metadata(), file.tensors(), arch);
}

}  // namespace gimbal
