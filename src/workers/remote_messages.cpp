// Handles a worker's messages and checks them first. Each function returns why the worker must be replaced;
// empty: no need.
#include <algorithm>

#include "base/text.h"
#include "workers/remote_service_impl.h"

namespace gimbal {

std::string RemoteService::Impl::read() {
  std::string_view line;
  while (process && process.channel.next(line)) {
    auto message = wire::decode_from_worker(line);
    if (!message) return message.error().message;
    heard = host.now();
    if (std::string why = handle(*message); !why.empty()) return why;
  }
  return "";
}

std::string RemoteService::Impl::handle(wire::FromWorker& message) {
  if (auto* m = std::get_if<wire::Loading>(&message)) {
    if (!ready && settings.loading) settings.loading(m->done, m->total);
    return "";
  }
  if (auto* m = std::get_if<wire::Planned>(&message)) {
    const std::lock_guard lock(mutex);
    if (ready || planned || admitted) return "it requested memory at the wrong time";
    if (settings.memory) settings.memory->plans(*m);
    if (!asks) return process.channel.send(encode(wire::ToWorker(wire::Go{}))), "";
    planned = std::move(*m);
    changed.notify_all();
    return "";
  }
  if (auto* m = std::get_if<wire::Hello>(&message)) {
    if (ready) return "it sent hello twice";
    ready = true, moved = last_ping = host.now();
    {
      const std::lock_guard lock(mutex);
      known.ready = true, known.hello = std::make_shared<wire::Hello>(*m);
    }
    changed.notify_all();
    if (settings.ready) settings.ready(*m);
    return "";
  }
  if (auto* m = std::get_if<wire::Failed>(&message); m && m->id == 0) {
    // Without a first success there is nothing to continue: the model cannot be loaded.
    if (known.restarts == 0 && !ready) return give_up(std::move(m->why)), "";
    return m->why.message;
  }
  if (!ready) return "it sent a message before it was ready";
  if (auto* m = std::get_if<wire::Begun>(&message)) {
    const auto at = requests.find(m->id);
    if (at == requests.end() || !at->second.sent || std::exchange(at->second.blame.begun, true))
      return "it began an unknown request, or one twice";
    moved = host.now();
    if (GenerationSink& sink = at->second.sink; sink.begun) std::exchange(sink.begun, nullptr)();
    return "";
  }
  started = true;
  if (auto* m = std::get_if<wire::Pong>(&message)) {
    if (m->numbers.steps != steps) moved = host.now();
    steps = m->numbers.steps;
    {
      const std::lock_guard lock(mutex);
      known.numbers = past;
      known.numbers += m->numbers;
    }
    changed.notify_all();
    return "";
  }
  moved = host.now();
  if (auto* m = std::get_if<wire::NextToken>(&message)) return handle(*m);
  if (auto* m = std::get_if<wire::Scored>(&message)) return handle(*m);
  if (auto* m = std::get_if<wire::Ended>(&message)) return handle(*m);
  if (auto* m = std::get_if<wire::Embedding>(&message)) return handle(*m);
  if (auto* m = std::get_if<wire::State>(&message)) return handle(*m);
  auto& m = std::get<wire::Failed>(message);
  {
    const std::lock_guard lock(mutex);
    if (const auto at = embeddings.find(m.id); at != embeddings.end()) {
      at->second->failed = std::move(m.why);
      embeddings.erase(at);
      changed.notify_all();
      return "";
    }
    if (const auto at = states.find(m.id); at != states.end() && at->second->sent) {
      at->second->result = std::move(m.why);
      states.erase(at);
      changed.notify_all();
      return "";
    }
  }
  const auto at = requests.find(m.id);
  if (at == requests.end() || !at->second.sent) return "it refers to an unknown request";
  const GenerationSink sink = std::move(at->second.sink);
  requests.erase(at);
  sink.failed(m.why);
  return "";
}

std::string RemoteService::Impl::handle(wire::NextToken& m) {
  const auto at = requests.find(m.id);
  if (at == requests.end() || !at->second.sent) return "it refers to an unknown request";
  Request& r = at->second;
  if (m.told.index != int(r.asked.written.size())) return "it left a token out, or sent one twice";
  if (m.told.token < 0 || (settings.vocabulary > 0 && m.told.token >= settings.vocabulary))
    return "it sent a token that is not in the vocabulary";
  if (r.asked.max_tokens >= 0 && m.told.index >= r.asked.max_tokens)
    return "it sent more tokens than requested";
  if (!is_utf8(m.told.text)) return "it sent text that is not UTF-8";
  if (int(m.told.top.size()) > std::max(0, r.asked.logprobs))
    return "it sent more probabilities than requested";
  r.asked.written.push_back(m.told.token);
  r.asked.memory = m.told.memory;
  r.sink.token(m.told);
  progressed(m.id, r);
  return "";
}

// The prompt's tokens but its first, then a stop token.
std::string RemoteService::Impl::handle(wire::Scored& m) {
  const auto at = requests.find(m.id);
  if (at == requests.end() || !at->second.sent) return "it refers to an unknown request";
  Request& r = at->second;
  const std::vector<Token>& prompt = r.asked.prompt;
  const size_t next = size_t(r.asked.scored) + 1;
  const bool of_prompt = next < prompt.size();
  if (!r.asked.scores_prompt || next > prompt.size() ||
      size_t(m.told.index) != (of_prompt ? next : prompt.size() + r.asked.written.size()))
    return "it gave a log-probability that was not asked for, or left one out";
  if (of_prompt ? m.told.token != prompt[next]
                : m.told.token < 0 || (settings.vocabulary > 0 && m.told.token >= settings.vocabulary))
    return "it gave another token a log-probability";
  if (int(m.told.top.size()) > r.asked.logprobs) return "it sent more probabilities than requested";
  r.asked.scored++;
  r.sink.scored(m.told);
  progressed(m.id, r);
  return "";
}

void RemoteService::Impl::progressed(uint64_t id, Request& r) {
  const bool was_suspect = r.blame.suspect;
  went_on |= r.blame.handed_on;
  r.blame.progressed();
  // This request did not end its worker. The next suspect needs the worker for itself.
  const auto suspect = [](auto& other) { return other.second.blame.suspect; };
  if (was_suspect && std::any_of(requests.begin(), requests.end(), suspect)) {
    r.makes_way = true;
    process.channel.send(encode(wire::ToWorker(wire::Cancel{id})));
  }
}

std::string RemoteService::Impl::handle(wire::Ended& m) {
  const auto at = requests.find(m.id);
  if (at == requests.end() || !at->second.sent) return "it refers to an unknown request";
  const GenerationRequest& asked = at->second.asked;
  if (m.end.tokens != int(asked.written.size()))
    return "it ended an answer with another number of tokens than it sent";
  const int fewest = int(asked.prompt.size());  // pictures become several rows
  const int most = asked.pictures.empty() ? fewest : known.hello->context;
  if (m.end.prompt_tokens < fewest || m.end.prompt_tokens > most || m.end.shared_tokens < 0 ||
      m.end.shared_tokens > m.end.prompt_tokens || m.end.stored_tokens < 0 ||
      m.end.stored_tokens > m.end.prompt_tokens || !is_utf8(m.end.text) ||
      !(m.end.stored_page.empty() || is_page_name(m.end.stored_page)))
    return "it ended an answer with invalid numbers or text";
  const size_t scored = asked.prompt.size() - 1 + (m.end.finish == Finish::StopToken);
  if (asked.scores_prompt && m.end.finish != Finish::Cancelled && size_t(asked.scored) < scored)
    return "it ended an answer without all log-probabilities of its prompt and its stop token";
  if (at->second.makes_way && !at->second.unwanted && m.end.finish == Finish::Cancelled) {
    at->second.sent = at->second.blame.begun = false;
    return "";
  }
  end(m.id, m.end);
  return "";
}

std::string RemoteService::Impl::handle(wire::Embedding& m) {
  const std::lock_guard lock(mutex);
  const auto at = embeddings.find(m.id);
  if (at == embeddings.end() || !at->second->sent) return "it refers to an unknown request";
  Embedding& e = *at->second;
  if (m.text < 0 || size_t(m.text) >= e.sent || e.before + size_t(m.text) != e.received)
    return "it left a text out, or embedded one twice";
  e.values.push_back(std::move(m.values));
  went_on |= e.blame.handed_on;
  e.blame.progressed();
  if (size_t(m.text) + 1 == e.sent) e.sent = 0;
  if (++e.received == e.texts.size()) embeddings.erase(at);
  changed.notify_all();
  return "";
}

std::string RemoteService::Impl::handle(wire::State& m) {
  const std::lock_guard lock(mutex);
  const auto at = states.find(m.id);
  if (at == states.end() || !at->second->sent) return "it refers to an unknown state";
  const bool restored = std::holds_alternative<wire::Restore>(at->second->message);
  size_t most = m.text.size();
  if (const auto* s = std::get_if<wire::Save>(&at->second->message)) most = s->text.size();
  if (const auto* e = std::get_if<wire::Erase>(&at->second->message)) most = e->text.size();
  const bool known_tokens = std::all_of(m.text.begin(), m.text.end(), [&](Token t) {
    return t == kNoToken || (t >= 0 && (settings.vocabulary <= 0 || t < settings.vocabulary));
  });
  if (m.tokens < 0 || size_t(m.tokens) > most || (!restored && !m.text.empty()) || !known_tokens)
    return "it sent an invalid state";
  at->second->result = std::move(m);
  states.erase(at);
  changed.notify_all();
  return "";
}

void RemoteService::Impl::end(uint64_t id, const GenerationEnd& how) {
  const auto at = requests.find(id);
  const GenerationSink sink = std::move(at->second.sink);
  requests.erase(at);
  sink.end(how);
}

}  // namespace gimbal
