#include "grammar/automaton.h"

#include <algorithm>
#include <bitset>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>

#include "base/format.h"
#include "base/text.h"
#include "grammar/token_tree.h"

namespace gimbal {

class AutomatonBuilder {
 public:
  using Node = Automaton::Node;
  using Edge = Automaton::Edge;

  AutomatonBuilder(const Grammar& grammar, const TokenTree* vocabulary)
      : grammar_(grammar),
        vocabulary_(vocabulary),
        alphabet_(vocabulary ? vocabulary->alphabet() : std::span<const CharRange>()),
        out_(std::make_shared<Automaton>()) {}

  Result<std::shared_ptr<const Automaton>> build() {
    for (size_t r = 0; r < grammar_.rules().size(); r++) queue_rule(grammar_.rules()[r].expr);
    for (size_t r = 0; r < bodies_.size(); r++) {
      const Node end = node();
      out_->ends_[end] = true;
      add(bodies_[r], out_->starts_[r], end);
      if (no_token_) return *no_token_;
      if (out_->ends_.size() > Automaton::kMaxNodes)
        return error(format("it needs more than {} states", Automaton::kMaxNodes), "write a smaller grammar");
    }
    lay_out_edges();
    out_->shortest_ = shortest_ways();
    if (!live(out_->starts_[0]))
      return error(alphabet_.empty() ? "no text matches it"
                                     : "no text that this model's vocabulary can write matches it",
                   "look for rules that need themselves, and for empty classes of characters");
    remove_edges_to_the_dead();
    if (Status ok = rank_rules(); !ok) return ok.error();
    find_classes();
    return std::shared_ptr<const Automaton>(std::move(out_));
  }

 private:
  static Error error(std::string what, std::string_view remedy) {
    return {Code::Usage, "grammar: " + what, remedy, "", "grammar"};
  }

  // ---- from expressions to nodes

  Node node() {
    out_->ends_.push_back(false);
    out_->loops_of_.push_back(Automaton::kNone);
    from_.emplace_back();
    return Node(out_->ends_.size() - 1);
  }
  void edge(Node from, Edge e) { from_[from].push_back(e); }
  void bytes(Node from, uint8_t low, uint8_t high, Node to) { edge(from, {Edge::Bytes, low, high, 0, to}); }

  uint32_t queue_rule(Grammar::Id expr) {
    bodies_.push_back(expr);
    out_->starts_.push_back(node());
    return uint32_t(bodies_.size() - 1);
  }

  void add(Grammar::Id id, Node from, Node to) {
    const Grammar::Expr& e = grammar_[id];
    switch (e.kind) {
      case Grammar::Expr::Text: add_text(grammar_.text_of(e), from, to); break;
      case Grammar::Expr::Token: add_token(grammar_.text_of(e), from, to); break;
      case Grammar::Expr::Chars: add_chars(grammar_.ranges_of(e), from, to); break;
      case Grammar::Expr::Rule: edge(from, {Edge::Call, 0, 0, e.begin, to}); break;
      case Grammar::Expr::Choice: add_choice(grammar_.items_of(e), from, to); break;
      case Grammar::Expr::Sequence: add_sequence(grammar_.items_of(e), from, to); break;
      case Grammar::Expr::Repeat: add_repeat(e, from, to); break;
    }
  }

  void add_sequence(std::span<const Grammar::Id> items, Node from, Node to) {
    if (items.empty()) edge(from, {Edge::Empty, 0, 0, 0, to});
    for (size_t i = 0; i < items.size(); i++) {
      const Node next = i + 1 < items.size() ? node() : to;
      add(items[i], from, next);
      from = next;
    }
  }

  // Alternatives that begin with literals share the nodes of common prefixes (a trie): a choice of thousands
  // of literals is then in one node at a time instead of thousands.
  void add_choice(std::span<const Grammar::Id> items, Node from, Node to) {
    struct Way {
      std::string_view text;
      std::span<const Grammar::Id> rest;  // after the literal
    };
    std::vector<Way> ways;
    for (Grammar::Id item : items) {
      const Grammar::Expr& e = grammar_[of_constant(item)];
      const bool sequence = e.kind == Grammar::Expr::Sequence && e.begin < e.end;
      const Grammar::Expr& first = sequence ? grammar_[grammar_.items_of(e)[0]] : e;
      if (first.kind != Grammar::Expr::Text) {
        add(item, from, to);
      } else if (const std::string_view text = grammar_.text_of(first); can_be_written(text)) {
        ways.push_back({text, sequence ? grammar_.items_of(e).subspan(1) : std::span<const Grammar::Id>()});
      }
    }
    std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) { return a.text < b.text; });
    std::vector<Node> path{from};  // nodes after each byte of the last text
    std::string_view last;
    for (const auto& [text, rest] : ways) {
      const auto differs = std::mismatch(last.begin(), last.end(), text.begin(), text.end()).first;
      path.resize(size_t(differs - last.begin()) + 1);
      while (path.size() <= text.size()) {
        const Node next = node();
        bytes(path.back(), uint8_t(text[path.size() - 1]), uint8_t(text[path.size() - 1]), next);
        path.push_back(next);
      }
      add_sequence(rest, path.back(), to);
      last = text;
    }
  }

  // If a rule is only a short text, that text.
  Grammar::Id of_constant(Grammar::Id item) const {
    constexpr size_t kShort = 64;
    const Grammar::Expr& e = grammar_[item];
    if (e.kind != Grammar::Expr::Rule) return item;
    const Grammar::Id body = grammar_.rules()[e.begin].expr;
    const Grammar::Expr& is = grammar_[body];
    return is.kind == Grammar::Expr::Text && is.end - is.begin <= kShort ? body : item;
  }

  // `x?`, `x*` and `x+` become edges; counted repetitions become loops.
  void add_repeat(const Grammar::Expr& e, Node from, Node to) {
    if (e.max == 1) {
      add(e.begin, from, to);
      edge(from, {Edge::Empty, 0, 0, 0, to});
    } else if (e.max == kUnbounded && e.min <= 1) {
      const Node begin = node(), end = e.min ? node() : begin;
      edge(from, {Edge::Empty, 0, 0, 0, begin});
      add(e.begin, begin, end);
      if (e.min) edge(end, {Edge::Empty, 0, 0, 0, begin});
      edge(end, {Edge::Empty, 0, 0, 0, to});
    } else {
      const auto [known, added] = repeated_.emplace(e.begin, 0);
      if (added) known->second = queue_rule(e.begin);
      const Node counts = node();
      out_->loops_of_[counts] = uint32_t(out_->loops_.size());
      out_->loops_.push_back({known->second, e.min, e.max, to});
      edge(from, {Edge::Empty, 0, 0, 0, counts});
    }
  }

  void add_text(std::string_view text, Node from, Node to) {
    if (!can_be_written(text)) return;
    if (text.empty()) edge(from, {Edge::Empty, 0, 0, 0, to});
    for (size_t i = 0; i < text.size(); i++) {
      const Node next = i + 1 < text.size() ? node() : to;
      bytes(from, uint8_t(text[i]), uint8_t(text[i]), next);
      from = next;
    }
  }

  bool can_be_written(std::string_view text) const {
    for (std::string_view rest = text; !alphabet_.empty() && !rest.empty();) {
      const uint32_t c = take_char(rest);
      if (intersection({{CharRange{c, c}}}, alphabet_).empty()) return false;
    }
    return true;
  }

  void add_token(std::string_view written, Node from, Node to) {
    const auto known = named_.find(written);
    const Token id = known != named_.end() ? known->second : token_of(written);
    if (known == named_.end()) named_.emplace(written, id);
    if (id < 0) return;
    if (!vocabulary_->is_control(id)) return add_text(vocabulary_->text(id), from, to);
    auto& all = out_->tokens_;
    const auto at = std::find(all.begin(), all.end(), id);
    const auto k = uint32_t(at - all.begin());
    if (at == all.end()) all.push_back(id);
    edge(from, {Edge::Token, 0, 0, k, to});
  }

  Token token_of(std::string_view written) {
    const Token id = vocabulary_ ? vocabulary_->written(written) : -1;
    const std::string name = gimbal::quoted(written.substr(0, 60));
    if (named_.size() == Automaton::kMaxTokens)
      no_token_ = error(format("it names more than {} tokens", Automaton::kMaxTokens), "name fewer");
    else if (id < 0)
      no_token_ = error(format("the vocabulary has no token {}", name), "write a text as \"...\"");
    else if (vocabulary_->is_end(id))
      no_token_ = error(format("the token {} ends an answer", name), "leave it out: it may follow the end");
    else if (!vocabulary_->is_control(id) && vocabulary_->text(id).empty())
      no_token_ = error(format("the token {} is none that can be written", name), "name another one");
    return no_token_ ? -1 : id;
  }

  // ---- characters as UTF-8

  void add_chars(std::span<const CharRange> ranges, Node from, Node to) {
    static constexpr CharRange kByLength[] = {
        {0, 0x7f}, {0x80, 0x7ff}, {0x800, 0xd7ff}, {0xe000, 0xffff}, {0x10000, kLastChar}};
    tails_[0] = to;
    for (size_t i = 1; i < std::size(tails_); i++) tails_[i] = Automaton::kNone;
    auto part = intersection(ranges, kByLength);
    if (!alphabet_.empty()) part = intersection(part, alphabet_);
    for (const CharRange& r : part) {
      const std::string low = utf8_of(r.low), high = utf8_of(r.high);
      add_utf8(from, low, high);
    }
  }

  // A node from which any `n` continuation bytes lead to the end of the character.
  Node tail(size_t n) {
    if (tails_[n] == Automaton::kNone) {
      const Node next = tail(n - 1), made = node();
      bytes(made, 0x80, 0xbf, next);
      tails_[n] = made;
    }
    return tails_[n];
  }

  // Characters from `low` to `high`, with equal numbers of bytes.
  void add_utf8(Node from, std::string_view low, std::string_view high) {
    auto first = [](std::string_view s) { return uint8_t(s[0]); };
    if (low.size() == 1) return bytes(from, first(low), first(high), tails_[0]);
    if (first(low) == first(high)) {
      const Node next = node();
      bytes(from, first(low), first(low), next);
      return add_utf8(next, low.substr(1), high.substr(1));
    }
    const std::string least(low.size() - 1, '\x80'), most(low.size() - 1, '\xbf');
    uint8_t begin = first(low), end = first(high);
    if (low.substr(1) != least) {
      const Node next = node();
      bytes(from, begin, begin, next);
      add_utf8(next, low.substr(1), most);
      begin++;
    }
    if (high.substr(1) != most) {
      const Node next = node();
      bytes(from, end, end, next);
      add_utf8(next, least, high.substr(1));
      end--;
    }
    if (begin <= end) bytes(from, begin, end, tail(low.size() - 1));
  }

  // ---- analysis of the nodes

  void lay_out_edges() {
    for (auto& edges : from_) {
      out_->first_edge_.push_back(uint32_t(out_->edges_.size()));
      out_->edges_.insert(out_->edges_.end(), edges.begin(), edges.end());
      std::vector<Edge>().swap(edges);
    }
    out_->first_edge_.push_back(uint32_t(out_->edges_.size()));
  }

  // The minimum number of bytes from each node to the end of its rule; kNone: unreachable. Dijkstra's
  // algorithm, nearest nodes first: an edge is relaxed when its target is settled, and a call edge again when
  // the start of its rule is.
  std::vector<uint32_t> shortest_ways() const {
    const Automaton& a = *out_;
    const size_t nodes = a.ends_.size();
    struct Way {
      Node from, target, rule;
      uint32_t times;  // of the rule, or bytes without one
    };
    std::vector<std::vector<Way>> into(nodes);
    auto way = [&](const Way& w) {
      into[w.target].push_back(w);
      if (w.rule != Automaton::kNone && w.rule != w.target) into[w.rule].push_back(w);
    };
    for (Node n = 0; n < nodes; n++) {
      for (const Edge& e : a.edges(n))
        way({n, e.target, e.kind == Edge::Call ? a.starts_[e.rule] : Automaton::kNone,
             e.kind != Edge::Empty});
      if (const auto* l = a.loop(n))
        way({n, l->exit, l->min ? a.starts_[l->rule] : Automaton::kNone, l->min});
    }
    std::vector<uint32_t> found(nodes, Automaton::kNone);
    using Reached = std::pair<uint32_t, Node>;
    std::priority_queue<Reached, std::vector<Reached>, std::greater<>> todo;
    for (Node n = 0; n < nodes; n++)
      if (a.ends_[n]) todo.push({0, n});
    while (!todo.empty()) {
      const auto [bytes, n] = todo.top();
      todo.pop();
      if (found[n] != Automaton::kNone) continue;
      found[n] = bytes;
      for (const Way& w : into[n]) {
        if (found[w.from] != Automaton::kNone || found[w.target] == Automaton::kNone) continue;
        const bool calls = w.rule != Automaton::kNone;
        if (calls && found[w.rule] == Automaton::kNone) continue;
        const uint64_t sum = found[w.target] + uint64_t(w.times) * (calls ? found[w.rule] : 1);
        todo.push({uint32_t(std::min<uint64_t>(sum, Automaton::kFar)), w.from});
      }
    }
    return found;
  }

  bool live(Node n) const { return out_->shortest_[n] != Automaton::kNone; }

  void remove_edges_to_the_dead() {
    Automaton& a = *out_;
    std::vector<Edge> kept;
    std::vector<uint32_t> first;
    for (Node n = 0; n < a.ends_.size(); n++) {
      first.push_back(uint32_t(kept.size()));
      for (const Edge& e : a.edges(n))
        if (live(e.target) && (e.kind != Edge::Call || live(a.starts_[e.rule]))) kept.push_back(e);
    }
    first.push_back(uint32_t(kept.size()));
    a.edges_ = std::move(kept);
    a.first_edge_ = std::move(first);
    for (auto& l : a.loops_)
      if (!live(a.starts_[l.rule])) l.max = 0;
  }

  // Adds the rules called at a rule's start to `out`.
  void calls_at_start(uint32_t rule, std::vector<uint32_t>& seen, std::vector<uint32_t>& out) const {
    const Automaton& a = *out_;
    std::vector<Node> todo{a.starts_[rule]};
    auto push = [&](Node n) {
      if (seen[n] == rule) return;
      seen[n] = rule;
      todo.push_back(n);
    };
    seen[todo[0]] = rule;
    while (!todo.empty()) {
      const Node n = todo.back();
      todo.pop_back();
      for (const Edge& e : a.edges(n)) {
        if (e.kind == Edge::Call) out.push_back(e.rule);
        if (e.kind == Edge::Empty || (e.kind == Edge::Call && a.may_be_empty(e.rule))) push(e.target);
      }
      if (const auto* l = a.loop(n)) {
        if (l->max) out.push_back(l->rule);
        if (l->min == 0 || a.may_be_empty(l->rule)) push(l->exit);
      }
    }
  }

  // Topological order, callers first. Left recursion, a rule that calls itself before reading anything, would
  // never end.
  Status rank_rules() {
    Automaton& a = *out_;
    const auto rules = uint32_t(bodies_.size());
    std::vector<std::vector<uint32_t>> calls(rules);
    std::vector<uint32_t> seen(a.ends_.size(), Automaton::kNone), callers(rules, 0);
    for (uint32_t r = 0; r < rules; r++) {
      calls_at_start(r, seen, calls[r]);
      for (uint32_t c : calls[r]) callers[c]++;
    }
    a.ranks_.assign(rules, Automaton::kNone);
    std::vector<uint32_t> ready;
    for (uint32_t r = 0; r < rules; r++)
      if (callers[r] == 0) ready.push_back(r);
    uint32_t ranked = 0;
    while (!ready.empty()) {
      const uint32_t r = ready.back();
      ready.pop_back();
      a.ranks_[r] = ranked++;
      for (uint32_t c : calls[r])
        if (--callers[c] == 0) ready.push_back(c);
    }
    if (ranked == rules) return Done{};
    // Some rules behind a cycle are not in it: following callers back ends in the cycle.
    std::vector<uint32_t> caller(rules, Automaton::kNone);
    for (uint32_t r = 0; r < rules; r++)
      if (a.ranks_[r] == Automaton::kNone)
        for (uint32_t c : calls[r]) caller[c] = r;
    auto r = uint32_t(std::find(a.ranks_.begin(), a.ranks_.end(), Automaton::kNone) - a.ranks_.begin());
    for (uint32_t i = 0; i < rules; i++) r = caller[r];
    for (uint32_t i = 0; i < rules && r >= grammar_.rules().size(); i++) r = caller[r];
    const bool named = r < grammar_.rules().size();
    return error(format("the rule {} begins with itself (left recursion)",
                        named ? gimbal::quoted(grammar_.rules()[r].name) : "of a repetition"),
                 "write a repetition in its place: x ::= y (\"+\" y)*");
  }

  void find_classes() {
    std::bitset<257> begins;
    // The classes that TokenTree distinguishes, and those of UTF-8.
    for (int b : {0,    0x20, 0x22, 0x23, 0x5c, 0x5d, 0x7f, 0x80, 0x90, 0xa0,
                  0xc0, 0xc2, 0xe0, 0xe1, 0xed, 0xee, 0xf0, 0xf1, 0xf4, 0xf5})
      begins.set(size_t(b));
    for (const Edge& e : out_->edges_)
      if (e.kind == Edge::Bytes) begins.set(e.low), begins.set(size_t(e.high) + 1);
    for (size_t b = 0; b < 256; b++) {
      if (begins[b]) out_->bytes_of_class_.push_back(uint8_t(b));
      out_->classes_[b] = uint8_t(out_->bytes_of_class_.size() - 1);
    }
  }

  const Grammar& grammar_;
  const TokenTree* const vocabulary_;
  const std::span<const CharRange> alphabet_;  // empty: all characters
  std::shared_ptr<Automaton> out_;
  std::vector<Grammar::Id> bodies_;  // of the grammar's rules, followed by the repeated parts of loops
  std::unordered_map<Grammar::Id, uint32_t> repeated_;
  std::map<std::string_view, Token> named_;
  std::optional<Error> no_token_;
  std::vector<std::vector<Edge>> from_;
  Node tails_[4] = {};
};

uint32_t Automaton::shortest(Node n, uint32_t count) const {
  const Loop* l = loop(n);
  if (!l) return shortest_[n];
  const uint64_t times = count < l->min ? l->min - count : 0;
  const uint64_t rule = shortest_[starts_[l->rule]];
  return uint32_t(std::min<uint64_t>(times * rule + shortest_[l->exit], kFar));
}

Result<std::shared_ptr<const Automaton>> Automaton::create(const Grammar& grammar,
                                                           const TokenTree* vocabulary) {
  if (grammar.too_large())
    return Error{Code::Usage, format("grammar: it has more than {} parts", Grammar::kMaxExprs),
                 "write a smaller one", "", "grammar"};
  return AutomatonBuilder(grammar, vocabulary).build();
}

}  // namespace gimbal
