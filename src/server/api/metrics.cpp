// GET /metrics: the numbers of the server in Prometheus' text format.
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/format.h"
#include "server/api/call.h"

namespace gimbal::api {
namespace {

class Families {
 public:
  explicit Families(std::string& out) : out_(out) {}
  void describe(const char* name, const char* type, const char* help) {
    describe_metric(out_, name, type, help);
  }
  template <class Number>
  void add(const char* name, const char* type, const char* help, Number value) {
    describe(name, type, help);
    out_ += format("{} {}\n", name, value);
  }

 private:
  std::string& out_;
};

std::string text_of(const char* path) {
  std::string text(1 << 14, '\0');
  FILE* file = std::fopen(path, "re");
  text.resize(file ? std::fread(text.data(), 1, text.size(), file) : 0);
  if (file) std::fclose(file);
  return text;
}

// The n-th word, from 0; 0 where there is none.
double number_at(const std::string& text, size_t n) {
  size_t at = 0;
  for (; n > 0 && at < text.size(); n--) at = std::min(text.find(' ', at), text.size() - 1) + 1;
  return at < text.size() ? std::strtod(text.c_str() + at, nullptr) : 0;
}

// The names that Prometheus' client libraries give to these. Omits values that the system does not report.
void add_process(Families& to) {
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) == 0) {
    const auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
    to.add("process_cpu_seconds_total", "counter",
           "CPU time of the server's own process, without its workers.",
           seconds(used.ru_utime) + seconds(used.ru_stime));
  }
  if (const std::string pages = text_of("/proc/self/statm"); !pages.empty())
    to.add("process_resident_memory_bytes", "gauge",
           "Memory of the server's own process, without its workers.",
           uint64_t(number_at(pages, 1)) * uint64_t(sysconf(_SC_PAGESIZE)));
  if (DIR* folder = opendir("/proc/self/fd")) {
    int open = -1;  // the folder itself
    while (const dirent* one = readdir(folder)) open += one->d_name[0] != '.';
    closedir(folder);
    to.add("process_open_fds", "gauge", "Open file descriptors.", open);
  }
  if (rlimit most{}; getrlimit(RLIMIT_NOFILE, &most) == 0)
    to.add("process_max_fds", "gauge", "Most open file descriptors.", uint64_t(most.rlim_cur));
  // Of /proc/self/stat, behind the name, which may have blanks: field 22, in ticks since the system's start.
  const std::string stat = text_of("/proc/self/stat"), system = text_of("/proc/stat");
  const size_t behind = stat.rfind(')'), boot = system.find("btime ");
  if (behind != stat.npos && boot != system.npos)
    to.add("process_start_time_seconds", "gauge", "When the server started, in seconds since 1970.",
           std::strtod(system.c_str() + boot + 6, nullptr) +
               number_at(stat.substr(behind + 2), 19) / double(sysconf(_SC_CLK_TCK)));
}

struct NumbersOfModel {
  std::string label;  // model="..."
  SchedulerNumbers numbers;
};

void add_prefix_store(Families& to, const PageStoreNumbers& n) {
  to.add("gimbal_prefix_store_hits_total", "counter", "Texts whose beginning was read from the prefix store.",
         n.hits);
  to.add("gimbal_prefix_store_misses_total", "counter", "Texts that were looked up there in vain.", n.misses);
  to.add("gimbal_prefix_store_tokens_total", "counter", "Tokens that were read and not computed.", n.tokens);
  to.add("gimbal_prefix_store_read_seconds_total", "counter", "Time of looking pages up and reading them.",
         n.read_seconds);
  to.add("gimbal_prefix_store_saved_seconds_total", "counter",
         "Computing these tokens took so long, less the time of reading them.", n.saved_seconds);
  to.add("gimbal_prefix_store_read_bytes_total", "counter", "Bytes of pages that were read.", n.bytes_read);
  to.add("gimbal_prefix_store_written_bytes_total", "counter", "Bytes of pages that were written.",
         n.bytes_written);
  to.add("gimbal_prefix_store_damaged_pages_total", "counter",
         "Pages with a wrong checksum, deleted and computed again.", n.pages_damaged);
  to.add("gimbal_prefix_store_dropped_pages_total", "counter",
         "Pages that were not written: the disk was too slow, or refused them.", n.pages_dropped);
  to.add("gimbal_prefix_store_evicted_pages_total", "counter", "Pages that left for new ones.",
         n.pages_evicted);
  to.add("gimbal_prefix_store_bytes", "gauge", "Bytes of all pages in the folder.", n.bytes);
}

// By model. Counters begin again when a model is loaded again; the totals above do not.
void add_models(Families& to, std::string& out, const std::vector<NumbersOfModel>& all) {
  const auto add = [&](const char* name, const char* help, uint64_t SchedulerNumbers::*member) {
    to.describe(name, "counter", help);
    for (const NumbersOfModel& m : all) out += format("{}{{{}}} {}\n", name, m.label, m.numbers.*member);
  };
  add("gimbal_model_steps_total", "Steps of each model that is loaded.", &SchedulerNumbers::steps);
  add("gimbal_model_tokens_generated_total", "Tokens of answers, by model.",
      &SchedulerNumbers::tokens_generated);
  add("gimbal_model_prompt_tokens_total", "Tokens of prompts, by model.", &SchedulerNumbers::prompt_tokens);
  const auto add_durations = [&](const char* name, const char* help, Durations SchedulerNumbers::*member) {
    to.describe(name, "histogram", help);
    for (const NumbersOfModel& m : all) add_histogram(out, name, m.label, m.numbers.*member);
  };
  add_durations("gimbal_model_time_to_first_token_seconds", "From a request to its first token, by model.",
                &SchedulerNumbers::first_token);
  add_durations("gimbal_model_time_between_tokens_seconds", "From a token to the next one, by model.",
                &SchedulerNumbers::between_tokens);
}

}  // namespace

Refused metrics(Call& call) {
  Services& s = call.services;
  const std::vector<ServedModelPtr> loaded = s.models.loaded();
  SchedulerNumbers n = s.models.past();  // behind it: those that are held now are not given back meanwhile
  std::vector<NumbersOfModel> by_model;
  for (const ServedModelPtr& model : loaded) {
    NumbersOfModel& m = by_model.emplace_back(NumbersOfModel{format("model={}", json_text(model->id())), {}});
    for (const SchedulerNumbers& one : model->numbers()) m.numbers += one;
    n += m.numbers;
  }
  std::string out;
  Families f(out);
  f.describe("gimbal_build_info", "gauge", "1; the label says which gimbal this is.");
  out += format("gimbal_build_info{{version={}}} 1\n", json_text(s.version));
  f.add("gimbal_requests_running", "gauge", "Answers that are being computed.",
        uint64_t(std::max(0, s.running.load())));
  f.add("gimbal_requests_waiting", "gauge", "Texts that wait for their turn.", uint64_t(n.waiting));
  f.add("gimbal_tokens_generated_total", "counter", "Tokens of all answers.", s.tokens_generated.load());
  f.add("gimbal_prompt_tokens_total", "counter", "Tokens of all prompts.", s.prompt_tokens.load());
  f.add("gimbal_prompt_tokens_shared_total", "counter", "Of these, computed for an earlier request.",
        n.shared_tokens);
  f.add("gimbal_draft_tokens_total", "counter", "Tokens that were guessed before they were computed.",
        s.drafted.load());
  f.add("gimbal_draft_tokens_accepted_total", "counter", "Of these, those that were right.",
        s.accepted.load());
  f.add("gimbal_steps_total", "counter", "Steps of the models.", n.steps);
  f.add("gimbal_rows_total", "counter", "Tokens that these steps computed, those of prompts among them.",
        n.rows);
  f.add("gimbal_preemptions_total", "counter", "Times that a text gave up its place, to go on later.",
        n.preemptions);
  f.add("gimbal_devices_lost_total", "counter", "Times that all went on on another device.", n.devices_lost);
  f.add("gimbal_worker_restarts_total", "counter", "Worker processes that were replaced.",
        s.worker_restarts.load());
  f.describe("gimbal_kv_pages", "gauge", "Pages of the KV cache, by who has them.");
  const int running = n.pages_running, kept = n.pages_kept;
  for (const auto& [state, pages] :
       {std::pair("running", running), {"kept", kept}, {"free", n.pages - running - kept}})
    out += format("gimbal_kv_pages{{state=\"{}\"}} {}\n", state, pages);
  f.add("gimbal_kv_pages_shared", "gauge",
        "Pages of running requests that two or more of them have in common.", uint64_t(n.pages_shared));
  if (s.pages) add_prefix_store(f, s.pages->numbers());
  f.describe("gimbal_memory_bytes", "gauge", "Memory of the devices that a model takes.");
  for (const KnownModel& m : s.models.list())
    if (m.loaded) out += format("gimbal_memory_bytes{{model={}}} {}\n", json_text(m.id), m.device_bytes);
  f.describe("gimbal_time_to_first_token_seconds", "histogram", "From a request to its first token.");
  add_histogram(out, "gimbal_time_to_first_token_seconds", "", n.first_token);
  f.describe("gimbal_time_between_tokens_seconds", "histogram",
             "From a token to the next one of the same text.");
  add_histogram(out, "gimbal_time_between_tokens_seconds", "", n.between_tokens);
  add_models(f, out, by_model);
  s.counts.write(out);
  add_process(f);
  call.answer(http::Response{200, std::move(out), "text/plain; version=0.0.4; charset=utf-8"});
  return {};
}

}  // namespace gimbal::api
