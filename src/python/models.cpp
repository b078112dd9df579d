// Engines and models: loading, plans, tokens, embeddings and logits. Options and reports are JSON texts;
// python/gimbal gives them names and classes.
#include <gimbal/pull.h>

#include <atomic>
#include <thread>

#include "python/handles.h"

namespace gimbal::python {
namespace {

// Reports events to a function of Python, and Ctrl-C to the library.
class Watcher {
 public:
  explicit Watcher(PyObject* callable) : callable_(callable == Py_None ? nullptr : Py_NewRef(callable)) {}
  ~Watcher() {
    if (!callable_ || !Py_IsInitialized()) return;
    const Locked locked;
    Py_DECREF(callable_);
  }
  Watcher(const Watcher&) = delete;

  // False: an exception is set aside, and the work is to stop.
  bool on(const char* kind, const std::string& what, const std::string& instead, const std::string& text,
          uint64_t done, uint64_t total) {
    const Locked locked;
    Ref answer;
    if (callable_)
      answer =
          Ref(PyObject_CallFunction(callable_, "sNNNKK", kind, text_object(what), text_object(instead),
                                    text_object(text), (unsigned long long)done, (unsigned long long)total));
    if ((!callable_ || answer) && PyErr_CheckSignals() == 0) return true;
    // A device that is lost later reports so from the thread that computes: no call of Python waits for it.
    if (std::this_thread::get_id() != caller_) return PyErr_WriteUnraisable(callable_), true;
    if (type_) PyErr_Clear();
    else PyErr_Fetch(&type_, &value_, &trace_);
    return false;
  }

  // Runs work without Python's lock, and raises what on() has set aside.
  template <class F>
  auto watch(F f) {
    caller_ = std::this_thread::get_id();
    auto result = unlocked(true, f);
    caller_ = std::thread::id();
    if (type_) {
      PyErr_Restore(std::exchange(type_, nullptr), std::exchange(value_, nullptr),
                    std::exchange(trace_, nullptr));
      throw Raised();
    }
    return result;
  }

 private:
  PyObject *callable_, *type_ = nullptr, *value_ = nullptr, *trace_ = nullptr;
  std::atomic<std::thread::id> caller_;
};

struct WatchedEngine {
  std::shared_ptr<Watcher> watcher;
  Engine engine;
};

}  // namespace

template <>
inline constexpr const char* kCapsule<WatchedEngine> = "gimbal.Engine";

namespace {

PyObject* new_engine(const Arguments& a) {  // options, on_event or None
  static constexpr const char* kKinds[] = {"chosen",    "fallback",  "ignored", "note",
                                           "recovered", "verifying", "loading", "measuring"};
  auto options = options_of<Options>(a, 0);
  auto watcher = std::make_shared<Watcher>(a.object(1));
  options.events = [watcher](const Event& e) {
    return watcher->on(kKinds[int(e.kind)], e.what, e.instead, e.why.message, e.done, e.total);
  };
  return capsule_of(WatchedEngine{watcher, Engine(std::move(options))});
}

PyObject* load_model(const Arguments& a) {  // engine, model, options
  auto& e = held<WatchedEngine>(a, 0);
  const std::string model = a.text(1);
  const auto options = options_of<ModelOptions>(a, 2);
  auto loaded = e.watcher->watch([&] { return e.engine.load(model, options); });
  return capsule_of(std::move(expect(loaded)));
}

template <auto plan>
PyObject* planned(const Arguments& a) {  // engine, model, options
  auto& e = held<WatchedEngine>(a, 0);
  const std::string model = a.text(1);
  const auto options = options_of<ModelOptions>(a, 2);
  auto found = e.watcher->watch([&] { return (e.engine.*plan)(model, options); });
  return text_object(c::json_text(expect(found)));
}

PyObject* pull_model(const Arguments& a) {  // address, options, on_event or None
  const auto wanted = options_of<c::Pulling>(a, 1);
  const std::string address = a.text(0);
  Watcher watcher(a.object(2));
  PullOptions o{wanted.connections, wanted.sha256, [&](const PullEvent& e) {
                  static constexpr const char* kKinds[] = {"resolved", "note", "fetching", "checking"};
                  return watcher.on(kKinds[int(e.kind)], e.file, "", e.text, e.done, e.total);
                }};
  auto pulled = watcher.watch([&] { return pull(address, o); });
  return text_object(expect(pulled).path);
}

PyObject* encode(const Arguments& a) {  // model, text, options
  const auto o = options_of<c::Tokenizing>(a, 2);
  return list_of(held<Model>(a, 0).tokenizer().encode(a.text(1), o.add_bos, o.parse_special));
}
PyObject* token_parts(const Arguments& a) {  // model, text, tokens -> [(begin, end), ...] in bytes
  auto parts = held<Model>(a, 0).tokenizer().parts(a.text(1), tokens_of(a, 2));
  Ref list(PyList_New(0));
  for (const TextPart& p : expect(parts)) {
    Ref pair(Py_BuildValue("nn", Py_ssize_t(p.begin), Py_ssize_t(p.end)));
    if (!list || !pair || PyList_Append(list.get(), pair.get()) < 0) return nullptr;
  }
  return list.release();
}

// Rows of floats as a tensor.
PyObject* rows_of(const std::vector<float>& all, size_t rows, const Queue& q) {
  const Dims dims = {int64_t(rows), rows ? int64_t(all.size() / rows) : 0};
  return new_tensor(Tensor::from_bytes(std::as_bytes(std::span(all)), dims, DType::F32, q));
}

PyObject* embed(const Arguments& a) {  // model, texts, options, queue
  Model& model = held<Model>(a, 0);
  const auto texts = a.texts(1);
  const auto o = options_of<c::Embedding>(a, 2);
  auto all = unlocked(true, [&] { return model.embed(texts, o.pooling, o.normalised); });
  std::vector<float> flat;
  for (const auto& one : expect(all)) flat.insert(flat.end(), one.begin(), one.end());
  return rows_of(flat, texts.size(), a.queue(3));
}
PyObject* rerank(const Arguments& a) {  // model, query, documents
  Model& model = held<Model>(a, 0);
  const std::string query = a.text(1);
  const auto documents = a.texts(2);
  auto scores = unlocked(true, [&] { return model.rerank(query, documents); });
  Ref list(PyList_New(0));
  for (double s : expect(scores)) {
    Ref number(PyFloat_FromDouble(s));
    if (!list || !number || PyList_Append(list.get(), number.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* new_sequence(const Arguments& a) {
  auto made = held<Model>(a, 0).new_sequence();
  return capsule_of(std::move(expect(made)));
}
PyObject* logits(const Arguments& a) {  // sequence, tokens, of all?, queue
  auto& sequence = held<Sequence>(a, 0);
  const auto tokens = tokens_of(a, 1);
  const bool all = a.truth(2);
  auto rows = unlocked(true, [&] {
    sequence.rewind(0);
    return all ? sequence.all_logits(tokens) : sequence.logits(tokens);
  });
  return rows_of(expect(rows), all ? tokens.size() : 1, a.queue(3));
}

PyObject* names(const std::vector<std::string>& all) {
  Ref list(PyList_New(0));
  for (const std::string& name : all) {
    Ref text(text_object(name));
    if (!list || !text || PyList_Append(list.get(), text.get()) < 0) return nullptr;
  }
  return list.release();
}

}  // namespace

std::vector<Token> tokens_of(const Arguments& a, size_t i) {
  std::vector<Token> all;
  for (int64_t id : a.dims(i)) {
    if (id < 0 || id > INT32_MAX)
      raise(
          {Code::Usage, "a token id is " + std::to_string(id), "ids count from 0", "", "tokens", "", "", {}});
    all.push_back(Token(id));
  }
  return all;
}
std::vector<Message> messages_of(const Arguments& a, size_t i) {
  std::vector<Message> all;
  for (const std::string& json : a.texts(i)) {
    auto message = c::message_of(json.c_str());
    all.push_back(std::move(expect(message)));
  }
  return all;
}
PyObject* list_of(const std::vector<Token>& tokens) {
  Ref list(PyList_New(Py_ssize_t(tokens.size())));
  for (size_t i = 0; list && i < tokens.size(); i++)
    PyList_SetItem(list.get(), Py_ssize_t(i), PyLong_FromLong(tokens[i]));
  return list.release();
}

PyMethodDef kModelFunctions[] = {
    LAMBDA_OF("device_settings", (void)a; return names(c::names_of(Options()));),
    LAMBDA_OF("model_settings", (void)a; return names(c::names_of(ModelOptions()));),
    FUNCTION_OF("new_engine", new_engine),
    FUNCTION_OF("load_model", load_model),
    FUNCTION_OF("plan_model", planned<&Engine::plan>),
    FUNCTION_OF("explain_model", planned<&Engine::explain>),
    LAMBDA_OF("backends", auto& e = held<WatchedEngine>(a, 0);
              return text_object(c::json_text(unlocked(true, [&] { return e.engine.backends(); })));),
    LAMBDA_OF("prefix_store",
              return text_object(c::json_text(held<WatchedEngine>(a, 0).engine.prefix_store_numbers()));),
    LAMBDA_OF("models", return text_object(c::json_text(held<WatchedEngine>(a, 0).engine.models()));),
    LAMBDA_OF("summary", auto& e = held<WatchedEngine>(a, 0);
              return text_object(unlocked(true, [&] { return e.engine.summary(); }));),
    FUNCTION_OF("pull", pull_model),
    LAMBDA_OF("model_info", return text_object(c::json_text(held<Model>(a, 0)));),
    LAMBDA_OF("receipt_of_model", return text_object(c::json_text(held<Model>(a, 0).receipt()));),
    FUNCTION_OF("encode", encode),
    LAMBDA_OF("decode",
              return text_object(held<Model>(a, 0).tokenizer().decode(tokens_of(a, 1), a.truth(2)));),
    FUNCTION_OF("token_parts", token_parts),
    LAMBDA_OF("tokenizer_info", const Tokenizer t = held<Model>(a, 0).tokenizer();
              return Py_BuildValue("iii", t.size(), t.bos(), t.eos());),
    LAMBDA_OF("is_stop", return PyBool_FromLong(held<Model>(a, 0).tokenizer().is_stop(Token(a.integer(1))));),
    LAMBDA_OF("chat_prompt", const auto o = options_of<ChatOptions>(a, 2);
              auto p = held<Model>(a, 0).chat_prompt(messages_of(a, 1), o);
              Ref text(text_object(expect(p).text)); Ref tokens(list_of(p->tokens));
              return text && tokens ? PyTuple_Pack(2, text.get(), tokens.get()) : nullptr;),
    FUNCTION_OF("embed", embed),
    FUNCTION_OF("rerank", rerank),
    FUNCTION_OF("new_sequence", new_sequence),
    FUNCTION_OF("logits", logits),
    {nullptr, nullptr, 0, nullptr}};

}  // namespace gimbal::python
